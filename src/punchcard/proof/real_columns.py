"""Columns of a card that hold real numbers too: constants that are known, and numbers of which only the limits are.

The columns of a region with constants of their own, as a scratchpad's, are looked at one by one. In every other region one
column stands for all, as in `columns`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import z3

from punchcard.card.contents import Contents, Stands, Uniform
from punchcard.card.layout import Layout
from punchcard.proof.columns import Column, Columns
from punchcard.proof.forms import NOTHING, Bits, Form, Real, Term, gated, number, signed
from punchcard.proof.solver import Solver

UNLIMITED = Fraction(2**60)
"""The limit of numbers for which none is declared."""


@dataclass(frozen=True)
class Case:
    """What is supposed of one column: parts of its contents are these numbers."""

    region: str
    place: Term
    parts: Mapping[str, int]


class RealColumns(Columns):
    """As `Columns`, with constants, one word for a whole region, and contents that stand in one of two blocks."""

    def __init__(self, layout: Layout, bits: Bits, solver: Solver) -> None:
        super().__init__(layout, bits, solver)
        facts = layout.facts
        self._stands = {(fact.region, fact.rows): fact.values for fact in facts if isinstance(fact, Stands)}
        self._uniform = {(fact.region, fact.rows) for fact in facts if isinstance(fact, Uniform)}
        self.contents = {fact.region: fact for fact in facts if isinstance(fact, Contents)}
        self._pools: dict[str, list[Column]] = {}
        self.held: dict[Column, list[Form]] = {}
        """The contents of columns."""
        self.case: Case | None = None

    def at(self, region: str, place: Term, name: str | None = None) -> Column:
        """Columns whose numbers are shown to be equal are one: their real numbers are the same."""
        place = z3.simplify(place)
        if name is None and not self.is_listed(region):
            for column in self.found[region]:
                if column.place.eq(place) or self.solver.holds(column.place == place):
                    return column
        return super().at(region, place, name)

    def is_listed(self, region: str) -> bool:
        """Whether the columns of a region are looked at one by one."""
        span = self.layout.region(region)
        return span.stop == span.start + 1 or any(
            where == region and values.shape[1] > 1 for (where, _), values in self._stands.items())

    def pool(self, region: str) -> list[Column]:
        """All columns of such a region."""
        if region not in self._pools:
            span = self.layout.region(region)
            self._pools[region] = [self.at(region, self.constant(place)) for place in range(span.start, span.stop)]
        return self._pools[region]

    def standing(self, column: Column, rows: str) -> list[float]:
        """The constants of a column."""
        values = self._stands[column.region, rows]
        if values.shape[1] == 1:
            return [float(value) for value in values[:, 0]]
        place = z3.simplify(column.place).as_long() - self.layout.region(column.region).start
        return [float(value) for value in values[:, place]]

    def _punch(self, column: Column, block: str, size: int, parts: dict[str, int]) -> None:
        name = column.name
        if (column.region, block) in self._uniform:
            column.name = f"every {column.region}"
        super()._punch(column, block, size, parts)
        column.name = name

    def _fill(self, column: Column) -> None:
        contents = self.contents.get(column.region)
        if contents is not None:
            self._hold(column, contents)
        super()._fill(column)
        for block in self.layout.blocks:
            rows = self.layout.rows(block.name)
            if (column.region, block.name) in self._stands:
                column.rows[rows] = [number(value) for value in self.standing(column, block.name)]
            elif block.holds.get(column.region) == "real" and (contents is None or block.name not in contents.blocks):
                limit = UNLIMITED if block.limit is None else Fraction(block.limit)
                column.rows[rows] = [self.bits.real(Real(f"{block.name} {row} of {column.name}", -limit, limit))
                                     for row in range(block.size)]

    def _hold(self, column: Column, contents: Contents) -> None:
        """Give a column its contents, in one of the blocks."""
        first = next(block for block in self.layout.blocks if block.name == contents.blocks[0])
        if contents.parts:
            held = [signed(bit) for bit in self.bits.of_word(self._word(column, contents))]
            held += [NOTHING] * (first.size - len(held))
        else:
            limit = UNLIMITED if first.limit is None else Fraction(first.limit)
            names = [f"{contents.name} {row} of {column.name}" for row in range(first.size)]
            held = [self.bits.real(Real(name, -limit, limit)) for name in names]
        self.held[column] = held
        if len(contents.blocks) == 1:
            column.rows[self.layout.rows(first.name)] = held
            return
        column.words["written"] = z3.BitVec(f"written[{column.name}]", 1)
        there = [gated(column.words["written"] == 1, form, self.bits) for form in held]
        column.rows[self.layout.rows(contents.blocks[1])] = there
        # the rest of it, so that the two together are the contents, term by term
        column.rows[self.layout.rows(first.name)] = [form - other for form, other in zip(held, there, strict=True)]

    def _word(self, column: Column, contents: Contents) -> Term:
        case = self.case
        known = case.parts if case is not None and case.region == column.region and case.place.eq(column.place) else {}
        words = []
        for part, size in contents.parts.items():
            name = f"{contents.name}.{part}"
            unknown = z3.BitVec(f"{name}[{column.name}]", size)
            column.words[name] = z3.BitVecVal(known[part], size) if part in known else unknown
            words.append(column.words[name])
        column.words[contents.name] = z3.simplify(z3.Concat(*reversed(words))) if len(words) > 1 else words[0]
        return column.words[contents.name]
