"""Columns of a card that nobody has seen: their rows are bits of unknown words, of which only the declared facts are known.

One column stands for every column of its region: its number is unknown too. So what is shown for it holds for any number of
columns, and the size of a card costs nothing but longer pointers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import z3

from punchcard.card.column import OWN_NUMBER, ColumnWords, rows_of
from punchcard.card.facts import AnyFact, Copies, Fact, Holds
from punchcard.card.layout import Layout
from punchcard.errors import ProofError
from punchcard.machines.stages import Case
from punchcard.proof.forms import NOTHING, Bits, Form, Term, number, signed
from punchcard.proof.solver import Solver
from punchcard.words.word import Word, variable
from punchcard.words.z3_terms import as_truth, z3_terms

LONGEST_CHAIN = 8
"""So often may a column be a copy of one that is a copy."""


@dataclass(eq=False)
class Column:
    """A column: its region, its number, its words by the names of blocks, and its rows when a loop begins."""

    region: str
    place: Term
    words: dict[str, Term]
    rows: list[Form]
    name: str
    attended: list[Sequence[Form]] = field(default_factory=list)
    """Its rows after the attention of each layer, as far as they were asked for."""
    later: list[Sequence[Form]] = field(default_factory=list)
    """Its rows after each layer."""
    taken: dict[tuple[int, int], list[Form]] = field(default_factory=dict)
    """What each head of each layer gives to it."""
    units: dict[int, dict[int, Form]] = field(default_factory=dict)
    """What the hidden units of each layer take, before the ReLU."""


@dataclass(frozen=True)
class Code:
    """A block that holds the columns' numbers, but for an offset: which bit is which, and how a code becomes a number."""

    rows: str
    places: dict[int, int]
    size: int
    first: int
    start: int
    place_bits: int

    def place(self, code: Term) -> Term:
        """The number of the column with this code."""
        offset = z3.simplify(code - z3.BitVecVal(self.first, self.size))
        wide = max(self.size, self.place_bits)
        place = (z3.ZeroExt(wide - self.size, offset) if wide > self.size else offset) + z3.BitVecVal(self.start, wide)
        return z3.simplify(z3.Extract(self.place_bits - 1, 0, place))


class Columns:
    """All columns that a proof has had to do with. Two that may be the same column hold the same words if they are."""

    def __init__(self, layout: Layout, bits: Bits, solver: Solver, case: Case | None = None) -> None:
        self.layout, self.bits, self.solver = layout, bits, solver
        self._case = case
        self._parts = {block.name: block.parts for block in layout.blocks}
        self.place_bits = max(1, (layout.columns - 1).bit_length())
        self._depth = 0
        self.found: dict[str, list[Column]] = {region.name: [] for region in layout.regions}
        self._held = {(fact.rows, fact.region): fact for fact in layout.facts_of(Holds)}
        self._conditions: dict[tuple[int, int | None, bool], Word] = {}
        """The conditions of facts, by fact and offset, when a loop begins and after it."""

    def constant(self, column: int) -> Term:
        """A column's number as a term."""
        return z3.BitVecVal(column, self.place_bits)

    def within(self, place: Term, region: str) -> Term:
        """Whether a number is a column of a region."""
        span = self.layout.region(region)
        wide = z3.ZeroExt(1, place)
        first, stop = (z3.BitVecVal(edge, wide.size()) for edge in (span.start, span.stop))
        return z3.And(z3.ULE(first, wide), z3.ULT(wide, stop))

    def fresh(self, region: str, name: str) -> Column:
        """A column of a region, whichever it is."""
        span = self.layout.region(region)
        if span.stop == span.start + 1:
            return self.at(region, self.constant(span.start))
        place = unknown(name, self.place_bits)
        self.solver.suppose(self.within(place, region))
        return self.at(region, place, name)

    def at(self, region: str, place: Term, name: str | None = None) -> Column:
        """The column of a region with this number. Who asks for it has shown, or supposes, that it is one, or says when."""
        place = z3.simplify(place)
        for column in self.found[region]:
            if column.place.eq(place):
                return column
        name = name or (region if self._is_single(region) else f"{region}#{len(self.found[region])}")
        column = Column(region, place, {}, [NOTHING] * self.layout.width, name)
        self.found[region].append(column)
        inside = z3.simplify(self.within(place, region))
        self._fill(column)
        self._congruence(column, inside)
        for fact in (*self.layout.facts_of(Fact), *self.layout.facts_of(Copies)):
            if fact.region == region:
                for term in self.terms(fact, column.place, column.words):
                    self.solver.suppose(z3.Implies(inside, term))
        return column

    def _fill(self, column: Column) -> None:
        """Give a column its rows and words."""
        for block in self.layout.blocks:
            content, rows = block.holds.get(column.region), self.layout.rows(block.name)
            if content == "one":
                column.rows[rows] = [number(1)] * block.size
            elif content == "bits":
                self._punch(column, block.name, block.size, dict(block.parts))
        self._suppose_case(column)
        self._define(column)
        for block in self.layout.blocks:
            if block.holds.get(column.region) == "bits":
                bits = self.bits.of_word(column.words[block.name])
                column.rows[self.layout.rows(block.name)] = [signed(bit) for bit in bits]

    def _is_single(self, region: str) -> bool:
        span = self.layout.region(region)
        return bool(span.stop == span.start + 1)

    def _punch(self, column: Column, block: str, size: int, parts: dict[str, int]) -> None:
        """Give a block its word: known where a fact says so, else unknown."""
        pieces = parts or {"": size}
        words = []
        for part, length in pieces.items():
            name = f"{block}.{part}" if part else block
            held = self._held.get((name, column.region))
            word = self._number(held, column.place) if held else unknown(f"{name}[{column.name}]", length)
            column.words[name] = word
            words.append(word)
        whole = self._held.get((block, column.region)) if parts else None
        if whole is not None:
            column.words[block] = self._number(whole, column.place)
        elif parts:
            column.words[block] = z3.simplify(z3.Concat(*reversed(words))) if len(words) > 1 else words[0]

    def _suppose_case(self, column: Column) -> None:
        """What a case says of a region of one column."""
        case = self._case
        if case is not None and case.region == column.region:
            word = masked(column.words[case.rows], case.mask, case.match)
            self._put(column, case.rows, word)
            self.solver.suppose(*(z3.Not(has_bits(word, mask, match)) for mask, match in case.but))

    def _number(self, held: Holds, place: Term) -> Term:
        """The number that a block holds in a column, by the column's number."""
        return z3.simplify(self._render(held.number(self.layout), place, {}))

    def _congruence(self, column: Column, inside: Term) -> None:
        """Columns with one number are one column."""
        for other in self.found[column.region]:
            known = z3.is_bv_value(column.place) and z3.is_bv_value(other.place)  # then they are two: see `at`
            if other is not column and not known:
                same = z3.And(inside, column.place == other.place)
                self.solver.suppose(*(z3.Implies(same, word == other.words[name])
                                      for name, word in column.words.items()
                                      if "." not in name and not word.eq(other.words[name])))

    def terms(self, fact: AnyFact, place: Term, words: Mapping[str, Term], after: Layout | None = None) -> list[Term]:
        """What a fact says of a column with these words: when a loop begins, or on a card of the layout `after` it."""
        if isinstance(fact, Fact):
            return [self.condition(self._condition(fact, place, after), place, words)]
        if isinstance(fact, Copies):
            return self._copied(fact, place, words)
        assert isinstance(fact, Holds)
        return [words[fact.rows] == self._number(fact, place)]

    def _condition(self, fact: Fact, place: Term, after: Layout | None = None) -> Word:
        offset = self.offset(fact.region, place) if fact.each else None
        key = id(fact), offset, after is not None
        if key not in self._conditions:
            self._conditions[key] = (fact.condition(self.layout, offset) if after is None
                                     else fact.condition_after(after, offset))
        return self._conditions[key]

    def offset(self, region: str, place: Term) -> int:
        """Which column of its region it is, where that is known."""
        place = z3.simplify(place)
        if not z3.is_bv_value(place):
            raise ProofError(f"a fact about each column of {region!r} by itself: they are not looked at one by one")
        return int(place.as_long()) - int(self.layout.region(region).start)

    def _copied(self, fact: Copies, place: Term, words: Mapping[str, Term]) -> list[Term]:
        """A column that is a copy of a copy, and so on, is known to be one so often. To suppose less is always sound."""
        if self._depth == LONGEST_CHAIN:
            return []
        self._depth += 1
        try:
            return self._copied_from(fact, place, words)
        finally:
            self._depth -= 1

    def _copied_from(self, fact: Copies, place: Term, words: Mapping[str, Term]) -> list[Term]:
        named, inside = self.as_place(words[fact.by]), self.within(place, fact.region)
        regions = fact.sources(self.layout)
        found = [self.names_one(words[fact.by], regions)]
        for region in regions:
            within = z3.simplify(self.within(named, region))
            # only of a column that is one; else its pointer could name anything, and one column would lead to the next
            if self.solver.possible(inside, *found, within):
                # a column that is a copy of itself would be made again and again where its number is not seen to be the same
                itself = region == fact.region and self.solver.holds(z3.Implies(z3.And(inside, within), named == place))
                word = words[fact.of] if itself else self.at(region, named).words[fact.of]
                found.append(z3.Implies(within, words[fact.rows] == word))
        return found

    def names_one(self, by: Term, regions: Sequence[str]) -> Term:
        """Whether a pointer names a column of these regions."""
        pointer = variable("pointer", by.size())
        return self.condition(ColumnWords(self.layout, "").names(pointer, *regions), by, {"pointer": by})

    def codes(self, column: Column) -> list[Code]:
        """The blocks that say which column of its region it is."""
        named = [rows for rows, region in self._held if region == column.region]
        return [code for code in (self.code(column.region, rows, column) for rows in named) if code is not None]

    def code(self, region: str, rows: str, column: Column | None = None) -> Code | None:
        """What a block says of which column it is, with its bits in one column; None where it does not say it."""
        held = self._held.get((rows, region))
        if held is None or not isinstance(held.numbers, range) or len(held.numbers) < 2:
            return None
        bits = self.bits.of_word(column.words[rows]) if column is not None else []
        places = {next(iter(bit.terms)): place for place, bit in enumerate(bits) if len(bit.terms) == 1}
        return Code(rows, places, self.layout.place(rows).size, held.numbers.start, self.layout.region(region).start,
                    self.place_bits)

    def as_place(self, word: Term) -> Term:
        """A word as a column's number. One that is longer must be short enough: who asks has to show it."""
        size = word.size()
        if size <= self.place_bits:
            return z3.simplify(z3.ZeroExt(self.place_bits - size, word)) if size < self.place_bits else word
        return z3.simplify(z3.Extract(self.place_bits - 1, 0, word))

    def condition(self, condition: Word, place: Term, words: Mapping[str, Term]) -> Term:
        """A condition on a column with this number and these words."""
        return as_truth(self._render(condition, place, words))

    def _render(self, word: Word, place: Term, words: Mapping[str, Term]) -> Term:
        return z3_terms(lambda leaf: place if leaf.data == OWN_NUMBER else words[str(leaf.data)])(word)

    def _definitions(self, condition: Word, place: Term, words: Mapping[str, Term]) -> Iterator[tuple[str, Term]]:
        """Rows that a condition leaves one number, with that number."""
        if condition.op == "and_":
            for each in condition.arguments:
                yield from self._definitions(each, place, words)
        elif condition.op == "or_":
            left = [each for each in condition.arguments
                    if not z3.is_false(z3.simplify(self.condition(each, place, words)))]
            if len(left) == 1:
                yield from self._definitions(left[0], place, words)
        elif condition.op == "equal":
            rows, number = condition.arguments
            if rows.op == "variable" and rows.data != OWN_NUMBER and str(rows.data) not in rows_of(number):
                yield str(rows.data), z3.simplify(self._render(number, place, words))

    def _define(self, column: Column) -> None:
        """Put numbers that facts decide in place of unknown ones."""
        for fact in self.layout.facts_of(Fact):
            if fact.region == column.region and not fact.last:
                for rows, term in list(self._definitions(self._condition(fact, column.place), column.place, column.words)):
                    if rows.partition(".")[0] in self._parts and is_unknown(column.words[rows]):
                        self._put(column, rows, term)

    def _put(self, column: Column, rows: str, term: Term) -> None:
        block, _, part = rows.partition(".")
        pieces = {block: term} if not part else {}
        sizes, first = self._parts[block], 0
        for name, size in sizes.items():
            whole = f"{block}.{name}"
            if part == name:
                pieces[whole] = term
            elif not part:
                pieces[whole] = z3.simplify(z3.Extract(first + size - 1, first, term))
            first += size
        column.words |= pieces
        if part:
            joined = [column.words[f"{block}.{name}"] for name in reversed(list(sizes))]
            column.words[block] = z3.simplify(z3.Concat(*joined)) if len(joined) > 1 else joined[0]


def unknown(name: str, size: int) -> Term:
    """A word of which nothing is known. The name is for people: no two are the same word because they have one name."""
    return z3.FreshConst(z3.BitVecSort(size), name)


def extended(word: Term, size: int) -> Term:
    """A word with zeros above."""
    return z3.ZeroExt(size - word.size(), word) if size > word.size() else word


def is_unknown(word: Term) -> bool:
    """Whether nothing is known of a word: it is a name, or names put together."""
    if z3.is_app_of(word, z3.Z3_OP_CONCAT):
        return all(is_unknown(word.arg(i)) for i in range(word.num_args()))
    return bool(z3.is_const(word) and word.decl().kind() == z3.Z3_OP_UNINTERPRETED)


def has_bits(word: Term, mask: int, match: int) -> Term:
    """Whether a word has these bits in the mask."""
    return word & z3.BitVecVal(mask, word.size()) == z3.BitVecVal(match, word.size())


def masked(word: Term, mask: int, match: int) -> Term:
    """A word whose bits in the mask are known."""
    parts = []
    for place in reversed(range(word.size())):
        known = mask >> place & 1
        parts.append(z3.BitVecVal(match >> place & 1, 1) if known else z3.Extract(place, place, word))
    return z3.simplify(z3.Concat(*parts))
