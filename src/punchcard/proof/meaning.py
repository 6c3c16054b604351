"""What a machine's `meaning` says (`punchcard.machines.meaning`), as a proof needs it: words become terms of the solver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, cast

import z3

from punchcard.card.layout import RowBlock
from punchcard.errors import ProofError
from punchcard.machines.meaning import (
    Addend,
    ColumnBefore,
    Division,
    Entries,
    Entry,
    ErrorClaim,
    Halves,
    RealMeaning,
)
from punchcard.proof.column import Column, joined, unknown, with_parts
from punchcard.proof.columns import Columns, KnownContents
from punchcard.proof.forms import NOTHING, Form, Term, choose, number, signed, weighted
from punchcard.proof.loop import PromisedInteger, SymbolicLoop
from punchcard.proof.products import ProductWords
from punchcard.proof.steps import at_least, equal
from punchcard.transformer.expression import Expression
from punchcard.transformer.sparse import SparseMatrix
from punchcard.words.word import FALSE, TRUE, Word, constant, variable
from punchcard.words.z3_terms import as_bits, as_truth, z3_terms

Expected: TypeAlias = Callable[[ColumnBefore], Word]


class Before:
    """A column as it was when the loop began: its numbers by the names of rows."""

    def __init__(self, card: ProofMeaning, column: Column) -> None:
        self.card, self.column = card, column

    def __getitem__(self, rows: str) -> Word:
        found = self.column.words.get(rows)
        if found is None:
            raise ProofError(f"no numbers at {rows!r} in {self.column.region}: the layout declares no bits there")
        return self.card.word(found, f"{rows} of {self.column.name}")

    @property
    def number(self) -> Word:
        return self.card.word(self.column.place, self.column.name)

    def is_at(self, word: Word) -> Word:
        size = max(word.size, self.card.place_bits)
        return word.extend(size).equals(self.number.extend(size))

    def constants(self, rows: str) -> list[float]:
        return self.card.columns.constants(self.column, rows)

    @property
    def contents(self) -> list[Form]:
        return self.card.columns.contents_of(self.column)


@dataclass(frozen=True)
class Midway:
    """What is expected at some rows of a region, after a layer or after its heads alone."""

    layer: int
    rows: str
    region: str
    about: str
    entries: Callable[[Before], list[Form]]
    heads_only: bool


@dataclass(frozen=True)
class Kept:
    """What is expected of a region's contents: they stay, or where a condition holds they are replaced."""

    region: str
    replaced: Callable[[Before], Term]
    by: Callable[[Before], list[Form]]
    about: str


def forms(entries: Sequence[Entry]) -> list[Form]:
    """Entries as what a proof knows them to be: it has made all of them."""
    return cast(list[Form], list(entries))


class ProofMeaning:
    """A card before a loop, and what is expected of it after. Words are rendered once in each part of a proof."""

    def __init__(self, columns: Columns, loop: SymbolicLoop | None = None, case: str | None = None) -> None:
        self.loop, self.columns, self.case = loop, columns, case
        self.expected: dict[tuple[str, str], Expected] = {}
        self.where: dict[tuple[str, str], Term] = {}
        self.products = ProductWords(columns.bits, columns.solver)
        self._terms: dict[Word, Term] = {}
        self._render = z3_terms(self._terms.__getitem__, {
            "multiply": self._multiply, "quotient": self._divide, "remainder": self._divide})
        # what a machine with real numbers says beyond that
        self.cases: tuple[str, ...] = ()
        self.excluded: list[Term] = []
        """That none of the cases is so."""
        self.expected_midway: list[Midway] = []
        self.kept: list[Kept] = []
        self.promised: dict[str, Fraction] = {}
        """Rows that hold integers by promise, with the tolerance."""
        self.promises: list[str] = []
        """What is promised of columns, in words."""
        self.errors: list[ErrorClaim] = []

    # Words and terms

    def word(self, term: Term, name: str = "") -> Word:
        """A term of the solver as a word: a constant, or a variable in its place."""
        if z3.is_bv_value(term):
            return constant(term.as_long(), term.size())
        if z3.is_true(term) or z3.is_false(term):
            return TRUE if z3.is_true(term) else FALSE
        found = variable((name, term.get_id()), 1 if z3.is_bool(term) else term.size())
        self._terms[found] = term
        return found

    def term(self, word: Word) -> Term:
        """A word as a bit vector of the solver."""
        return z3.simplify(as_bits(self._render(word)))

    def condition(self, word: Word) -> Term:
        """A word of one bit as a condition of the solver."""
        return z3.simplify(as_truth(self._render(word)))

    def simplified(self, word: Word) -> Word:
        return self.word(self.condition(word) if word.size == 1 else self.term(word))

    # The card before

    @property
    def place_bits(self) -> int:
        return self.columns.place_bits

    @property
    def reals(self) -> RealMeaning:
        if self.loop is None or not self.loop.has_reals:
            raise ProofError("the machine speaks of real numbers, and its layout has none")
        return self

    def first(self, region: str) -> int:
        return int(self.columns.layout.region(region).start)

    def before(self, column: Column) -> Before:
        """A column as it was when the loop began."""
        return Before(self, column)

    def only(self, region: str) -> Before:
        return self.before(self.columns.at(region, self.columns.constant(self.columns.layout.region(region).start)))

    def at(self, region: str, number: Word) -> Before:
        return self.before(self.columns.at(region, self.place(number)))

    def place(self, number: Word) -> Term:
        """A word as a column's number."""
        return self.columns.as_place(self.term(number))

    def named(self, region: str, rows: str, code: Word) -> Before:
        found = self.columns.code(region, rows)
        if found is None:
            raise ProofError(f"no numbers of columns at {rows!r} in {region}: the layout does not say that they are a range")
        return self.before(self.columns.at(region, found.place(self.term(code))))

    def read(self, rows: str, regions: Sequence[str], number: Word) -> Word:
        place = self.place(number)
        return self._one_of([(self.columns.within(place, region), self.at(region, number)) for region in regions], rows)

    def read_named(self, rows: str, regions: Sequence[str], by: str, code: Word) -> Word:
        columns = [self.named(region, by, code) for region in regions]
        return self._one_of([(self.columns.within(each.column.place, each.column.region), each) for each in columns], rows)

    def _one_of(self, columns: Sequence[tuple[Term, Before]], rows: str) -> Word:
        """The number at some rows of the first column whose condition holds; of the last, no condition is asked for."""
        found = columns[-1][1][rows]
        for inside, column in reversed(columns[:-1]):
            found = self.word(inside).choose(column[rows], found)
        return self.simplified(found)

    # The card after

    def expect(self, rows: str, region: str, value: Word | Expected, where: Word | None = None) -> None:
        self.columns.layout.rows(rows)
        self.columns.layout.region(region)
        block, _, part = rows.partition(".")
        for name, where_else in self.expected:
            if where_else == region and name != rows and (name == block if part else name.startswith(f"{block}.")):
                raise ProofError(f"{name!r} and {rows!r} in {region!r}: say what the block holds, or its parts, not both")
        self.expected[rows, region] = (lambda column: value) if isinstance(value, Word) else value
        self.where.pop((rows, region), None)  # what was left open before is said now
        if where is not None:
            self.only_where(rows, region, where)

    def only_where(self, rows: str, region: str, where: Word) -> None:
        self.where[rows, region] = self.condition(where)

    def leave(self, rows: str, region: str) -> None:
        self.columns.layout.rows(rows)
        self.only_where(rows, region, FALSE)

    def says(self, block: RowBlock, region: str) -> bool:
        """Whether anything is declared of what a block or a part of it holds."""
        return any((name, region) in self.expected for name in block.names)

    def leaves_open(self, block: RowBlock, region: str) -> bool:
        """Whether a block or a part of it may hold any bits somewhere."""
        return any((name, region) in self.where for name in block.names)

    def expected_term(self, rows: str, column: Column) -> Term | None:
        """The word at some rows of a column after the loop, or None if nothing is declared of it."""
        expected = self.expected.get((rows, column.region))
        return None if expected is None else self.term(expected(self.before(column)))

    # Hints

    def lemma(self, layer: int, rows: str, region: str, word: Word) -> Word:
        if self.loop is None:
            return word
        name = self._name(rows, region, f"{rows} after layer {layer}", word)
        place = self.columns.layout.rows(rows)
        self.loop.lemmas[layer, region, place.start, place.stop] = name
        return self.word(name)

    def difference(self, layer: int, rows: str, region: str, more: Word, less: Word) -> tuple[Word, Word]:
        if self.loop is None:
            return more, less
        names = (self._name(rows, region, f"the first word of {rows}", more),
                 self._name(rows, region, f"the second word of {rows}", less))
        place = self.columns.layout.rows(rows)
        self.loop.differences[layer, region, place.start, place.stop] = names
        return self.word(names[0]), self.word(names[1])

    def _name(self, rows: str, region: str, name: str, word: Word) -> Term:
        """A name for a word that is declared to be at some rows of a region."""
        assert self.loop is not None
        span, size = self.columns.layout.region(region), self.columns.layout.place(rows).size
        if span.stop != span.start + 1:
            raise ProofError(f"a lemma about {region!r}: it has {span.stop - span.start} columns, a lemma is about one")
        if word.size != size:
            raise ProofError(f"a lemma of {word.size} bits about {rows!r}, which has {size}")
        named = unknown(name, size)
        self.loop.solver.suppose(named == self.term(word))
        return named

    def hint(self, layer: int, rows: str, region: str, word: Word, first: int = 0) -> None:
        if self.loop is not None:
            start = self.columns.layout.rows(rows).start + first
            self.loop.lemmas[layer, region, start, start + word.size] = self.term(word)

    def hint_sum(self, layer: int, rows: str, region: str, *addends: Addend[Word], constant: int = 0, row: int = 0) -> None:
        if self.loop is not None:
            place, terms = self.columns.layout.rows(rows).start + row, self._addends(addends)
            self.loop.sums[layer, region, place] = (
                self.products.sum(terms, constant), self.products.sum(terms, constant, expanded=True))

    def after_heads(self, layer: int, rows: str, region: str) -> Word | None:
        if self.loop is None:
            return None
        column = self.only(region).column
        found = self.loop.attended(column, layer)[self.columns.layout.rows(rows)]
        if any(len(form.terms) != 1 or form.low != -1 or form.high != 1 for form in found):
            return None
        return self.word(self.loop.bits.word([form * Fraction(1, 2) + Form(Fraction(1, 2)) for form in found]))

    # Products and quotients

    def _multiply(self, product: Word, x: Term, y: Term) -> Term:
        """A product of two unknown numbers is one that a proof knows, and so is that of numbers in twice as many bits."""
        if z3.is_bv_value(z3.simplify(x)) or z3.is_bv_value(z3.simplify(y)):
            return x * y
        if all(word.op == "extend" and 2 * word.arguments[0].size == product.size for word in product.arguments):
            (first, x_signed), (second, y_signed) = ((self.term(word.arguments[0]), bool(word.data))
                                                     for word in product.arguments)
            return self.products.signed_product(first, second, x_signed, y_signed)
        return z3.Extract(product.size - 1, 0, self.products.product(x, y))

    def _divide(self, word: Word, x: Term, y: Term) -> Term:
        found = self.products.division(x, y)
        return found.quotient if word.op == "quotient" else found.remainder

    def halves(self, x: Word, y: Word) -> Halves[Word]:
        return Halves(*map(self.word, self.products.halves(self.term(x), self.term(y))))

    def division(self, x: Word, y: Word) -> Division[Word]:
        found = self.products.division(self.term(x), self.term(y))
        return Division(self.word(found.dividend), self.word(found.divisor), self.word(found.quotient),
                        self.word(found.remainder), tuple(map(self.word, found.rests)))

    def total(self, about: str, size: int, *addends: Addend[Word], constant: int = 0) -> Word:
        return self.word(self.products.total(about, size, self._addends(addends), constant))

    def _addends(self, addends: Sequence[Addend[Word]]) -> list[Addend[Term]]:
        return [Addend(factor, self.term(word), None if where is None else self.condition(where))
                for factor, word, where in addends]

    # Real numbers

    @property
    def _loop(self) -> SymbolicLoop:
        assert self.loop is not None
        return self.loop

    def split(self, region: str, place: Word, cases: Mapping[str, Mapping[str, int]]) -> None:
        self.cases = tuple(cases)
        if self.case is not None:
            self.columns.known_contents = KnownContents(region, self.place(place), cases[self.case])
            return
        name, words = self.columns.contents[region].name, self.at(region, place)
        self.excluded = [z3.Not(z3.And(*(self.condition(words[f"{name}.{part}"].equals(value))
                                         for part, value in parts.items()))) for parts in cases.values()]

    def promise(self, region: str, place: Word, entries: Sequence[tuple[str, Sequence[float]]], about: str) -> None:
        self.promises.append(about)
        if self.case is None:
            return
        bits, used, found = self.columns.bits, dict[str, Term](), list[Form]()
        for group, values in entries:
            if not values:
                found.append(NOTHING)
                continue
            stands = used.setdefault(group, z3.FreshBool(f"names {group}"))
            high = z3.And(stands, z3.FreshBool("is the first")) if len(values) > 1 else stands
            form = bits.form(high) * Fraction(values[0])
            if len(values) > 1:
                form += bits.form(z3.And(stands, z3.Not(high))) * Fraction(values[1])
            found.append(form)
        where = z3.simplify(self.place(place))
        self.columns.promised.append((region, where, found))
        self.columns.at(region, where)

    def promise_integer(
        self, layer: int, rows: str, region: str, tolerance: float, limit: float, shift: float = 0.0, grid: float = 0.0,
    ) -> None:
        self.promised[rows] = Fraction(tolerance)
        place = layer - 1, self.columns.layout.rows(rows).start, region
        self._loop.integers[place] = PromisedInteger(Fraction(tolerance), Fraction(limit), Fraction(shift), Fraction(grid))

    def claim_error(self, claim: ErrorClaim) -> None:
        self.errors.append(claim)

    def expect_after(
        self, layer: int, rows: str, region: str, about: str, entries: Entries, *, heads_only: bool = False,
    ) -> None:
        self.columns.layout.rows(rows)
        self.expected_midway.append(
            Midway(layer, rows, region, about, lambda column: forms(entries(column)), heads_only))

    def expect_contents(self, region: str, about: str, replaced: Callable[[ColumnBefore], Word], by: Entries) -> None:
        self.kept.append(Kept(region, lambda column: self.condition(replaced(column)),
                              lambda column: forms(by(column)), about))

    # Columns and words

    def shared(self, region: str, rows: str) -> Word:
        return self.word(self.columns.shared(region, rows), rows)

    def all(self, region: str) -> list[Before]:
        return [self.before(column) for column in self.columns.pool(region)]

    def as_word(self, entries: Sequence[Entry]) -> Word:
        bits = self.columns.bits
        return self.word(bits.word([bits.form(self._equals(entry, 1.0)) for entry in forms(entries)]))

    def is_number(self, entry: Entry, value: float) -> Word:
        return self.word(self._equals(forms([entry])[0], value))

    def _equals(self, entry: Form, value: float) -> Term:
        return z3.BoolVal(False) if self._loop.relus.is_real(entry) else equal(entry - number(value), self.columns.bits)

    def is_at_most_zero(self, rows: str, column: ColumnBefore, layer: int) -> Word:
        assert isinstance(column, Before)
        place, of = self.columns.layout.rows(rows).start, column.column
        form = self._loop.attended(of, layer - 1)[place] - Form(self._loop.integers[layer - 1, place, of.region].shift)
        self._loop.read(of, layer - 1)[place]
        known = self._loop.relus.at_most_zero.get(form.key)
        return self.word(at_least(-form, Fraction(0), self.columns.bits) if known is None else known)

    # Entries, as forms

    def signs(self, word: Word) -> list[Form]:
        return [signed(bit) for bit in self.columns.bits.of_word(self.term(word))]

    def truth(self, condition: Word) -> Form:
        return self.columns.bits.form(self.condition(condition))

    def constant(self, value: float) -> Form:
        return number(value)

    def pick(self, cases: Sequence[tuple[Word, Sequence[Entry]]], size: int) -> list[Form]:
        return self.choose([(self.condition(condition), forms(entries)) for condition, entries in cases], size)

    def choose(self, cases: Sequence[tuple[Term, list[Form]]], size: int) -> list[Form]:
        """The entries of the last case that holds; 0 where none does."""
        found = [NOTHING] * size
        for condition, entries in cases:
            found = [choose(condition, yes, no, self.columns.bits) for yes, no in zip(entries[:size], found, strict=True)]
        return found

    def contents_at(self, regions: Sequence[str], place: Word, size: int) -> list[Form]:
        number = self.place(place)
        inside = [(region, z3.simplify(self.columns.within(number, region))) for region in regions]
        return self.choose([(where, self.at(region, place).contents) for region, where in inside
                            if self.columns.solver.possible(where)], size)

    def mean(self, columns: Sequence[ColumnBefore], layer: int, rows: str) -> list[Form]:
        place = self.columns.layout.rows(rows)
        found = [NOTHING] * (place.stop - place.start)
        for column in columns:
            assert isinstance(column, Before)
            found = [one + other for one, other in zip(found, self._loop.after(column.column, layer)[place], strict=True)]
        return [form * Fraction(1, max(1, len(columns))) for form in found]

    def computed(self, formula: Expression, column: Sequence[Entry]) -> list[Form]:
        rows = forms(column)
        linear, inner, outer = (SparseMatrix(matrix).by_row(Fraction)
                                for matrix in (formula.linear, formula.inner, formula.outer))
        units = [weighted(row, rows) + number(float(bias)) for row, bias in zip(inner, formula.bias, strict=True)]
        return [self._loop.relus.summed(weighted(row, rows), Fraction(float(constant)),
                                        [(weight, units[unit]) for unit, weight in used])
                for row, constant, used in zip(linear, formula.constant, outer, strict=True)]


def expected_words(meaning: ProofMeaning, block: RowBlock, column: Column) -> dict[str, Term]:
    """The words of a block and its parts in a column after the loop, as the machine means them."""
    whole = meaning.expected_term(block.name, column)
    if whole is not None:
        return with_parts(block.name, block.parts, whole)
    found = {}
    for name in block.names[1:]:
        meant = meaning.expected_term(name, column)
        found[name] = meant if meant is not None else _as_it_was(name, column)
    if all(word is column.words.get(name) for name, word in found.items()):
        return {block.name: _as_it_was(block.name, column), **found}
    return {block.name: joined(found.values()), **found}


def open_declarations(meaning: ProofMeaning, block: RowBlock, column: Column) -> Iterator[tuple[str, Term, Term]]:
    """What the step declares of a block that it leaves open, and of its parts: rows, their word, and where they hold it.

    A part that is not mentioned does not change beside one that is left open.
    """
    whole = block.name, column.region
    for rows in block.names:
        own, meant = (rows, column.region), meaning.expected_term(rows, column)
        mentioned = whole in meaning.expected or not {whole, own}.isdisjoint(meaning.where)
        if meant is None and not mentioned and rows != block.name:
            meant = _as_it_was(rows, column)
        if meant is not None:
            yield rows, meant, meaning.where.get(own, z3.BoolVal(True))


def _as_it_was(rows: str, column: Column) -> Term:
    if rows not in column.words:
        raise ProofError(f"{rows!r} in {column.region} has no declared meaning and held no bits: `expect` it, or `leave` it")
    return column.words[rows]
