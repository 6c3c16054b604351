"""Facts about a card when a loop begins that say more than which rows hold bits: which numbers are there.

A layout declares them, `Layout.violations` checks them on a card, and a proof assumes them when a loop begins and shows that
they hold again when it ends. A `Fact` is a predicate over the words of one column, evaluated on cards with NumPy and in
proofs with z3:

    Fact("scratchpad", lambda column: column["halted"].equals(1) | column.names(column["counter"], "instructions"),
         "the program counter is that of an instruction, unless the machine has halted")

What engines and proofs look up is declared: numbers that a block holds, copies of what other columns hold, rows that
indicate something.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

from punchcard.card.contents import AnyFact as AnyFact
from punchcard.card.contents import Truths, read_numbers, word_size
from punchcard.card.encoding import Words, pointer_bits
from punchcard.errors import LayoutError
from punchcard.words.renderer import evaluate_arrays
from punchcard.words.word import Word, any_of, constant, variable, variables_of

if TYPE_CHECKING:
    from punchcard.card.layout import Card, Layout


OWN_NUMBER = "(column)"
"""The name of the variable that is a column's own number; no row block has it."""


class ColumnWords:
    """The words of any column of a region, as variables. `offset`: which column it is, counted from the region's first."""

    def __init__(self, layout: Layout, region: str, offset: int | None = None) -> None:
        self._layout, self._region, self._offset = layout, region, offset

    def __getitem__(self, rows: str) -> Word:
        """The bits at a block's rows, or at a part, as an unsigned number."""
        return variable(rows, word_size(self._layout, rows, self._region))

    @property
    def offset(self) -> int:
        """Which column of its region it is, where the predicate is made for each."""
        if self._offset is None:
            raise LayoutError("a predicate that depends on the column's offset: declare the fact with each=True")
        return self._offset

    @property
    def number(self) -> Word:
        """The column's own number on the card."""
        return variable(OWN_NUMBER, pointer_bits(self._layout.columns))

    def own_number(self, size: int) -> Word:
        """The same, modulo 2^size."""
        number = self.number
        return number.extend(size) if size > number.size else number[:size]

    def names(self, pointer: Word, *regions: str) -> Word:
        """Whether a number is that of a column of one of these regions."""
        return any_of(*(pointer.at_least(span.start) & pointer.less(span.stop)
                        for span in map(self._layout.region, regions)))

    def spans(self, first: Word, count: Word, *regions: str) -> Word:
        """Whether `count` columns from a number on belong to one of these regions; no columns do."""
        size = max(first.size, count.size, pointer_bits(self._layout.columns)) + 2  # no sum is cut, and no end
        begin, end = first.extend(size), first.extend(size) + count.extend(size)
        return any_of(count.equals(0), *(begin.at_least(span.start) & end.less(span.stop + 1)
                                         for span in map(self._layout.region, regions)))


Predicate: TypeAlias = Callable[[ColumnWords], Word]
"""What a column's words must satisfy: a word of one bit."""


def rows_of(condition: Word) -> set[str]:
    """The rows that a condition is about."""
    return {str(name) for name in variables_of(condition) if name != OWN_NUMBER}


class _Numbers(dict[Hashable, Words]):
    """The numbers at rows of a region's columns, or of one of them, read when they are asked for."""

    def __init__(self, layout: Layout, card: Card, region: str, columns: slice) -> None:
        place = layout.region(region)
        super().__init__({OWN_NUMBER: np.arange(place.start, place.stop, dtype=np.uint64)[columns]})
        self._read = partial(read_numbers, layout, card, region)
        self._columns = columns

    def __missing__(self, rows: Hashable) -> Words:
        self[rows] = found = self._read(str(rows))[..., self._columns].astype(np.uint64)
        return found


def truths(condition: Word, layout: Layout, card: Card, region: str, offset: int | None = None) -> Truths:
    """Whether a condition holds, in each column of a region, or in the one with this offset."""
    columns = slice(None) if offset is None else slice(offset, offset + 1)
    return np.atleast_1d(evaluate_arrays(condition, _Numbers(layout, card, region, columns)) != 0)


@dataclass(frozen=True)
class Fact(AnyFact):
    """A predicate that holds in every column of a region; with `last`, in its last column.

    A loop may leave a card on which `unless` holds in place of it: then a host takes over before the next loop begins.
    What is `promised` is the program's to keep, and checked while it runs: a proof assumes it in every loop.
    With `each` the predicate is made for every column by itself, and may depend on `column.offset`.
    """

    region: str
    predicate: Predicate
    statement: str
    last: bool = False
    unless: Predicate | None = None
    promised: bool = False
    each: bool = False
    says: ClassVar[str] = "{0.statement}"

    def condition(self, layout: Layout, offset: int | None = None) -> Word:
        """What a column's words satisfy when a loop begins."""
        column = ColumnWords(layout, self.region, offset if self.each else None)
        try:
            found = self.predicate(column)
        except (ValueError, LayoutError) as error:
            raise LayoutError(f"{self.about}: {error}") from None
        return found if not self.last else column.number.differs(layout.region(self.region).stop - 1) | found

    def condition_after(self, layout: Layout, offset: int | None = None) -> Word:
        """What they satisfy when a loop has ended."""
        found = self.condition(layout, offset)
        return found if self.unless is None else self.unless(ColumnWords(layout, self.region)) | found

    def check(self, layout: Layout) -> None:
        self.condition_after(layout, 0)

    def truths(self, layout: Layout, card: Card) -> Truths:
        if not self.each:
            return truths(self.condition_after(layout), layout, card, self.region)
        return np.concatenate([truths(self.condition_after(layout, offset), layout, card, self.region, offset)
                               for offset in range(layout.region_size(self.region))], axis=-1)

    def mentions(self, layout: Layout) -> set[str]:
        return rows_of(self.condition_after(layout, 0))


@dataclass(frozen=True)
class Holds(AnyFact):
    """A block holds these numbers in a region, one for each column, modulo 2^rows, and keeps them."""

    rows: str
    region: str
    numbers: Sequence[int]
    says: ClassVar[str] = "{0.rows} in {0.region} holds its numbers"

    def number(self, layout: Layout) -> Word:
        """The number that a column holds, by the column's own."""
        start, size, numbers = layout.region(self.region).start, layout.place(self.rows).size, self.numbers
        column = ColumnWords(layout, self.region)
        if isinstance(numbers, range) and numbers.step == 1:
            return column.own_number(size) + int(numbers.start - start)
        found = constant(numbers[-1], size)
        for offset, number in enumerate(numbers[:-1]):
            if number != numbers[-1]:
                found = column.number.equals(start + offset).choose(constant(number, size), found)
        return found

    def check(self, layout: Layout) -> None:
        size = layout.region_size(self.region)
        if len(self.numbers) != size:
            raise LayoutError(f"{self.about}: there are {len(self.numbers)}, and the region has {size} columns")

    def truths(self, layout: Layout, card: Card) -> Truths:
        wanted = np.asarray(self.numbers) % (1 << layout.place(self.rows).size)
        return np.asarray(layout.numbers(card, self.rows, self.region) == wanted)


@dataclass(frozen=True)
class Copies(AnyFact):
    """In every column of a region, the number at `by` names a column that has the rows `of`, and `rows` equal those."""

    rows: str
    region: str
    of: str
    by: str
    says: ClassVar[str] = "{0.rows} in {0.region} is {0.of} of the column that {0.by} names"

    def sources(self, layout: Layout) -> list[str]:
        """The regions that have what is copied."""
        return [region for region, content in layout.place(self.of).block.holds.items() if content == "bits"]

    def truths(self, layout: Layout, card: Card) -> Truths:
        everywhere, held = np.zeros(layout.columns, dtype=np.int64), np.zeros(layout.columns, dtype=bool)
        for region in self.sources(layout):
            everywhere[layout.region(region)] = layout.numbers(card, self.of, region)
            held[layout.region(region)] = True
        named = read_numbers(layout, card, self.region, self.by)
        inside = named < layout.columns
        source = np.where(inside, named, 0)
        return np.asarray(inside & held[source] & (read_numbers(layout, card, self.region, self.rows) == everywhere[source]))

    def mentions(self, layout: Layout) -> set[str]:
        return {self.rows, self.by}


@dataclass(frozen=True)
class Indicates(AnyFact):
    """Each entry of a block is 1 where its condition holds in the column, and 0 elsewhere.

    The conditions of a column are made for every column by itself, one for each row.
    """

    rows: str
    region: str
    predicates: Callable[[ColumnWords], Sequence[Word]]
    says: ClassVar[str] = "{0.rows} in {0.region} indicates what it should"

    def conditions(self, layout: Layout, offset: int) -> Sequence[Word]:
        """The conditions of a column."""
        try:
            return self.predicates(ColumnWords(layout, self.region, offset))
        except (ValueError, LayoutError) as error:
            raise LayoutError(f"{self.about}: {error}") from None

    def check(self, layout: Layout) -> None:
        found, wanted = len(self.conditions(layout, 0)), layout.place(self.rows).size
        if found != wanted:
            raise LayoutError(f"{self.about}: it needs {wanted} conditions, one for each row, and has {found}")

    def truths(self, layout: Layout, card: Card) -> Truths:
        entries, found = layout.array(card, self.rows, self.region), []
        for offset in range(entries.shape[-1]):
            conditions = self.conditions(layout, offset)
            right = [truths(condition, layout, card, self.region, offset) == entries[..., row, offset : offset + 1]
                     for row, condition in enumerate(conditions)]
            found.append(reduce(np.logical_and, right))
        return np.concatenate(found, axis=-1)

    def mentions(self, layout: Layout) -> set[str]:
        return {self.rows}.union(*(rows_of(condition) for condition in self.conditions(layout, 0)))

