"""What a loop should do, said with words: a machine's `meaning` writes it down, and a proof compares.

A machine says for blocks of rows what number stands there after a loop, by the numbers that stood on the card before:

    difference = card.read("memory", CELLS, b) - card.read("memory", CELLS, a)
    card.expect("memory", "memory", lambda column: card.choose(column.is_at(b), difference, column["memory"]))

Words are of a fixed length and wrap around: `+`, `-`, `*`, `&`, `|`, `^`, `~`, `==`, `!=`. What a machine does not mention
must stay as it is, or be 0 where the layout says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import z3

from punchcard.card.layout import RowBlock
from punchcard.errors import ProofError
from punchcard.machines.stages import Said
from punchcard.proof.column import Column, extended, unknown
from punchcard.proof.columns import Columns
from punchcard.proof.forms import Form, Term
from punchcard.proof.loop import Loop
from punchcard.proof.products import Addend, Division, Halves, Wholes

Expected = Callable[["Before"], Term]


class Before:
    """A column as it was when the loop began: its numbers by the names of rows."""

    def __init__(self, card: Meaning, column: Column) -> None:
        self.card, self.column = card, column

    def __getitem__(self, rows: str) -> Term:
        return self.card.word(self.column, rows)

    @property
    def number(self) -> Term:
        """The column's own number."""
        return self.column.place

    def is_at(self, word: Term) -> Term:
        """Whether a word names this column."""
        wide = max(word.size(), self.column.place.size()) + 1
        return extended(word, wide) == extended(self.column.place, wide)


class Meaning(Said):
    """A card before a loop, and what is expected of it after."""

    def __init__(self, columns: Columns, loop: Loop | None = None, case: str | None = None) -> None:
        self.loop, self.columns, self.case = loop, columns, case
        self.expected: dict[tuple[str, str], Expected] = {}
        self.where: dict[tuple[str, str], Term] = {}
        self.wholes = Wholes(columns.bits, columns.solver)

    @property
    def place_bits(self) -> int:
        """How many bits a column's number has."""
        return self.columns.place_bits

    def first(self, region: str) -> int:
        """The number of a region's first column."""
        return int(self.columns.layout.region(region).start)

    def word(self, column: Column, rows: str) -> Term:
        """The number at some rows of a column."""
        found = column.words.get(rows)
        if found is None:
            raise ProofError(f"no numbers at {rows!r} in {column.region}: the layout declares no bits there")
        return found

    def only(self, region: str) -> Before:
        """The column of a region that has one."""
        return Before(self, self.columns.at(region, self.columns.constant(self.columns.layout.region(region).start)))

    def at(self, region: str, number: Term) -> Before:
        """A column of a region, by its number."""
        return Before(self, self.columns.at(region, self.columns.as_place(number)))

    def read(self, rows: str, regions: Sequence[str], number: Term) -> Term:
        """The number at some rows of a column of one of these regions, by the column's number."""
        place = self.columns.as_place(number)
        found = self.at(regions[-1], number)[rows]
        for region in reversed(regions[:-1]):
            found = z3.If(self.columns.within(place, region), self.at(region, number)[rows], found)
        return z3.simplify(found)

    def named(self, region: str, rows: str, code: Term) -> Before:
        """The column of a region whose own number at some rows is this one."""
        found = self.columns.code(region, rows)
        if found is None:
            raise ProofError(f"no numbers of columns at {rows!r} in {region}: the layout does not say that they are a range")
        return Before(self, self.columns.at(region, found.place(code)))

    def read_named(self, rows: str, regions: Sequence[str], by: str, code: Term) -> Term:
        """The number at some rows of the column of one of these regions whose own number at `by` is this one."""
        columns = [self.named(region, by, code) for region in regions]
        found = columns[-1][rows]
        for region, column in reversed(list(zip(regions[:-1], columns[:-1], strict=True))):
            found = z3.If(self.columns.within(column.number, region), column[rows], found)
        return z3.simplify(found)

    def expect(self, rows: str, region: str, value: Term | Expected, where: Term | None = None) -> None:
        """What stands at a block, or a part of one, in a region after the loop: a word, or a word for each column.

        With `where` it stands there where the condition holds, and else any bits do.
        """
        self.columns.layout.rows(rows)
        self.columns.layout.region(region)
        block, _, part = rows.partition(".")
        for name, where_else in self.expected:
            if where_else == region and name != rows and (name == block if part else name.startswith(f"{block}.")):
                raise ProofError(f"{name!r} and {rows!r} in {region!r}: say what the block holds, or its parts, not both")
        self.expected[rows, region] = value if callable(value) else lambda column: value
        if where is not None:
            self.where[rows, region] = where

    def only_where(self, rows: str, region: str, where: Term) -> None:
        """What is expected of a block stands there where the condition holds, and else any bits do."""
        self.where[rows, region] = where

    def leave(self, rows: str, region: str) -> None:
        """Any bits may stand at a block in a region after the loop, as far as the facts let them."""
        self.columns.layout.rows(rows)
        self.where[rows, region] = z3.BoolVal(False)

    def lemma(self, layer: int, rows: str, region: str, word: Term) -> Term:
        """What stands at some rows once so many layers are done. Later questions are about this word, not its parts.

        Gives a name for the word. It need not hold: then it is not used.
        """
        if self.loop is None:
            return word
        name = self._name(rows, region, f"{rows} after layer {layer}", word)
        place = self.columns.layout.rows(rows)
        self.loop.lemmas[layer, region, place.start, place.stop] = name
        return name

    def difference(self, layer: int, rows: str, region: str, more: Term, less: Term) -> tuple[Term, Term]:
        """The same of rows that hold more - less bit by bit, between a layer's attention and its feed-forward.

        Gives names for the two words.
        """
        if self.loop is None:
            return more, less
        names = (self._name(rows, region, f"the first word of {rows}", more),
                 self._name(rows, region, f"the second word of {rows}", less))
        place = self.columns.layout.rows(rows)
        self.loop.differences[layer, region, place.start, place.stop] = names
        return names

    def _name(self, rows: str, region: str, name: str, word: Term) -> Term:
        """A name for a word that is said to stand at some rows of a region."""
        assert self.loop is not None
        span, size = self.columns.layout.region(region), self.columns.layout.place(rows).size
        if span.stop != span.start + 1:
            raise ProofError(f"a lemma about {region!r}: it has {span.stop - span.start} columns, a lemma is about one")
        if word.size() != size:
            raise ProofError(f"a lemma of {word.size()} bits about {rows!r}, which has {size}")
        named = unknown(name, size)
        self.loop.solver.suppose(named == word)
        return named

    # Numbers

    def stands(self, layer: int, rows: str, region: str, word: Term, first: int = 0) -> None:
        """As `lemma`, for a word that is known by itself, and rows from one on."""
        if self.loop is not None:
            start = self.columns.layout.rows(rows).start + first
            self.loop.lemmas[layer, region, start, start + word.size()] = z3.simplify(word)

    def sums_to(self, layer: int, rows: str, region: str, *addends: Addend, constant: int = 0, row: int = 0) -> None:
        """As `lemma`, for a row that holds a number: a sum of words."""
        if self.loop is not None:
            place = self.columns.layout.rows(rows).start + row
            self.loop.sums[layer, region, place] = (
                self.wholes.sum(addends, constant), self.wholes.sum(addends, constant, expanded=True))

    def after_heads(self, layer: int, rows: str, region: str) -> Term | None:
        """The word at some rows between the heads of a layer, counted from 0, and its feed-forward; None: they are not bits.

        A hint speaks of it where no more is known of what the heads find.
        """
        if self.loop is None:
            return None
        column = self.only(region).column
        found = self.loop.attended(column, layer)[self.columns.layout.rows(rows)]
        if any(len(form.terms) != 1 or form.low != -1 or form.high != 1 for form in found):
            return None
        return self.loop.bits.word([form * Fraction(1, 2) + Form(Fraction(1, 2)) for form in found])

    def addend(self, factor: int, word: Term, where: Term | None = None) -> Addend:
        """A word in a sum, where a condition holds."""
        return Addend(factor, z3.simplify(word), where)

    def total(self, about: str, size: int, *addends: Addend, constant: int = 0) -> Term:
        """A sum of words as a word, which is long enough whatever they are."""
        return self.wholes.total(about, size, addends, constant)

    def product(self, x: Term, y: Term, x_signed: bool = False, y_signed: bool = False) -> Term:
        """x y, of as many bits as both have; each with its sign, or without."""
        return self.wholes.signed_product(z3.simplify(x), z3.simplify(y), x_signed, y_signed)

    def halves(self, x: Term, y: Term) -> Halves:
        """What x y is made of: products of halves, and the carries between them."""
        return self.wholes.halves(z3.simplify(x), z3.simplify(y))

    def division(self, x: Term, y: Term) -> Division:
        """Quotient and remainder of x by y, without signs, and how they are made."""
        return self.wholes.division(x, y)

    @staticmethod
    def settled(term: Term) -> Term:
        """The same word or condition, as short as it can be said."""
        return z3.simplify(term)

    @staticmethod
    def choose(condition: Term, yes: Term, no: Term) -> Term:
        """One word or the other."""
        return z3.If(condition, yes, no)

    @staticmethod
    def at_most_zero(word: Term) -> Term:
        """Whether a word is 0 or less, in two's complement."""
        return word <= 0

    @staticmethod
    def is_at_least(word: Term, least: int) -> Term:
        """Whether a word is this number or more, unsigned."""
        return z3.UGE(word, least) if least < 1 << word.size() else z3.BoolVal(False)

    @staticmethod
    def is_less(word: Term, other: Term, signed: bool = False) -> Term:
        """Whether a word is less than another."""
        return word < other if signed else z3.ULT(word, other)

    @staticmethod
    def part(word: Term, first: int, size: int) -> Term:
        """So many bits of a word, from one on."""
        return z3.Extract(first + size - 1, first, word)

    @staticmethod
    def joined(*words: Term) -> Term:
        """Words one above the other, the lowest first."""
        return z3.Concat(*reversed(words)) if len(words) > 1 else words[0]

    @staticmethod
    def signed(word: Term, size: int) -> Term:
        """A word with its highest bit repeated above."""
        return z3.SignExt(size - word.size(), word)

    @staticmethod
    def shifted_right(word: Term, by: Term, signed: bool = False) -> Term:
        """A word shifted to the right, with zeros or its highest bit coming in."""
        return word >> by if signed else z3.LShR(word, by)

    @staticmethod
    def low(word: Term, size: int) -> Term:
        """The lowest bits of a word."""
        return z3.Extract(size - 1, 0, word)

    @staticmethod
    def bit(condition: Term) -> Term:
        """A condition as a word of one bit."""
        return z3.If(condition, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))

    @staticmethod
    def negated(condition: Term) -> Term:
        """Whether the condition does not hold."""
        return z3.Not(condition)

    @staticmethod
    def both(*conditions: Term) -> Term:
        """All of the conditions."""
        return z3.And(*conditions)

    @staticmethod
    def either(*conditions: Term) -> Term:
        """One of the conditions, or several."""
        return z3.Or(*conditions)

    @staticmethod
    def wide(word: Term, size: int) -> Term:
        """A word with zeros above."""
        return extended(word, size)

    @staticmethod
    def number(value: int, size: int) -> Term:
        """A number as a word of so many bits."""
        return z3.BitVecVal(value, size)


def expected_words(meaning: Meaning, block: RowBlock, column: Column) -> dict[str, Term]:
    """The words of a block and its parts in a column after the loop, as the machine means them."""
    before = Before(meaning, column)
    whole = meaning.expected.get((block.name, column.region))
    if whole is not None:
        return with_parts(block, z3.simplify(whole(before)))
    found = {}
    for part in block.parts:
        name = f"{block.name}.{part}"
        meant = meaning.expected.get((name, column.region))
        found[name] = z3.simplify(meant(before)) if meant is not None else _as_it_was(name, column)
    if all(word is column.words.get(name) for name, word in found.items()):
        return {block.name: _as_it_was(block.name, column), **found}
    pieces = list(found.values())
    return {block.name: z3.simplify(z3.Concat(*reversed(pieces))) if len(pieces) > 1 else pieces[0], **found}


def said_where_open(meaning: Meaning, block: RowBlock, rows: str, column: Column) -> Term | None:
    """The word at a block that the step leaves open, or at a part of it; None where nothing is said of it.

    A part that nobody mentions stays as it is beside one that is left.
    """
    meant = meaning.expected.get((rows, column.region))
    if meant is not None:
        return z3.simplify(meant(Before(meaning, column)))
    whole, own = (block.name, column.region), (rows, column.region)
    mentioned = whole in meaning.expected or not {whole, own}.isdisjoint(meaning.where)
    return None if mentioned or rows == block.name else _as_it_was(rows, column)


def with_parts(block: RowBlock, word: Term) -> dict[str, Term]:
    """A block's word, and those of its parts."""
    found, first = {block.name: word}, 0
    for part, size in block.parts.items():
        found[f"{block.name}.{part}"] = z3.simplify(z3.Extract(first + size - 1, first, word))
        first += size
    return found


def _as_it_was(rows: str, column: Column) -> Term:
    if rows not in column.words:
        raise ProofError(f"nothing is said of {rows!r} in {column.region}, which held no bits: `expect` it, or `leave` it")
    return column.words[rows]
