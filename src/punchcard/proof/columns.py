"""Columns of an unknown card: their rows are bits of unknown words, of which only the declared facts are known.

One column represents every column of its region: its number is unknown too. So what is proven for it holds for any number of
columns, and the size of a card costs nothing but longer pointers. The columns of a region with constants of their own, as a
scratchpad's, are looked at one by one. Real numbers are constants, or numbers of which only the limits are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import z3

from punchcard.card.facts import (
    OWN_NUMBER,
    ColumnWords,
    Constants,
    Contents,
    Copies,
    CopiesContents,
    Fact,
    Holds,
    Indicates,
    Uniform,
    rows_of,
)
from punchcard.card.layout import Layout, RowBlock
from punchcard.errors import ProofError
from punchcard.machines.meaning import Case
from punchcard.proof.column import Column, ColumnCode, has_bits, is_unknown, joined, masked, unknown, with_parts
from punchcard.proof.forms import NOTHING, Bits, Form, Real, Term, gated, number, signed
from punchcard.proof.solver import Solver
from punchcard.words.word import Word, variable
from punchcard.words.z3_terms import as_bits, as_truth, z3_terms

LONGEST_CHAIN = 8
"""So often may a column be a copy of one that is a copy."""
UNLIMITED = Fraction(2**60)
"""The limit of numbers for which none is declared."""


@dataclass(frozen=True)
class KnownContents:
    """What is supposed of one column: parts of its contents are these numbers."""

    region: str
    place: Term
    parts: Mapping[str, int]


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
        self._constants = {(fact.region, fact.rows): fact.values for fact in layout.facts_of(Constants)}
        self._uniform = {(fact.region, fact.rows) for fact in layout.facts_of(Uniform)}
        self._copies = {(fact.region, fact.rows): fact for fact in layout.facts_of(CopiesContents)}
        self.indicates = {(fact.region, fact.rows): fact for fact in layout.facts_of(Indicates)}
        self.contents = {fact.region: fact for fact in layout.facts_of(Contents)}
        self._pools: dict[str, list[Column]] = {}
        self._listed: dict[str, bool] = {}
        self._shared: dict[tuple[str, str], dict[str, Term]] = {}
        """The words of blocks that are the same in all columns of a region."""
        self._contents_of: dict[Column, list[Form]] = {}
        self.known_contents: KnownContents | None = None
        self.promised: list[tuple[str, Term, list[Form]]] = []
        """Columns whose contents are known by promise: region, number, entries."""

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
        """The column of a region with this number. Who asks for it has proven, or supposes, that it is one, or says when."""
        place = z3.simplify(place)
        for column in self.found[region]:
            if column.place.eq(place) or (name is None and self._is_same(column, place)):
                return column
        name = name or (region if self._is_single(region) else f"{region}#{len(self.found[region])}")
        column = Column(region, place, {}, [NOTHING] * self.layout.width, name)
        self.found[region].append(column)
        inside = z3.simplify(self.within(place, region))
        self._fill(column)
        self._congruence(column, inside)
        facts: list[Fact | Copies] = [*self.layout.facts_of(Fact), *self.layout.facts_of(Copies)]
        for fact in facts:
            if fact.region == region:
                for term in self.terms(fact, column.place, column.words):
                    self.solver.suppose(z3.Implies(inside, term))
        return column

    def _fill(self, column: Column) -> None:
        """Give a column its rows and words."""
        contents = self.contents.get(column.region)
        if contents is not None:
            self._hold(column, contents)
        for block in self.layout.blocks:
            if block.holds.get(column.region) == "bits":
                self._punch(column, block.name, block.size, dict(block.parts))
        self._suppose_case(column)
        self._define(column)
        for block in self.layout.blocks:
            rows = self._entries(column, block)
            if rows is not None:
                column.rows[self.layout.rows(block.name)] = rows

    def _entries(self, column: Column, block: RowBlock) -> list[Form] | None:
        """What a block holds in a column, once its words are known; None where it is 0, or holds contents."""
        region, content, contents = column.region, block.holds.get(column.region), self.contents.get(column.region)
        if (region, block.name) in self._constants:
            return [number(value) for value in self.constants(column, block.name)]
        if (region, block.name) in self.indicates:
            return self.indicated(self.indicates[region, block.name], column, column.words)
        if content == "one":
            return [number(1)] * block.size
        if content == "bits":
            return [signed(bit) for bit in self.bits.of_word(column.words[block.name])]
        if content != "real" or (contents is not None and block.name in contents.blocks):
            return None
        limit = UNLIMITED if block.limit is None else Fraction(block.limit)
        return [self.bits.real(Real(f"{block.name} {row} of {column.name}", -limit, limit)) for row in range(block.size)]

    def _is_single(self, region: str) -> bool:
        span = self.layout.region(region)
        return bool(span.stop == span.start + 1)

    def _punch_word(self, column: Column, block: str, size: int, parts: dict[str, int]) -> None:
        """Give a block its word: known where a fact says so, else unknown."""
        sizes, words = {f"{block}.{part}": length for part, length in parts.items()} or {block: size}, dict[str, Term]()
        for name, length in sizes.items():
            held = self._held.get((name, column.region))
            words[name] = self._number(held, column.place) if held else unknown(f"{name}[{column.name}]", length)
        if parts:
            whole = self._held.get((block, column.region))
            words[block] = self._number(whole, column.place) if whole else joined(words.values())
        column.words |= words

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

    def terms(
        self, fact: Fact | Copies | Holds, place: Term, words: Mapping[str, Term], after: Layout | None = None,
    ) -> list[Term]:
        """What a fact says of a column with these words: when a loop begins, or on a card of the layout `after` it."""
        if isinstance(fact, Fact):
            return [self.condition(self._condition(fact, place, after), place, words)]
        if isinstance(fact, Copies):
            return self._copied(fact, place, words)
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
        named, inside = self.as_place(words[fact.by]), self.within(place, fact.region)
        regions = fact.sources(self.layout)
        found = [self.names_one(words[fact.by], regions)]
        for region in regions:
            within = z3.simplify(self.within(named, region))
            # only of a column that is one; else its pointer could name anything, and one column would lead to the next
            if self.solver.possible(inside, *found, within):
                # a column that is a copy of itself would be made again and again where its number is not seen to be the same
                itself = region == fact.region and self.solver.holds(z3.Implies(z3.And(inside, within), named == place))
                self._depth += 1
                word = words[fact.of] if itself else self.at(region, named).words[fact.of]
                self._depth -= 1
                found.append(z3.Implies(within, words[fact.rows] == word))
        return found

    def names_one(self, by: Term, regions: Sequence[str]) -> Term:
        """Whether a pointer names a column of these regions."""
        pointer = variable("pointer", by.size())
        return self.condition(ColumnWords(self.layout, "").names(pointer, *regions), by, {"pointer": by})

    def codes(self, column: Column) -> list[ColumnCode]:
        """The blocks that say which column of its region it is."""
        named = [rows for rows, region in self._held if region == column.region]
        return [code for code in (self.code(column.region, rows, column) for rows in named) if code is not None]

    def code(self, region: str, rows: str, column: Column | None = None) -> ColumnCode | None:
        """What a block says of which column it is, with its bits in one column; None where it does not say it."""
        held = self._held.get((rows, region))
        if held is None or not isinstance(held.numbers, range) or len(held.numbers) < 2:
            return None
        bits = self.bits.of_word(column.words[rows]) if column is not None else []
        places = {next(iter(bit.terms)): place for place, bit in enumerate(bits) if len(bit.terms) == 1}
        return ColumnCode(places, self.layout.place(rows).size, held.numbers.start, self.layout.region(region).start,
                          self.place_bits)

    def as_place(self, word: Term) -> Term:
        """A word as a column's number. One that is longer must be short enough: the caller has to show it."""
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
                yield str(rows.data), z3.simplify(as_bits(self._render(number, place, words)))

    def _define(self, column: Column) -> None:
        """Put numbers that facts decide in place of unknown ones."""
        for fact in self.layout.facts_of(Fact):
            if fact.region == column.region and not fact.last:
                for rows, term in list(self._definitions(self._condition(fact, column.place), column.place, column.words)):
                    if rows.partition(".")[0] in self._parts and is_unknown(column.words[rows]):
                        self._put(column, rows, term)

    def _put(self, column: Column, rows: str, term: Term) -> None:
        block, _, part = rows.partition(".")
        if part:
            column.words[rows] = term
            column.words[block] = joined(column.words[f"{block}.{name}"] for name in self._parts[block])
        else:
            column.words |= with_parts(block, self._parts[block], term)

    # Real numbers

    def _is_same(self, column: Column, place: Term) -> bool:
        """Whether a column is surely the one with a number. Columns with real numbers must be: these are then the same.

        It is enough that they are where the number asked for is one of the region: the caller takes nothing elsewhere.
        """
        region = column.region
        if region not in self.contents and all(block.holds.get(region) != "real" for block in self.layout.blocks):
            return False
        return not self.is_listed(region) and self.solver.holds(
            z3.Implies(self.within(place, region), column.place == place))

    def is_listed(self, region: str) -> bool:
        """Whether the columns of a region are looked at one by one: it has one, or they have constants or no numbers."""
        if region not in self._listed:
            own = any(where == region and values.shape[1] > 1 for (where, _), values in self._constants.items())
            named = any(self.code(region, rows) is not None for rows, where in self._held if where == region)
            self._listed[region] = own or not named or self._is_single(region)
        return self._listed[region]

    def pool(self, region: str) -> list[Column]:
        """All columns of such a region."""
        if region not in self._pools:
            span = self.layout.region(region)
            self._pools[region] = [self.at(region, self.constant(place)) for place in range(span.start, span.stop)]
        return self._pools[region]

    def constants(self, column: Column, rows: str) -> list[float]:
        values = self._constants.get((column.region, rows))
        if values is None:
            raise ProofError(f"{rows!r} in {column.region} holds no constants")
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
            self._punch_word(any_, block, place.size, dict(place.block.parts))
        return words

    def _punch(self, column: Column, block: str, size: int, parts: dict[str, int]) -> None:
        shows = self._copies.get((column.region, block))
        if shows is not None:
            column.words |= self._copied_contents(shows)
        elif (column.region, block) in self._uniform:
            column.words |= self._words_of(column.region, block)
        else:
            self._punch_word(column, block, size, parts)

    def _copied_contents(self, shows: CopiesContents) -> dict[str, Term]:
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
        self._contents_of[column] = held
        if len(contents.blocks) == 1:
            column.rows[self.layout.rows(first.name)] = held
            return
        column.words["written"] = unknown(f"written[{column.name}]", 1)
        there = [gated(column.words["written"] == 1, form, self.bits) for form in held]
        column.rows[self.layout.rows(contents.blocks[1])] = there
        # the rest of it, so that the two together are the contents, term by term
        column.rows[self.layout.rows(first.name)] = [form - other for form, other in zip(held, there, strict=True)]

    def contents_of(self, column: Column) -> list[Form]:
        if column not in self._contents_of:
            raise ProofError(f"{column.region} holds no contents")
        return self._contents_of[column]

    def _word(self, column: Column, contents: Contents) -> Term:
        of = self.known_contents
        known = of.parts if of is not None and of.region == column.region and of.place.eq(column.place) else {}
        words = {}
        for part, size in contents.parts.items():
            name = f"{contents.name}.{part}"
            words[name] = z3.BitVecVal(known[part], size) if part in known else unknown(f"{name}[{column.name}]", size)
        column.words |= {**words, contents.name: joined(words.values())}
        return column.words[contents.name]
