"""Many packed cards at once: fields of all of them in one array, so that a batch costs array operations, not calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from punchcard.card.encoding import Numbers, Words, as_numbers
from punchcard.card.formats import AnyArray
from punchcard.card.packed import PackedCard, insert_bits, pieces_of, word_mask
from punchcard.errors import LayoutError

if TYPE_CHECKING:
    from punchcard.card.blocks import Place


class PackedStack:
    """Cards like a first one. Fields that a loop may change have a row for each card; the others are there once."""

    def __init__(self, first: PackedCard, count: int) -> None:
        self._first, self._count, self._shared = first, count, dict[str, AnyArray]()
        self._rows: dict[str, AnyArray] = {}
        for name, field in first.fields.items():
            if first.layout.place(name).block.changes:
                self._rows[name] = np.repeat(field[None], count, axis=0)
            else:
                field.flags.writeable = False
                self._shared[name] = field

    def put_words(self, place: Place, columns: slice, words: Words) -> None:
        """Write numbers at a part that holds bits in these columns: a row for each card. A loop may change the block."""
        field = self._rows[place.block.name]
        for chunk, shift, first, count in pieces_of(place):
            there = (field if field.ndim == 2 else field[..., chunk])[:, columns]
            insert_bits(there, shift, count, words >> np.uint64(first) & word_mask(count))

    def cards(self) -> list[PackedCard]:
        """The cards one by one, without copies."""
        return cards_of(self._first, self._count, self._rows, self._shared)


class StackedCards:
    """Cards in arrays that have a row for each, which belong to the caller: to read words of some, and to change them."""

    def __init__(self, like: PackedCard, arrays: Mapping[str, AnyArray]) -> None:
        self._like, self._arrays = like, arrays

    def words(self, name: str) -> AnyArray:
        """The words of a block of bits, cards x columns: to read, and to write to where loops may change them."""
        place = self._like.layout.place(name)
        if name != place.field or not place.one_word or not place.block.changes:
            raise LayoutError(f"{name!r} is not a block of bits that loops may change, of one word in a column")
        return self._arrays[name]

    def card(self, row: int) -> PackedCard:
        """One of them, without a copy."""
        return PackedCard(self._like.layout, self._like.dtype, {name: array[row] for name, array in self._arrays.items()})


def cards_of(like: PackedCard, count: int, rows: Mapping[str, Iterable[AnyArray]],
             shared: Mapping[str, AnyArray]) -> list[PackedCard]:
    """Cards from fields that have a row for each of them, and fields that are never written to."""
    layout, dtype, names = like.layout, like.dtype, list(like.fields)
    fields = zip(*(rows[name] if name in rows else repeat(shared[name], count) for name in names), strict=True)
    return [PackedCard(layout, dtype, dict(zip(names, own, strict=True))) for own in fields]


def stacked_words(cards: Sequence[PackedCard], place: Place, columns: slice, *, signed: bool = False) -> Numbers | None:
    """The numbers of a part in these columns: a row for each card. None where one word does not have all of its bits."""
    if not place.one_word:
        return None
    fields = np.stack([card.fields[place.field][columns] for card in cards])
    return as_numbers(fields.astype(np.uint64) >> np.uint64(place.first) & word_mask(place.size), place.size, signed=signed)
