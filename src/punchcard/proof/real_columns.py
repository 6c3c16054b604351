"""Columns of a card that hold real numbers too: constants that are known, and numbers of which only the limits are.

The columns of a region with constants of their own, as a scratchpad's, are looked at one by one. In every other region one
column stands for all, as in `columns`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import z3

from punchcard.card.contents import Constants, Contents, CopiesContents, Uniform
from punchcard.card.facts import Indicates
from punchcard.card.layout import Layout
from punchcard.errors import ProofError
from punchcard.proof.columns import Column, Columns, unknown
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
        self._constants = {(fact.region, fact.rows): fact.values for fact in layout.facts_of(Constants)}
        self._uniform = {(fact.region, fact.rows) for fact in layout.facts_of(Uniform)}
        self._copies = {(fact.region, fact.rows): fact for fact in layout.facts_of(CopiesContents)}
        self.indicates = {(fact.region, fact.rows): fact for fact in layout.facts_of(Indicates)}
        self.contents = {fact.region: fact for fact in layout.facts_of(Contents)}
        self._pools: dict[str, list[Column]] = {}
        self._shared: dict[tuple[str, str], dict[str, Term]] = {}
        """The words of blocks that are the same in all columns of a region."""
        self.held: dict[Column, list[Form]] = {}
        """The contents of columns."""
        self.case: Case | None = None
        self.promised: list[tuple[str, Term, list[Form]]] = []
        """Columns whose contents are known by promise: region, number, entries."""

    def at(self, region: str, place: Term, name: str | None = None) -> Column:
        """Columns whose numbers are shown to be equal are one: their real numbers are the same.

        It is enough that they are where the number asked for is one of the region: who asks takes nothing from it elsewhere.
        """
        place = z3.simplify(place)
        if name is None and not self.is_listed(region):
            for column in self.found[region]:
                if column.place.eq(place) or self.solver.holds(
                        z3.Implies(self.within(place, region), column.place == place)):
                    return column
        return super().at(region, place, name)

    def is_listed(self, region: str) -> bool:
        """Whether the columns of a region are looked at one by one."""
        span = self.layout.region(region)
        return span.stop == span.start + 1 or any(
            where == region and values.shape[1] > 1 for (where, _), values in self._constants.items())

    def pool(self, region: str) -> list[Column]:
        """All columns of such a region."""
        if region not in self._pools:
            span = self.layout.region(region)
            self._pools[region] = [self.at(region, self.constant(place)) for place in range(span.start, span.stop)]
        return self._pools[region]

    def standing(self, column: Column, rows: str) -> list[float]:
        """The constants of a column."""
        values = self._constants[column.region, rows]
        if values.shape[1] == 1:
            return [float(value) for value in values[:, 0]]
        return [float(value) for value in values[:, self.offset(column.region, column.place)]]

    def shared(self, region: str, rows: str) -> Term:
        """The word of a block that is the same in all columns of a region."""
        return self._words_of(region, rows)[rows]

    def _words_of(self, region: str, block: str) -> dict[str, Term]:
        words = self._shared.setdefault((region, block), {})
        if not words:
            place = self.layout.place(block)
            any_ = Column(region, self.constant(self.layout.region(region).start), words, [], region)
            super()._punch(any_, block, place.size, dict(place.block.parts))
        return words

    def _punch(self, column: Column, block: str, size: int, parts: dict[str, int]) -> None:
        shows = self._copies.get((column.region, block))
        if shows is not None:
            column.words |= self._shown(shows)
        elif (column.region, block) in self._uniform:
            column.words |= self._words_of(column.region, block)
        else:
            super()._punch(column, block, size, parts)

    def _shown(self, shows: CopiesContents) -> dict[str, Term]:
        """The words of a block that shows what another column holds."""
        if (shows.region, shows.by) not in self._uniform:
            raise ProofError(f"{shows.about}: {shows.by!r} is not the same in all columns of {shows.region}")
        of = shows.of(self.layout)
        held = self.at(of.region, self.as_place(self.shared(shows.region, shows.by))).words
        return {shows.rows + name.removeprefix(of.name): held[name] for name in (of.name, *of.places())}

    def indicated(self, fact: Indicates, column: Column, words: dict[str, Term]) -> list[Form]:
        """1 where the conditions hold of a column with these words, else 0."""
        conditions = fact.conditions(self.layout, self.offset(column.region, column.place))
        return [self.bits.form(self.condition(condition, column.place, words)) for condition in conditions]

    def _fill(self, column: Column) -> None:
        contents = self.contents.get(column.region)
        if contents is not None:
            self._hold(column, contents)
        super()._fill(column)
        for block in self.layout.blocks:
            rows = self.layout.rows(block.name)
            if (column.region, block.name) in self._constants:
                column.rows[rows] = [number(value) for value in self.standing(column, block.name)]
            elif (column.region, block.name) in self.indicates:
                column.rows[rows] = self.indicated(self.indicates[column.region, block.name], column, column.words)
            elif block.holds.get(column.region) == "real" and (contents is None or block.name not in contents.blocks):
                limit = UNLIMITED if block.limit is None else Fraction(block.limit)
                column.rows[rows] = [self.bits.real(Real(f"{block.name} {row} of {column.name}", -limit, limit))
                                     for row in range(block.size)]

    def _hold(self, column: Column, contents: Contents) -> None:
        """Give a column its contents, in one of the blocks."""
        first = next(block for block in self.layout.blocks if block.name == contents.blocks[0])
        known = next((entries for region, place, entries in self.promised
                      if region == column.region and place.eq(column.place)), None)
        if known is not None:
            held = known + [NOTHING] * (first.size - len(known))
        elif contents.parts:
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
        column.words["written"] = unknown(f"written[{column.name}]", 1)
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
            free = unknown(f"{name}[{column.name}]", size)
            column.words[name] = z3.BitVecVal(known[part], size) if part in known else free
            words.append(column.words[name])
        column.words[contents.name] = z3.simplify(z3.Concat(*reversed(words))) if len(words) > 1 else words[0]
        return column.words[contents.name]
