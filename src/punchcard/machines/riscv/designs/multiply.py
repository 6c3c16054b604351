"""Products: the columns of a long multiplication in layer A, their carry in B, and half of the sum in the layer after."""

from __future__ import annotations

from punchcard.card.layout import Layout
from punchcard.machines.riscv.designs.base import RiscvSizes
from punchcard.machines.riscv.designs.writing import Gates, appear, replace_where, vanish
from punchcard.machines.riscv.isa import WORD_BITS, Instruction
from punchcard.primitives.literals import absent, conjunction
from punchcard.primitives.logic import and_where
from punchcard.primitives.product import Span, beyond_most, beyond_where, count_spans, counted_where, counts_where
from punchcard.transformer.build import Part, assign, clear
from punchcard.transformer.expression import Expression, rows, stack

PRODUCTS = ("mul", "mulh", "mulhsu", "mulhu")
QUOTIENTS = ("div", "divu", "rem", "remu")
SIGNED_FIRST, SIGNED_SECOND = ("mulh", "mulhsu"), ("mulh",)
SPANS: list[Span] = [(low - 2, high) if c >= WORD_BITS else (low, high) for c, (low, high) in enumerate(count_spans(WORD_BITS))]
"""What the columns may hold: from the high half up to two words are taken away."""


def family(instruction: Instruction) -> str:
    """What an instruction of the extension needs."""
    return "product" if instruction.name in PRODUCTS else "quotient" if instruction.name in QUOTIENTS else "other"


class Multiply:
    """The formulas of products, over the rows of a layout."""

    def __init__(self, sizes: RiscvSizes, layout: Layout) -> None:
        self.layout, self.gates, self.one = layout, Gates(sizes, layout), rows(layout, "inside")
        self.column, self.over, self.value = (rows(layout, name) for name in ("column", "beyond_low", "value"))

    @property
    def columns(self) -> Part:
        """Layer A: the columns, and which half is wanted."""
        one, x, y = self.one, rows(self.layout, "x"), rows(self.layout, "y")
        total, flags = 0.0 * self.column, []
        none = stack(*[0.0 * one] * WORD_BITS)
        for name, closed in self.gates.each(family):
            if name == "product":
                total = total + counts_where(x, y, closed, one)
        for names, sign, other in ((SIGNED_FIRST, x[-1], y), (SIGNED_SECOND, y[-1], x)):
            for signed, closed in self.gates.each(lambda i, names=names: i.name in names):  # type: ignore[misc]
                if signed:
                    total = total - stack(none, and_where(sign.repeat(WORD_BITS), other, closed, one))
        for names in (PRODUCTS[:1], PRODUCTS[1:]):
            flags.append(stack(*(conjunction(closed, one) for wanted, closed in self.gates.each(
                lambda i, names=names: i.name in names) if wanted)).total())  # type: ignore[misc]
        return assign(self.column, total) + appear(rows(self.layout, "doing.low", "doing.high"), stack(*flags), one)

    @property
    def beyond(self) -> Part:
        """Layer B: what the low columns have beyond them."""
        low = slice(0, WORD_BITS)
        return assign(self.over, beyond_where(self.column[low], SPANS[low], 0.0 * self.one, self.one))

    @property
    def result(self) -> Part:
        """The layer after: the half that is wanted, and nothing is left in the rows of numbers."""
        one = self.one
        low, high = slice(0, WORD_BITS), slice(WORD_BITS, None)
        closed = {name: self._closed(name) for name in ("low", "high")}
        bits = (counted_where(self.column[low], SPANS[low], 0.0 * one, 0, closed["low"], one)
                + counted_where(self.column[high], SPANS[high], self.over, beyond_most(SPANS[low]), closed["high"], one))
        return replace_where(self.value, bits, list(closed.values()), one) + clear(self.column) + clear(self.over)

    @property
    def cleared(self) -> Part:
        return vanish(rows(self.layout, "doing.low", "doing.high"), self.one)

    def _closed(self, name: str) -> Expression:
        return absent(rows(self.layout, f"doing.{name}"), {0: 1}, self.one)
