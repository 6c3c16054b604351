"""How columns and states are stored: words for what holds ±1 bits, numbers for the rest.

The arrays are those of a packed card (see `card.packed`), one for each block, one after the other in one buffer. The rows
that active columns carry from loop to loop are there too, where there is one such column. Otherwise they have a place of
their own behind the arrays, also as words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from punchcard.card.layout import Layout, Place
from punchcard.engines.lowered.analysis.columns import StateSlot

CHUNK = 64
"""Rows that make a word."""
LINE = 64
"""Bytes: arrays and states begin at a multiple of this."""


@dataclass(frozen=True)
class Field:
    """Rows of a block that are stored together: up to 64 bits as one word, or numbers.

    stride, offset   bytes from column to column, and from there to the word; many numbers begin at a line each time
    item             bytes of the word, or of a number
    missing          passive columns, from and to, where the block holds nothing
    """

    block: str
    start: int
    rows: int
    bits: bool
    stride: int
    offset: int
    item: int
    missing: tuple[tuple[int, int], ...]


StateWord = tuple[Field, int | None]
"""Bits that one group carries from loop to loop, or all of them together: the field, and the group."""


class BufferLayout:
    """The fields of a layout, and where things are in the buffer of a card, in bytes.

    of_row    the field of a row, and which of its rows it is
    nowhere   the column that is never read: every array has room for it, for stores without a place
    arrays    by block;  slots  states that are numbers;  words  states that are bits;  passing  bits within a loop
    in_card   states that are bits, and lie where the card has them: in `column`, the only active one
    """

    def __init__(self, layout: Layout, passive: Iterable[slice], real: int, slots: Iterable[StateSlot],
                 passing: Iterable[StateSlot] = (), column: int | None = None) -> None:
        spans = [(place.start, place.stop) for place in passive]
        self.real, self.nowhere = real, layout.columns
        self.fields: list[Field] = []
        self.of_row: dict[int, tuple[Field, int]] = {}
        self._passing_of_row: dict[int, tuple[Field, int]] = {}
        """Words that no column has, for rows that are carried within a loop, all of them bits."""
        for block in layout.blocks:
            place = layout.place(block.name)
            missing = tuple(span for span in place.empty if span in spans)
            held = _fields(place, real, missing) if block.holds else []
            chunks = [(place.rows.start + k, min(CHUNK, block.size - k)) for k in range(0, block.size, CHUNK)]
            within = [Field(f"{block.name}, passing", *chunk, True, 0, 0, CHUNK // 8, ()) for chunk in chunks]
            self.fields += held
            for fields, rows in ((held, self.of_row), (within, self._passing_of_row)):
                rows.update({field.start + i: (field, i) for field in fields for i in range(field.rows)})
        self.arrays: dict[str, int] = {}
        self.strides = {field.block: field.stride for field in self.fields}
        at = 0
        for field in self.fields:  # each with room in front for the column -1, which may be read before it is refused
            if field.block not in self.arrays:
                self.arrays[field.block] = _line(at + field.stride)
                at = self.arrays[field.block] + (layout.columns + 1) * field.stride
        self.slots: dict[StateSlot, int] = {}
        self.words: dict[StateWord, int] = {}
        self.passing: dict[StateWord, int] = {}
        self.in_card: set[StateWord] = set()
        self.masks: dict[StateWord, int] = {}
        """The bits of each word that are states."""
        for slot in slots:
            found = self.word_of(slot)
            if found is not None:
                self.masks[found[0]] = self.masks.get(found[0], 0) | 1 << found[1]
        at = _line(at + CHUNK // 8)
        for slot in (*slots, *passing):
            found, words = self.word_of(slot), self.passing if slot.passing else self.words
            if found is None:
                self.slots[slot] = at
                at = -(-(at + slot.width * real) // 8) * 8
            elif found[0] not in words and column is not None and self._fills(found[0]):
                field = found[0][0]
                words[found[0]] = self.arrays[field.block] + column * field.stride + field.offset
                self.in_card.add(found[0])
            elif found[0] not in words:
                words[found[0]] = at
                at += CHUNK // 8
        self.size = _line(at)

    def _fills(self, word: StateWord) -> bool:
        """Whether all bits of a column's word are states, so that it can be written as a whole."""
        return self.masks.get(word) == (1 << word[0].rows) - 1

    def changing(self, layout: Layout) -> list[tuple[int, int, int]]:
        """The arrays that loops may change: where they begin, how many bytes they have, and those of a word."""
        return [(self.arrays[field.block], field.stride * layout.columns, field.item) for field in self.fields
                if field.bits and field.offset == 0 and layout.place(field.block).block.changes]

    def item(self, word: StateWord) -> int:
        """The bytes of a state that is a word."""
        return word[0].item if word in self.in_card else CHUNK // 8

    def word_of(self, slot: StateSlot) -> tuple[StateWord, int] | None:
        """The word of a state that is a bit, and its place there."""
        field, i = (self._passing_of_row if slot.passing else self.of_row)[slot.row]
        return ((field, slot.group), i) if slot.content == "bits" and slot.width == 1 and field.bits else None


def _fields(place: Place, real: int, missing: tuple[tuple[int, int], ...]) -> list[Field]:
    """The fields of a block: its numbers together, or its bits in words of 64."""
    name, first, size = place.name, place.rows.start, place.size
    if place.real:
        stride = size * real
        return [Field(name, first, size, False, stride if stride <= LINE else _line(stride), 0, real, missing)]
    item = next(item for item in (1, 2, 4, 8) if size <= 8 * item or item == 8)
    stride = item * -(-size // CHUNK)
    return [Field(name, first + k, min(CHUNK, size - k), True, stride, k // 8, item, missing) for k in range(0, size, CHUNK)]


def _line(at: int) -> int:
    return -(-at // LINE) * LINE
