"""The contract between a machine and a proof: with it a machine's `meaning` says what a loop does.

A machine says for blocks of rows which number is there after a loop, by the numbers that were on the card before:

    difference = card.read("memory", CELLS, b) - card.read("memory", CELLS, a)
    card.expect("memory", "memory", lambda column: column.is_at(b).choose(difference, column["memory"]))

All numbers are words (`punchcard.words`). What a machine does not mention must stay as it is, or be 0 where the layout says
so. Machines with real numbers say more (`RealMeaning`). Proofs implement both (`punchcard.proof.meaning`).

A machine may cut the proof of its loop into stages of layers, and a stage into cases. A stage takes a card from one layout
to the next. The card in the middle of a loop has a layout of its own, with facts of its own: the stage before shows them,
and the stage after assumes them. A case is what some bits hold in a region of one column, such as the opcode of an
instruction. The proof shows that the cases of a stage cover every card.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar

from punchcard.card.layout import Layout
from punchcard.transformer.expression import Expression
from punchcard.words.word import Word

Number = TypeVar("Number")


class Entry(ABC):
    """A number in one row of a column, which may be a real one. Proofs know more of it."""

    @abstractmethod
    def __add__(self, other: Self) -> Self:
        """The sum of two entries."""


class ColumnBefore(Protocol):
    """A column as it was when the loop began: its numbers by the names of rows."""

    def __getitem__(self, rows: str) -> Word: ...

    @property
    def number(self) -> Word:
        """The column's own number on the card."""

    def is_at(self, word: Word) -> Word:
        """Whether a word names this column."""

    def constants(self, rows: str) -> list[float]:
        """The numbers at rows that never change."""

    @property
    def contents(self) -> Sequence[Entry]:
        """The column's contents."""


Entries: TypeAlias = Callable[[ColumnBefore], Sequence[Entry]]
"""Entries for each column."""


class Addend(NamedTuple, Generic[Number]):
    """A word, how often it counts, and where: elsewhere it is 0."""

    factor: int
    word: Number
    where: Number | None = None


class Halves(NamedTuple, Generic[Number]):
    """x' y', X y' + x' Y with what is above the low half of the first, and X Y."""

    low: Number
    middle: Number
    high: Number


@dataclass(frozen=True)
class Division(Generic[Number]):
    """Quotient and remainder, and what is left after each digit, the highest first; before the first it is 0."""

    dividend: Number
    divisor: Number
    quotient: Number
    remainder: Number
    rests: tuple[Number, ...]


class Meaning(Protocol):
    """A card before a loop, and what is expected of it after."""

    @property
    def case(self) -> str | None:
        """The case of the stage that is looked at, or None for what all cases share."""

    @property
    def place_bits(self) -> int:
        """How many bits a column's number has."""

    @property
    def reals(self) -> RealMeaning:
        """The same for a machine with real numbers."""

    # The card before

    def first(self, region: str) -> int:
        """The number of a region's first column."""

    def only(self, region: str) -> ColumnBefore:
        """The column of a region that has one."""

    def at(self, region: str, number: Word) -> ColumnBefore:
        """A column of a region, by its number."""

    def named(self, region: str, rows: str, code: Word) -> ColumnBefore:
        """The column of a region whose own number at some rows is this one."""

    def read(self, rows: str, regions: Sequence[str], number: Word) -> Word:
        """The number at some rows of a column of one of these regions, by the column's number."""

    def read_named(self, rows: str, regions: Sequence[str], by: str, code: Word) -> Word:
        """The number at some rows of the column of one of these regions whose own number at `by` is this one."""

    def simplified(self, word: Word) -> Word:
        """The same word, as short as the solver can say it."""

    # The card after

    def expect(
        self, rows: str, region: str, value: Word | Callable[[ColumnBefore], Word], where: Word | None = None,
    ) -> None:
        """The number at a block, or at a part of one, in a region after the loop: one word, or one for each column.

        With `where` it is there where the condition holds, and any bits are elsewhere. Without, it is there whatever was
        left open before.
        """

    def only_where(self, rows: str, region: str, where: Word) -> None:
        """What is expected of a block is there where the condition holds, and any bits are elsewhere."""

    def leave(self, rows: str, region: str) -> None:
        """Any bits may be at a block in a region after the loop, as far as the facts let them."""

    # Hints: if one cannot be proven, it is ignored

    def lemma(self, layer: int, rows: str, region: str, word: Word) -> Word:
        """The number at some rows after so many layers. Gives a name for the word: later questions are about the name."""

    def difference(self, layer: int, rows: str, region: str, more: Word, less: Word) -> tuple[Word, Word]:
        """The same for rows that hold more - less bit by bit, between a layer's attention and its feed-forward.

        Gives names for the two words.
        """

    def hint(self, layer: int, rows: str, region: str, word: Word, first: int = 0) -> None:
        """As `lemma`, for a word that needs no name, and rows from one on."""

    def hint_sum(self, layer: int, rows: str, region: str, *addends: Addend[Word], constant: int = 0, row: int = 0) -> None:
        """As `lemma`, for a row that holds a number: a sum of words."""

    def after_heads(self, layer: int, rows: str, region: str) -> Word | None:
        """The word at some rows between the heads of a layer, counted from 0, and its feed-forward; None if not bits."""

    # Products and quotients, which a proof knows by lemmas

    def halves(self, x: Word, y: Word) -> Halves[Word]:
        """What x y is made of: products of halves, and the carries between them."""

    def division(self, x: Word, y: Word) -> Division[Word]:
        """Quotient and remainder of x by y, without signs, and how they are made."""

    def total(self, about: str, size: int, *addends: Addend[Word], constant: int = 0) -> Word:
        """A sum of words as a word, which is long enough whatever they are."""


class RealMeaning(Meaning, Protocol):
    """The same in one case of a machine with real numbers, and what is expected in the middle of a loop."""

    def split(self, region: str, place: Word, cases: Mapping[str, Mapping[str, int]]) -> None:
        """Look at the cases one by one: in each, parts of what a column holds are known."""

    def promise(self, region: str, place: Word, entries: Sequence[tuple[str, Sequence[float]]], about: str) -> None:
        """What a column holds is made of few numbers: of each entry its group, and one of these. A group is 0 as a whole."""

    def promise_integer(
        self, layer: int, rows: str, region: str, tolerance: float, limit: float, shift: float = 0.0, grid: float = 0.0,
    ) -> None:
        """The number that a layer's heads bring to a row is an integer, up to a tolerance and within a limit.

        With a `shift` it is read with that added to it, which rounds it to a multiple of `grid`.
        """

    def claim_error(self, claim: ErrorClaim) -> None:
        """The error of a function that is called in this case."""

    def expect_after(
        self, layer: int, rows: str, region: str, about: str, entries: Entries, *, heads_only: bool = False,
    ) -> None:
        """The entries at some rows of every column of a region after a layer, counted from 1, or after its heads."""

    def expect_contents(self, region: str, about: str, replaced: Callable[[ColumnBefore], Word], by: Entries) -> None:
        """A column of a region is unchanged or, where the condition is true, replaced."""

    # Columns and words

    def shared(self, region: str, rows: str) -> Word:
        """The number at rows that are the same in all columns of a region."""

    def all(self, region: str) -> Sequence[ColumnBefore]:
        """The columns of a region that are looked at one by one."""

    def as_word(self, entries: Sequence[Entry]) -> Word:
        """±1 entries as a word. That they are is claimed apart; where one is not, its bit is 0."""

    def is_number(self, entry: Entry, value: float) -> Word:
        """Whether an entry is this number; never of a real one."""

    def is_at_most_zero(self, rows: str, column: ColumnBefore, layer: int) -> Word:
        """Whether the number that a layer's heads have brought to a row is 0 or less; the promise says that it is clear."""

    # Entries

    def signs(self, word: Word) -> Sequence[Entry]:
        """A word as ±1 bits."""

    def truth(self, condition: Word) -> Entry:
        """1 where a condition holds, and 0 elsewhere."""

    def constant(self, value: float) -> Entry:
        """A number."""

    def pick(self, cases: Sequence[tuple[Word, Sequence[Entry]]], size: int) -> Sequence[Entry]:
        """The entries of the last case that holds; 0 where none does."""

    def contents_at(self, regions: Sequence[str], place: Word, size: int) -> Sequence[Entry]:
        """The contents of the column with this number, of these regions; 0 where it is of none."""

    def mean(self, columns: Sequence[ColumnBefore], layer: int, rows: str) -> Sequence[Entry]:
        """The mean of what is at some rows of several columns after a layer."""

    def computed(self, formula: Expression, column: Sequence[Entry]) -> Sequence[Entry]:
        """What a formula makes of a column with these rows, in exact arithmetic."""


Result: TypeAlias = Sequence[tuple[ColumnBefore, Word, Sequence[Entry]]]
"""Columns, and what should be in some rows of each, where a condition holds."""


@dataclass(frozen=True)
class ErrorClaim:
    """The error of a function, by the weights that compute it.

    name      what the claim is called
    first     the layer whose heads have brought the operands, counted from 1. Its feed-forward is the first to compute
    last      the layer after which the result is there
    rows      where the result is
    columns   the columns that give it
    about     the error in words, by how far the result was found to be rounded. Default: as far as the design's own weights
              round it. And whether the weights were proven to compute `exact`
    exact     the result in exact arithmetic; nothing where it is an approximation
    fits      whether the operands fit the function: a counterexample is a call that does
    """

    name: str
    first: int
    last: int
    rows: str
    columns: Sequence[ColumnBefore]
    about: Callable[[float | None, bool], str]
    exact: Callable[[], Result]
    fits: Callable[[], Word]


@dataclass(frozen=True)
class Case:
    """Cards on which the number at some rows, in a region of one column, has these bits in the mask.

    `but` has masks and bits that it does not have: a case of all the rest is made so.
    """

    name: str
    region: str
    rows: str
    mask: int
    match: int
    but: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Stage:
    """Layers from one to another, counted from 0, between two layouts.

    layers    the first, and the one after the last
    begin     the layout when it begins, with the facts that are assumed
    end       the layout when it ends, with the facts that are proven
    meaning   says what the stage does, as `Machine.meaning` does for a loop
    cases     each is proven by itself. Empty: all cards are proven at once
    by_case   blocks of the cases' region that depend on the case. Empty: all of them. All else is proven once
    """

    name: str
    layers: tuple[int, int]
    begin: Layout
    end: Layout
    meaning: Callable[[Meaning], None]
    cases: tuple[Case, ...] = ()
    by_case: tuple[str, ...] = ()
