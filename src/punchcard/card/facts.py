"""Facts about a card when a loop begins that say more than which rows hold bits: which numbers stand there.

A layout declares them, `Layout.violations` checks them on a card, and a proof takes them for granted when a loop begins and
shows that they hold again when it ends. A condition is about one column; its rows are read as unsigned numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from punchcard.card.contents import AnyContent, Constants, Contents, CopiesContents, Uniform, held_numbers, held_size
from punchcard.errors import LayoutError

if TYPE_CHECKING:
    from punchcard.card.layout import Card, Layout

Truths: TypeAlias = Any
"""A Boolean for each column of a region."""
Words: TypeAlias = Callable[[str], Any]
"""The numbers at some rows, in each column of a region."""


@dataclass(frozen=True)
class Equals:
    """The number is this one, modulo 2^rows; with `low`, its lowest bits are."""

    rows: str
    number: int
    low: int | None = None


@dataclass(frozen=True)
class Names:
    """The number is a column of one of these regions."""

    rows: str
    regions: tuple[str, ...]


@dataclass(frozen=True)
class Spans:
    """The columns from this number on, as many as the number at `width` says, belong to one of these regions."""

    rows: str
    width: str
    regions: tuple[str, ...]


@dataclass(frozen=True)
class Below:
    """The number is less than this one."""

    rows: str
    number: int


@dataclass(frozen=True)
class Same:
    """Two blocks hold the same number, but for an offset: rows = other + offset, modulo 2^rows."""

    rows: str
    other: str
    offset: int = 0


@dataclass(frozen=True)
class Own:
    """The number is that of its own column."""

    rows: str


@dataclass(frozen=True)
class Either:
    """One of the conditions holds, or several."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Both:
    """All of the conditions hold."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Not:
    """The condition does not hold."""

    condition: Condition


@dataclass(frozen=True)
class Bits:
    """Each bit is decided by bits of other rows: it is 1 where one of its sources is 1 and its literals hold.

    A source is a place in `of`, with the bits that other places there must hold. A bit without sources is 0.
    """

    rows: str
    of: str
    sources: tuple[tuple[tuple[int, Mapping[int, int]], ...], ...]


@dataclass(frozen=True)
class Sum:
    """The number is the sum of the lowest bits of others and a constant, from a bit on, modulo 2^rows."""

    rows: str
    of: tuple[str, ...]
    bits: int
    constant: int = 0
    shift: int = 0


Leaf: TypeAlias = Equals | Names | Spans | Below | Same | Own | Bits | Sum
"""A condition about rows, not made of others."""
Condition: TypeAlias = Leaf | Either | Both | Not


def either(*conditions: Condition) -> Either:
    """One of them, or several."""
    return Either(conditions)


def both(*conditions: Condition) -> Both:
    """All of them."""
    return Both(conditions)


def implies(condition: Condition, then: Condition) -> Either:
    """Where the condition holds, the other does."""
    return Either((Not(condition), then))


@dataclass(frozen=True)
class Holds:
    """A block holds these numbers in a region, one for each column, modulo 2^rows, and keeps them."""

    rows: str
    region: str
    numbers: Sequence[int]

    @property
    def about(self) -> str:
        return f"{self.rows} in {self.region} holds its numbers"


@dataclass(frozen=True)
class Fact:
    """A condition that holds in every column of a region; with `last`, in its last column.

    A loop may leave a card on which `unless` holds in place of it: then a host takes over before the next loop begins.
    What is `promised` is the program's to keep, and watched while it runs: a proof takes it for granted in every loop.
    """

    region: str
    condition: Condition
    about: str
    last: bool = False
    unless: Condition | None = None
    promised: bool = False

    @property
    def after(self) -> Condition:
        """What holds when a loop has ended."""
        return self.condition if self.unless is None else Either((self.unless, self.condition))


@dataclass(frozen=True)
class Copies:
    """In every column of a region, the number at `by` names a column that has the rows `of`, and `rows` equal those."""

    rows: str
    region: str
    of: str
    by: str

    @property
    def about(self) -> str:
        return f"{self.rows} in {self.region} is {self.of} of the column that {self.by} names"


@dataclass(frozen=True)
class Each:
    """A condition for each column of a region, where the columns are for different things."""

    region: str
    conditions: tuple[Condition, ...]
    about: str


@dataclass(frozen=True)
class Indicates:
    """Each entry of a block is 1 where its condition holds in the column, else 0: rows by columns, or one for all."""

    rows: str
    region: str
    conditions: tuple[tuple[Condition, ...], ...]

    @property
    def about(self) -> str:
        return f"{self.rows} in {self.region} indicates what it should"

    def of(self, row: int, column: int) -> Condition:
        """The condition of an entry; the column counted from the region's first."""
        conditions = self.conditions[row]
        return conditions[column if len(conditions) > 1 else 0]


AnyFact: TypeAlias = Holds | Fact | Copies | Each | Indicates | AnyContent


def check_fact(layout: Layout, fact: AnyFact) -> None:
    """Refuse a fact about a region that is not there, or with numbers that cannot be meant."""
    span = layout.region(fact.region)
    size = span.stop - span.start
    if isinstance(fact, Holds) and len(fact.numbers) != size:
        raise LayoutError(f"{fact.about}: there are {len(fact.numbers)}, and the region has {size} columns")
    if isinstance(fact, Each) and len(fact.conditions) != size:
        raise LayoutError(f"{fact.about}: there are {len(fact.conditions)} conditions, and the region has {size} columns")
    if isinstance(fact, Indicates):
        wanted = layout.place(fact.rows).size
        if len(fact.conditions) != wanted or any(len(row) not in (1, size) for row in fact.conditions):
            raise LayoutError(f"{fact.about}: it needs {wanted} rows of conditions, each with one or with {size}")
    if isinstance(fact, CopiesContents):
        fact.check(layout)
    if isinstance(fact, Fact | Each | Indicates):
        for condition in (leaf for each in _conditions(fact) for leaf in leaves(each)):
            least = condition.constant if isinstance(condition, Sum) else getattr(condition, "number", 0)
            if isinstance(condition, Sum | Below) and least < 0:
                raise LayoutError(f"{fact.about}: {condition} has a number below 0, words are unsigned")
            for rows in rows_of(condition):
                _check_bits(layout, fact, rows)
            if isinstance(condition, Same) and held_size(layout, condition.rows) != held_size(layout, condition.other):
                raise LayoutError(f"{fact.about}: {condition.rows!r} and {condition.other!r} have different lengths")
            if isinstance(condition, Sum) and any(held_size(layout, rows) < condition.bits for rows in condition.of):
                raise LayoutError(f"{fact.about}: one of {condition.of} has fewer than {condition.bits} bits")
            if isinstance(condition, Bits) and len(condition.sources) != held_size(layout, condition.rows):
                raise LayoutError(f"{fact.about}: {len(condition.sources)} sources for {condition.rows!r}, which has "
                                  f"{held_size(layout, condition.rows)} bits")
            if isinstance(condition, Equals) and condition.low == 0:
                raise LayoutError(f"{fact.about}: {condition} is about no bits at all")


def rows_of(condition: Leaf) -> list[str]:
    """The rows that a condition is about."""
    others = [getattr(condition, name) for name in ("other", "width", "of") if hasattr(condition, name)]
    return [condition.rows, *(each for other in others for each in ((other,) if isinstance(other, str) else other))]


def _conditions(fact: Fact | Each | Indicates) -> Iterator[Condition]:
    if isinstance(fact, Fact):
        yield fact.after
    elif isinstance(fact, Each):
        yield from fact.conditions
    else:
        for row in fact.conditions:
            yield from row


def _check_bits(layout: Layout, fact: Fact | Each | Indicates, rows: str) -> None:
    """Refuse rows that hold no bits in the fact's region, in a block or in its contents."""
    for each in layout.facts_given:
        if isinstance(each, Contents) and each.region == fact.region and rows in each.places():
            return
    if layout.place(rows).block.holds.get(fact.region) != "bits":
        raise LayoutError(f"{fact.about}: {rows!r} holds no bits in {fact.region!r}")


def sources(layout: Layout, fact: Copies) -> list[str]:
    """The regions that have what is copied."""
    return [region for region, content in layout.place(fact.of).block.holds.items() if content == "bits"]


def leaves(condition: Condition) -> Iterator[Leaf]:
    """The conditions that a condition is made of."""
    if isinstance(condition, Either | Both):
        for each in condition.conditions:
            yield from leaves(each)
    elif isinstance(condition, Not):
        yield from leaves(condition.condition)
    else:
        yield condition


def violated_facts(layout: Layout, card: Card) -> list[str]:
    """Which facts do not hold on a card, each with the first column where it fails."""
    found = []
    for fact in layout.facts:
        wrong = np.nonzero(~_truths(layout, card, fact))[-1]
        if len(wrong):
            place = layout.region(fact.region)
            column = place.stop - 1 if isinstance(fact, Fact) and fact.last else place.start + int(wrong[0])
            found.append(f"{layout.column_name(column)}: violated: {fact.about}")
    return found


def _truths(layout: Layout, card: Card, fact: AnyFact) -> Truths:
    """Whether a fact holds, in each column of its region that it is about."""
    if isinstance(fact, Constants | Uniform | Contents | CopiesContents):
        return fact.truths(layout, card)
    place = layout.region(fact.region)
    columns = np.arange(place.start, place.stop)

    def read(rows: str) -> Any:
        return held_numbers(layout, card, rows, fact.region)

    if isinstance(fact, Each | Indicates):
        return _by_column(layout, card, fact, read, columns)
    if isinstance(fact, Holds):
        return read(fact.rows) == np.asarray(fact.numbers) % (1 << layout.place(fact.rows).size)
    if isinstance(fact, Copies):
        everywhere, held = np.zeros(layout.columns, dtype=np.int64), np.zeros(layout.columns, dtype=bool)
        for region in sources(layout, fact):
            everywhere[layout.region(region)] = layout.numbers(card, fact.of, region)
            held[layout.region(region)] = True
        named = read(fact.by)
        inside = named < layout.columns
        source = np.where(inside, named, 0)
        return inside & held[source] & (read(fact.rows) == everywhere[source])
    if fact.last:
        return _holds(layout, fact.after, lambda rows: read(rows)[-1:], columns[-1:])
    return _holds(layout, fact.after, read, columns)


def _by_column(layout: Layout, card: Card, fact: Each | Indicates, read: Words, columns: Any) -> Truths:
    """Whether the condition of each column holds, or its entries say whether it does."""
    held: dict[int, Any] = {}

    def of(conditions: Sequence[Condition]) -> Any:
        """In each column, whether its own condition holds; one that several share is looked at once."""
        for condition in conditions:
            if id(condition) not in held:
                held[id(condition)] = _holds(layout, condition, read, columns)
        if len(conditions) == 1:
            return held[id(conditions[0])]
        return np.stack([held[id(condition)][..., place] for place, condition in enumerate(conditions)], axis=-1)

    if isinstance(fact, Each):
        return of(fact.conditions)
    entries = layout.array(card, fact.rows, fact.region)
    return np.stack([entries[..., row, :] == of(conditions) for row, conditions in enumerate(fact.conditions)]).all(0)


def _holds(layout: Layout, condition: Condition, read: Words, columns: Any) -> Truths:
    """Whether a condition holds, in each of these columns."""
    if isinstance(condition, Either):
        return reduce(np.logical_or, [_holds(layout, each, read, columns) for each in condition.conditions])
    if isinstance(condition, Both):
        return reduce(np.logical_and, [_holds(layout, each, read, columns) for each in condition.conditions])
    if isinstance(condition, Not):
        return ~_holds(layout, condition.condition, read, columns)
    bits = held_size(layout, condition.rows)
    numbers, size = read(condition.rows), 1 << bits
    if isinstance(condition, Equals):
        kept = min(size, 1 << (condition.low if condition.low is not None else bits))
        return numbers % kept == condition.number % kept
    if isinstance(condition, Own):
        return numbers == columns % size
    if isinstance(condition, Bits):
        return numbers == _decided(condition, read(condition.of))
    if isinstance(condition, Sum):
        total = sum(read(rows) % (1 << condition.bits) for rows in condition.of) + condition.constant
        return numbers == (total >> condition.shift) % size
    if isinstance(condition, Same):
        return numbers == (read(condition.other) + condition.offset) % size
    if isinstance(condition, Below):
        return numbers < condition.number
    spans = [layout.region(region) for region in condition.regions]
    if isinstance(condition, Spans):
        width = read(condition.width)
        inside = [(numbers >= span.start) & (numbers + width <= span.stop) for span in spans]
        return (width == 0) | reduce(np.logical_or, inside)
    return reduce(np.logical_or, [(numbers >= span.start) & (numbers < span.stop) for span in spans])


def _decided(condition: Bits, of: Any) -> Any:
    """The number that the bits of others decide."""
    found = np.zeros_like(of)
    for place, sources in enumerate(condition.sources):
        for source, literals in sources:
            held = [of >> other & 1 == bit for other, bit in literals.items()]
            holds = reduce(np.logical_and, held, of >> source & 1 == 1)
            found = found | holds.astype(of.dtype) << place
    return found
