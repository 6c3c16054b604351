"""Facts about the numbers on a card when a loop begins, beyond which rows hold bits.

A layout declares them, `Layout.violations` checks them on a card, and a proof assumes them when a loop begins and shows that
they hold again when it ends. A `Fact` is a predicate over the words of one column, evaluated on cards with NumPy and in
proofs with z3:

    Fact("scratchpad", lambda column: column["halted"].equals(1) | column.names(column["counter"], "instructions"),
         "the program counter is that of an instruction, unless the machine has halted")

What engines and proofs look up is declared: numbers that a block holds, copies of what other columns hold, rows that
indicate something. Machines with real numbers have rows that are more than bits: a block may hold constants, or one number
in all columns of a region; what a column holds may be in one of two blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from punchcard.card.encoding import Numbers, Words, as_numbers, pack_bits, pointer_bits
from punchcard.card.formats import AnyArray
from punchcard.errors import LayoutError
from punchcard.words.renderer import evaluate_arrays
from punchcard.words.word import Word, any_of, constant, variable, variables_of

if TYPE_CHECKING:
    from punchcard.card.layout import Card, Layout


Truths: TypeAlias = npt.NDArray[np.bool_]
"""A truth for each column of a region: (..., columns)."""


class AnyFact(ABC):
    """What a layout declares of the columns of a region."""

    region: str
    rows: str
    says: ClassVar[str]
    """What it says in words, by its own fields."""

    @property
    def about(self) -> str:
        """What it says, in words."""
        return self.says.format(self)

    def check(self, layout: Layout) -> None:
        """Refuse a fact that this layout cannot have."""
        layout.region(self.region)

    @abstractmethod
    def truths(self, layout: Layout, card: Card) -> Truths:
        """Whether it holds, in each column of its region."""

    def mentions(self, layout: Layout) -> set[str]:
        """The rows of its region that it is about."""
        return {self.rows}


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
        numbers = self.numbers  # NumPy takes the numbers of a range one by one
        wanted = np.arange(numbers.start, numbers.stop, numbers.step) if isinstance(numbers, range) else np.asarray(numbers)
        return np.asarray(layout.numbers(card, self.rows, self.region) == wanted % (1 << layout.place(self.rows).size))


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


@dataclass(frozen=True, eq=False)
class Constants(AnyFact):
    """A block holds these numbers in a region, rows by columns, and never changes there; one column is for all."""

    rows: str
    region: str
    values: AnyArray
    says: ClassVar[str] = "{0.rows} in {0.region} holds its constants"

    def truths(self, layout: Layout, card: Card) -> Truths:
        return _everywhere(layout.array(card, self.rows, self.region) == self.values)


@dataclass(frozen=True)
class Uniform(AnyFact):
    """A block of bits holds one number in all columns of a region."""

    rows: str
    region: str
    says: ClassVar[str] = "{0.rows} is the same in all columns of {0.region}"

    def truths(self, layout: Layout, card: Card) -> Truths:
        entries = layout.array(card, self.rows, self.region)
        return _everywhere(entries == entries[..., :1])


@dataclass(frozen=True)
class Contents(AnyFact):
    """What a column of a region holds is in one of two blocks, and the other is 0 in all its rows; or there is one block.

    With `parts` the first rows of the sum are ±1 bits, and the others are 0; conditions know them as `name.part`.
    Without, the sum is real numbers; that they are within the blocks' limit is a program's promise.
    """

    name: str
    region: str
    blocks: tuple[str, ...]
    parts: Mapping[str, int] = field(default_factory=dict)

    @property
    def about(self) -> str:
        kind = "bits" if self.parts else "numbers"
        rest = ", and the other is 0" if len(self.blocks) > 1 else ""
        return f"{' or '.join(self.blocks)} in {self.region} holds {kind}{rest}"

    @property
    def size(self) -> int:
        """How many rows are bits."""
        return sum(self.parts.values())

    def places(self) -> dict[str, slice]:
        """The rows of each part."""
        found, start = {}, 0
        for part, size in self.parts.items():
            found[f"{self.name}.{part}"] = slice(start, start + size)
            start += size
        return found

    def truths(self, layout: Layout, card: Card) -> Truths:
        held = [layout.array(card, block, self.region) for block in self.blocks]
        apart: Truths = np.sum([(one != 0).any(-2) for one in held], axis=0) <= 1
        content: AnyArray = np.sum(held, axis=0)
        if self.parts:
            apart &= _everywhere(np.abs(content[..., : self.size, :]) == 1)
            return apart & _everywhere(content[..., self.size :, :] == 0)
        return apart & _everywhere(np.isfinite(content))

    def mentions(self, layout: Layout) -> set[str]:
        return set(self.blocks)


@dataclass(frozen=True)
class CopiesContents(AnyFact):
    """In every column of a region, a block of bits holds the contents of the column that the number at `by` names."""

    rows: str
    region: str
    contents: str
    by: str
    says: ClassVar[str] = "{0.rows} in {0.region} is the {0.contents} that {0.by} names"

    def of(self, layout: Layout) -> Contents:
        """The contents that are copied."""
        found = next((fact for fact in layout.contents if fact.name == self.contents), None)
        if found is None:
            raise LayoutError(f"{self.about}: no column's contents are called {self.contents!r}")
        return found

    def check(self, layout: Layout) -> None:
        block, parts = layout.place(self.rows).block, self.of(layout).parts
        if block.name != self.rows or list(block.parts.items()) != list(parts.items()):
            raise LayoutError(f"{self.about}: {self.rows!r} must have the parts of {self.contents!r}, in their order: "
                              + ", ".join(f"{part} {size}" for part, size in parts.items()))

    def truths(self, layout: Layout, card: Card) -> Truths:
        of, found = self.of(layout), layout.array(card, self.rows, self.region)
        span = layout.region(of.region)
        held = np.sum([layout.array(card, block, of.region) for block in of.blocks], axis=0)[..., : found.shape[-2], :]
        named = np.asarray(layout.numbers(card, self.by, self.region)) - span.start
        inside = (named >= 0) & (named < span.stop - span.start)
        named_one = np.take_along_axis(held, np.where(inside, named, 0)[..., None, :], axis=-1)
        return np.asarray(inside & _everywhere(found == named_one))

    def mentions(self, layout: Layout) -> set[str]:
        return {self.rows, self.by}


def _everywhere(entries: Truths) -> Truths:
    """The columns in which it is true in all rows."""
    return np.asarray(entries.all(-2))


def _contents_at(layout: Layout, region: str, rows: str) -> Contents | None:
    """The contents of a region's columns that have these rows as a part, or None."""
    return next((fact for fact in layout.contents if fact.region == region and rows in fact.places()), None)


def word_size(layout: Layout, rows: str, region: str) -> int:
    """How many bits the numbers at some rows of a region have, in a block or in its columns' contents."""
    contents = _contents_at(layout, region, rows)
    if contents is not None:
        return contents.parts[rows.partition(".")[2]]
    place = layout.place(rows)
    if place.block.holds.get(region) != "bits":
        raise LayoutError(f"{rows!r} holds no bits in {region!r}")
    return place.size


def read_numbers(layout: Layout, card: Card, region: str, rows: str) -> Numbers:
    """The numbers at some rows of a region, or at a part of its columns' contents."""
    contents = _contents_at(layout, region, rows)
    if contents is None:
        return layout.numbers(card, rows, region)
    entries = sum(layout.array(card, block, region)[..., contents.places()[rows], :] for block in contents.blocks)
    return as_numbers(pack_bits(np.asarray(entries) > 0), word_size(layout, rows, region))
