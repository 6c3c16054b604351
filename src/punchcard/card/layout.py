"""The layout: names for the rows and columns of a card, and facts about what they hold.

A card is a matrix X of `width` rows and `columns` columns. Everything else asks the layout for slices by name; no
other file writes a row or column number. The facts (which rows hold ±1 bits where, what a loop may change) are
statements about the card when a loop begins. Engines may rely on them, and tests check them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, Union, overload

import numpy as np

from punchcard.budget import require, running
from punchcard.card.blocks import Content, Pattern, Place, Region, RowBlock, find_place, holding, persistent_bits, place_all
from punchcard.card.encoding import MOST_BITS, Numbers, as_integer, checked_words, decode_bits, unpack_bits
from punchcard.card.facts import AnyFact, Contents
from punchcard.card.formats import AnyArray, FormatName, as_array, name_of
from punchcard.card.packed import CHUNK, PackedCard, first_mismatch
from punchcard.card.packed_stack import stacked_words
from punchcard.errors import EncodingError, LayoutError, SizeError, UnknownNameError
from punchcard.formatting import join_some

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Card", "CardHolder", "Cards", "Cell", "Content", "Layout", "Pattern", "Place", "Region", "RowBlock",
           "WordPattern", "as_tensor", "holding", "persistent_bits"]

Card: TypeAlias = Union["Tensor", AnyArray, PackedCard]
"""A card: a tensor or an array (..., rows, columns), or packed. All calls of a layout take any of them."""
Cards: TypeAlias = Card | list[PackedCard] | tuple[PackedCard, ...]
"""A card, or a batch: with leading dimensions, or packed cards one after the other."""
Dense = TypeVar("Dense", bound="Tensor | AnyArray")
SomeFact = TypeVar("SomeFact", bound=AnyFact)


@dataclass(frozen=True)
class WordPattern:
    """A pattern on packed cards: bits of a word in one column."""

    place: Place
    column: int
    mask: int
    bits: int

    def on(self, card: PackedCard) -> bool:
        """Whether it is on a card."""
        return card.word(self.place, self.column) & self.mask == self.bits


class Cell(Protocol):
    """One number on a card."""

    def get(self) -> int:
        """The number."""

    def put(self, word: int) -> None:
        """Write a number, which has as many bits as there are rows at most."""


@dataclass(frozen=True)
class _DenseCell:
    layout: Layout
    card: Card
    rows: str
    column: int

    def get(self) -> int:
        return self.layout.number_at(self.card, self.rows, self.column)

    def put(self, word: int) -> None:
        self.layout.put_number_at(self.card, self.rows, self.column, word)


class Layout:
    """Row blocks and column regions, packed one after the other unless a block says where it starts."""

    def __init__(
        self, rows: Iterable[RowBlock], regions: Iterable[Region],
        facts: Iterable[AnyFact] | Callable[[], Iterable[AnyFact]] = (),
    ) -> None:
        self.blocks = tuple(rows)
        self.regions = tuple(regions)
        self._facts = facts
        self._rows = place_all(self.blocks, "row block", "rows")
        self._columns = place_all(self.regions, "region", "columns")
        self._places: dict[str, Place] = {}
        self._patterns: dict[Pattern, WordPattern | None] = {}
        self.width = max((s.stop for s in self._rows.values()), default=0)
        self.columns = max((s.stop for s in self._columns.values()), default=0)
        for block in self.blocks:
            start = self.rows(block.name).start
            for part, size in block.parts.items():
                self._rows[f"{block.name}.{part}"] = slice(start, start + size)
                start += size
            for name in (*block.holds, *block.changes):
                self.region(name)
        for region in self.regions:
            if region.groups and sum(region.groups) != region.size:
                raise SizeError(f"the groups of region {region.name!r} have {sum(region.groups)} columns, "
                                f"the region has {region.size}")

    @cached_property
    def facts(self) -> tuple[AnyFact, ...]:
        """What is declared beyond which rows hold what. Those of large cards are made on first use."""
        for fact in self._declared:
            fact.check(self)
        return self._declared

    @cached_property
    def _declared(self) -> tuple[AnyFact, ...]:
        """The facts before they are checked."""
        return tuple(self._facts() if callable(self._facts) else self._facts)

    @cached_property
    def contents(self) -> tuple[Contents, ...]:
        """What columns hold in one of two blocks: the facts that others may name."""
        return tuple(fact for fact in self._declared if isinstance(fact, Contents))

    def facts_of(self, kind: type[SomeFact]) -> list[SomeFact]:
        """The facts of one class."""
        return [fact for fact in self.facts if isinstance(fact, kind)]

    def __repr__(self) -> str:
        rows = join_some([f"{b.name} {b.size}" for b in self.blocks], most=12)
        columns = join_some([f"{r.name} {r.size}" for r in self.regions], most=12)
        return f"<layout of {self.width} rows ({rows}) and {self.columns} columns ({columns})>"

    def limited(self, limits: Mapping[str, float]) -> Layout:
        """The same layout with limits declared for some blocks."""
        for name in limits:
            self.rows(name)
        return Layout([replace(b, limit=limits.get(b.name, b.limit)) for b in self.blocks], self.regions, self._facts)

    def rows(self, name: str) -> slice:
        """The rows of a block, or of a part (`"command.a"`)."""
        return find_place(name, self._rows, "row block")

    def region(self, name: str) -> slice:
        """The columns of a region."""
        return find_place(name, self._columns, "region")

    def region_size(self, name: str) -> int:
        """How many columns a region has."""
        span = self.region(name)
        return int(span.stop - span.start)

    def column_name(self, column: int) -> str:
        """A column by its region and its number there: `memory[3]`, or `scratchpad` where the region is one column."""
        for region in self.regions:
            place = self._columns[region.name]
            if place.start <= column < place.stop:
                return region.name if region.size == 1 else f"{region.name}[{column - place.start}]"
        raise UnknownNameError(f"no column {column}: the card has {self.columns}, counted from 0")

    def place(self, name: str) -> Place:
        """The rows of a block, or of a part, with what is declared of them."""
        found = self._places.get(name)
        if found is None:
            rows = self.rows(name)
            block = next(b for b in self.blocks if b.name == name.split(".")[0])
            first, size = rows.start - self.rows(block.name).start, rows.stop - rows.start
            found = Place(name, block, first, size, rows, self._spans(block, None), self._spans(block, "one"),
                          block.real, slice(first, first + size), (1 << size) - 1,
                          block.name, not block.real and block.size <= CHUNK)
            self._places[name] = found
        return found

    def _spans(self, block: RowBlock, content: Content | None) -> tuple[tuple[int, int], ...]:
        """The columns in which a block holds this content."""
        places = [self._columns[r.name] for r in self.regions if block.holds.get(r.name) == content]
        return tuple((place.start, place.stop) for place in places)

    def blank(self, dtype: FormatName = "float64") -> Tensor:
        """A card of zeros, of which a run may begin; one that is too large to run is refused."""
        self.check_room()
        import torch

        return torch.zeros(self.width, self.columns, dtype=getattr(torch, name_of(dtype)), device="cpu")

    def check_room(self, why: str = "") -> None:
        """Refuse a card that is too large to run as a tensor; the message says `why` it is one."""
        require(running(self.width, self.columns),
                f"a card of {self.width} rows and {self.columns} columns as a tensor{why}")

    # Entries

    @overload
    def get(self, card: Dense, rows: str, region: str) -> Dense: ...
    @overload
    def get(self, card: PackedCard | list[PackedCard] | tuple[PackedCard, ...], rows: str, region: str) -> AnyArray: ...
    def get(self, card: Any, rows: str, region: str) -> Any:
        """The entries at a block's rows and a region's columns: (..., rows, columns). Of a dense card it is a view."""
        self.check(card)
        if isinstance(card, PackedCard):
            return card.entries(rows, region)
        if isinstance(card, list | tuple):
            return np.stack([one.entries(rows, region) for one in card])
        return card[..., self.rows(rows), self.region(region)]

    def array(self, card: Cards, rows: str, region: str) -> AnyArray:
        """The same as an array, whatever the card is."""
        return as_array(self.get(card, rows, region))

    def put(self, card: Card, rows: str, region: str, values: Tensor | AnyArray | float) -> None:
        """Write `values` at a block's rows and a region's columns; the sizes must agree."""
        self.check(card)
        if isinstance(card, PackedCard):
            card.put(rows, region, as_array(values))
            return
        self.check_shape(rows, region, np.shape(values))
        place: Any = self.get(card, rows, region)
        if isinstance(values, np.ndarray) and not isinstance(place, np.ndarray):
            values = place.new_tensor(values)
        place[...] = values

    def check_shape(self, rows: str, region: str, shape: tuple[int, ...]) -> None:
        """Refuse entries of a shape (..., rows, columns) that is not that of the place; one number fits every place."""
        size = self.place(rows).size, self.region_size(region)
        if shape and tuple(shape[-2:]) != size:
            raise SizeError(f"{tuple(shape[-2:])} values do not fit {rows!r} in {region!r}, which is {size}")

    # Numbers

    def put_numbers(
        self, card: Card, region: str, numbers: Mapping[str, Sequence[int] | Numbers], *, rest: int | None = None,
        signed: bool = False,
    ) -> None:
        """Write numbers as ±1 bits: for each row block a number for each column of the region.

        With `rest`, columns after the last of the numbers hold that one. Numbers below 0 are `signed`, two's complement.
        """
        columns = self.region(region)
        for name, values in numbers.items():
            place = self.place(name)
            words = checked_words(values, place.size, signed=signed)
            missing = columns.stop - columns.start - len(words)
            if missing < 0 or (missing and rest is None):
                raise SizeError(f"{(place.size, len(words))} values do not fit {name!r} in {region!r}, "
                                f"which is {(place.size, columns.stop - columns.start)}")
            other = checked_words(rest or 0, place.size, signed=signed)[0]
            if isinstance(card, PackedCard) and place.block.holds.get(region) in ("bits", "real", "fixed"):
                self.check(card)
                end = columns.start + len(words)
                card.put_words(place, slice(columns.start, end), words)
                if missing:
                    card.put_words(place, slice(end, columns.stop), other)
            else:
                filled = np.concatenate([words, np.full(missing, other)])
                self.put(card, name, region, 2.0 * unpack_bits(filled, place.size) - 1)

    def numbers(self, card: Cards, rows: str, region: str, columns: slice | None = None, *, signed: bool = False) -> Numbers:
        """The numbers at a block's rows, an array (..., columns): of a region, or of some of its columns."""
        place, whole = self.place(rows), self.region(region)
        first, last, _ = (columns or slice(None)).indices(whole.stop - whole.start)
        chosen = slice(whole.start + first, whole.start + max(first, last))
        if isinstance(card, list | tuple):
            found = None
            if card and region in place.block.holds and all(isinstance(one, PackedCard) for one in card):
                self.check(card)
                found = stacked_words(card, place, chosen, signed=signed)
            return found if found is not None else np.stack(
                [self.numbers(one, rows, region, columns, signed=signed) for one in card])
        if isinstance(card, PackedCard) and place.size <= MOST_BITS and region in place.block.holds:
            self.check(card)
            return card.words(place, chosen, signed=signed)
        if isinstance(card, PackedCard):
            return decode_bits(card.entries(rows, region, chosen), signed=signed)
        self.check(card)
        return decode_bits(as_array(card[..., place.rows, chosen]), signed=signed)

    def number_at(self, card: Card, rows: str, column: int) -> int:
        """The number at a block's rows in one column of the card: of a packed card in about a microsecond."""
        place = self._places.get(rows) or self.place(rows)
        if isinstance(card, PackedCard):
            return card.word(place, column)
        self.check(card)
        return as_integer(as_array(card[place.rows, column]))

    def check_number(self, rows: str, number: int) -> Place:
        """Refuse a number that does not fit a block's rows."""
        place = self._places.get(rows) or self.place(rows)
        if not -(1 << place.size) <= 2 * number < 2 << place.size:
            raise EncodingError(f"{number} does not fit {rows!r}, which has {place.size} bits")
        return place

    def put_number_at(self, card: Card, rows: str, column: int, number: int) -> None:
        """Write a number at a block's rows in one column of the card. One below 0 is written in two's complement."""
        place = self.check_number(rows, number)
        word = number & (1 << place.size) - 1
        if isinstance(card, PackedCard):
            card.put_word(place, column, word)
            return
        bits = [1.0 if word >> i & 1 else -1.0 for i in range(place.size)]
        dense: Any = card
        dense[place.rows, column] = bits if isinstance(card, np.ndarray) else card.new_tensor(bits)

    def cell(self, card: Card, rows: str, column: int) -> Cell:
        """The number at a block's rows in one column of a card, to read and write many times."""
        return card.cell(self.place(rows), column) if isinstance(card, PackedCard) else _DenseCell(self, card, rows, column)

    def check(self, card: Cards) -> None:
        """Refuse what is not a card of this layout."""
        if isinstance(card, list | tuple):
            for one in card:
                self.check(one)
        elif isinstance(card, PackedCard):
            if card.layout is not self and card.layout.describe() != self.describe():
                raise LayoutError(f"a packed card of another layout: {card.layout!r}, not {self!r}")
        elif card.ndim < 2 or tuple(card.shape[-2:]) != (self.width, self.columns):
            raise SizeError(f"a card of shape {tuple(card.shape)} does not fit the layout, "
                            f"which has {self.width} rows and {self.columns} columns")

    def violations(self, card: Card) -> list[str]:
        """Where a card at the beginning of a loop violates the declared facts; empty when they hold."""
        self.check(card)
        found = [f"{block.name} in {region.name} holds {held}, not {block.holds.get(region.name) or 'zero'}"
                 for block in self.blocks for region in self.regions
                 if (held := self._mismatch(card, block, region.name)) is not None]
        for fact in () if found else self.facts:
            wrong = np.nonzero(~fact.truths(self, card))[-1]
            if len(wrong):
                first = self.column_name(self.region(fact.region).start + int(wrong[0]))
                found.append(f"{first}: violated: {fact.about}")
        return found

    def _mismatch(self, card: Card, block: RowBlock, region: str) -> float | str | None:
        """What a block holds in a region that is not declared, or None."""
        if isinstance(card, PackedCard):
            return card.mismatch(block, region)
        return first_mismatch(as_array(card)[..., self.rows(block.name), self.region(region)], block.holds.get(region))

    @overload
    def matches(self, card: Tensor, pattern: Pattern) -> Tensor: ...
    @overload
    def matches(self, card: AnyArray | PackedCard, pattern: Pattern) -> AnyArray: ...
    def matches(self, card: Any, pattern: Pattern) -> Any:
        """Whether the pattern is on the card: a boolean, one for each card of a batch."""
        if isinstance(card, PackedCard) and (words := self.word_pattern(pattern)) is not None:
            return np.bool_(words.on(card))
        first = self.pattern_column(pattern)
        if isinstance(card, PackedCard):
            column = card.entries(pattern.rows, pattern.region, slice(first, first + 1))[:, 0]
        else:
            column = self.get(card, pattern.rows, pattern.region)[..., pattern.column]
        bits = np.array(pattern.bits) if isinstance(column, np.ndarray) else column.new_tensor(pattern.bits)
        return ((abs(column - bits) < 0.5) | (bits == 0)).all(-1)

    def look_for(self, card: PackedCard, pattern: Pattern) -> Callable[[], Any]:
        """A function that says whether a pattern is on a card, to be asked many times."""
        words = self.word_pattern(pattern)
        if words is None:
            return partial(self.matches, card, pattern)
        read, mask, bits = card.cell(words.place, words.column).get, words.mask, words.bits
        return lambda: read() & mask == bits

    def word_pattern(self, pattern: Pattern) -> WordPattern | None:
        """A pattern as it is looked for on packed cards; None where its rows are not a word there."""
        if pattern not in self._patterns:
            column, place = self.pattern_column(pattern), self.place(pattern.rows)
            held = not place.real and pattern.region in place.block.holds
            mask, bits = (sum(1 << i for i, bit in enumerate(pattern.bits) if bit in some) for some in ((-1, 1), (1,)))
            self._patterns[pattern] = WordPattern(place, column, mask, bits) if held else None
        return self._patterns[pattern]

    def pattern_column(self, pattern: Pattern) -> int:
        """The column of the card that a pattern is looked for in.

        Refuses a pattern that names no rows or region of this layout, or has another number of bits.
        """
        place, region = self.rows(pattern.rows), self.region(pattern.region)
        if pattern.column not in range(region.stop - region.start):
            raise SizeError(f"pattern with column {pattern.column}: {pattern.region!r} has columns 0 to "
                            f"{region.stop - region.start - 1}")
        if len(pattern.bits) != place.stop - place.start or not set(pattern.bits) <= {-1, 0, 1}:
            raise SizeError(f"pattern {pattern.bits} does not fit {pattern.rows!r}, which has "
                            f"{place.stop - place.start} rows: it has a -1, 1 or 0 (either) for each")
        return int(region.start) + pattern.column

    def describe(self) -> dict[str, Any]:
        """The layout as plain data, for saving."""
        return {
            "rows": [
                {"name": b.name, "start": self.rows(b.name).start, "size": b.size, "parts": dict(b.parts),
                 "holds": dict(b.holds), "changes": list(b.changes), "limit": b.limit, "within": b.within,
                 "selects": list(b.selects), **({"follows": True} if b.follows else {})}
                for b in self.blocks
            ],
            "regions": [
                {"name": r.name, "start": self.region(r.name).start, "size": r.size, "groups": list(r.groups)}
                for r in self.regions
            ],
        }


def as_tensor(card: Card) -> Tensor:
    """Any card as a tensor."""
    if isinstance(card, PackedCard):
        return card.tensor()
    if isinstance(card, np.ndarray):
        import torch

        return torch.from_numpy(card)
    return card


class CardHolder:
    """A value with a card: `raw_card` as the engine gave it, `card` as a tensor."""

    raw_card: Card

    @cached_property
    def card(self) -> Tensor:
        """The card as a tensor, made on first use."""
        return as_tensor(self.raw_card)

    @property
    def packed(self) -> PackedCard | None:
        """The raw card if it is packed, or None."""
        return self.raw_card if isinstance(self.raw_card, PackedCard) else None
