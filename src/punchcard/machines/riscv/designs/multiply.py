"""Products: four products of halves as numbers, whose sums become bits digit after digit.

With x = 2^16 X + x' and y = 2^16 Y + y',

    low      x' y'                                    below 2^32
    middle   X y' + x' Y + (low / 2^16)               below 2^34
    high     X Y + (middle / 2^16) - what is signed   0 to 2^34, with 2^33 added to it

The low word of the product is 16 bits of low and 16 of middle, the high word 32 bits of high. A signed word is its unsigned
number less 2^32 where its highest bit is 1, so the other word is taken away from high.
"""

from __future__ import annotations

from punchcard.card.layout import Layout
from punchcard.machines.riscv.designs.base import HALF, RiscvSizes
from punchcard.machines.riscv.designs.writing import Gates, appear, vanish
from punchcard.machines.riscv.isa import WORD_BITS, Instruction
from punchcard.primitives.bits import number
from punchcard.primitives.literals import absent, bits_where, conjunction
from punchcard.primitives.quotient import digit_of, times
from punchcard.transformer.build import Part, assign, clear
from punchcard.transformer.expression import Expression, relu, rows, stack

PRODUCTS = ("mul", "mulh", "mulhsu", "mulhu")
QUOTIENTS = ("div", "divu", "rem", "remu")
SIGNED = (("mulh", "mulhsu"), ("mulh",))
"""Where the first word is signed, and where the second."""
SIZE = 4
"""Bits of a digit."""
SUM_BITS = 36
"""Of middle and high: nine digits."""
SCHEDULE = {"low": 0, "middle": 4, "high": 9}
"""The step in which each sum has its first digit: then what it is made of is known."""


def family(instruction: Instruction) -> str:
    """What an instruction of the extension needs."""
    return "product" if instruction.name in PRODUCTS else "quotient" if instruction.name in QUOTIENTS else "other"


class Multiply:
    """The formulas of products, over the rows of a layout."""

    def __init__(self, sizes: RiscvSizes, layout: Layout) -> None:
        self.layout, self.gates, self.one = layout, Gates(sizes, layout), rows(layout, "inside")
        self.sums = {name: rows(layout, f"sum.{name}") for name in SCHEDULE}
        self.bits = {name: rows(layout, f"digits.{name}") for name in SCHEDULE}
        self.flags = rows(layout, "doing.multiply", "doing.high")

    @property
    def products(self) -> Part:
        """Layer A: the products of halves, and which word is wanted."""
        one, x, y = self.one, rows(self.layout, "x"), rows(self.layout, "y")
        low, high, size = slice(0, HALF), slice(HALF, None), 1 << HALF
        total: dict[str, Expression] = dict.fromkeys(SCHEDULE, 0.0 * one)
        for name, closed in self.gates.each(family):
            if name != "product":
                continue
            for first in (low, high):
                for second in (low, high):
                    into = {0: "low", HALF: "middle", 2 * HALF: "high"}[(first.start or 0) + (second.start or 0)]
                    factor = number(x[first], one) - size * closed
                    total[into] = total[into] + times(y[second], factor, size, one)
        for names, sign, other in zip(SIGNED, (x[-1], y[-1]), (y, x), strict=True):
            for closed in self._open(names):
                closed = closed + absent(sign, {0: 1}, one)
                total["high"] = total["high"] - relu(number(other, one) - (1 << WORD_BITS) * closed)
        wanted = [stack(*(conjunction(closed, one) for closed in self._open(names))).total()
                  for names in (PRODUCTS, PRODUCTS[1:])]
        part = appear(self.flags, stack(*wanted), one)
        for name, row in self.sums.items():
            part = part + assign(row, total[name])
        return part

    def _open(self, names: tuple[str, ...]) -> list[Expression]:
        """What is absent for the instruction to be one of these."""
        return [closed for wanted, closed in self.gates.each(lambda i: i.name in names) if wanted]

    def step(self, step: int) -> Part:
        """The digits of the sums that can be made in this step, 0 being layer B."""
        one, part, closed = self.one, Part(), absent(self.flags[0], {0: 1}, self.one)
        for name, begin in SCHEDULE.items():
            bits = self.bits[name]
            if 0 <= step - begin < bits.size // SIZE:
                place = digit_of(bits.size, SIZE, step - begin)
                found = place.where(self._sum(name), bits, (1 << SUM_BITS) - 1, closed, one)
                part = part + appear(bits[place.slice], found, one)
                if step - begin == bits.size // SIZE - 1:
                    part = part + clear(self.sums[name])
        return part

    def _sum(self, name: str) -> Expression:
        """The number whose bits are wanted; of the sums below it the bits above 16 are known."""
        form: Expression = self.sums[name]
        if name != "low":
            form = form + number(self.bits["low" if name == "middle" else "middle"][HALF:], self.one)
        return form + 2 * (1 << WORD_BITS) * self.one if name == "high" else form

    @property
    def result(self) -> tuple[Expression, list[Expression]]:
        """The word that is wanted, 0 or 1, and the gates that let it through."""
        low = stack(self.bits["low"][:HALF], self.bits["middle"][:HALF])
        gates = [absent(self.flags, {0: 1, 1: high}, self.one) for high in (0, 1)]
        return (bits_where(low, gates[0], self.one) + bits_where(self.bits["high"][:WORD_BITS], gates[1], self.one), gates)

    @property
    def cleared(self) -> Part:
        part = vanish(self.flags, self.one)
        for bits in self.bits.values():
            part = part + vanish(bits, self.one)
        return part
