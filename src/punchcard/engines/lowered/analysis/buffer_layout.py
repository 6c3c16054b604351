"""How columns and states are stored: words for what holds ±1 bits, numbers for the rest.

The arrays are those of a packed card (see `card.packed`), one for each block, one after the other in one buffer. The rows
that an active column carries from loop to loop have a place of their own behind them, also as words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from punchcard.card.layout import Layout, RowBlock
from punchcard.engines.lowered.analysis.columns import StateSlot

CHUNK = 64
"""Rows that make a word."""
LINE = 64
"""Bytes: arrays and states begin at a multiple of this."""


@dataclass(frozen=True)
class Field:
    """Rows of a block that are stored together: up to 64 bits as one word, or numbers.

    stride, offset   bytes from column to column, and from there to the word
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


class Fields:
    """The fields of a layout, by row."""

    def __init__(self, layout: Layout, passive: Iterable[str], real: int) -> None:
        self.layout, self.real, self._passive = layout, real, tuple(passive)
        self.all: list[Field] = []
        self.of_row: dict[int, tuple[Field, int]] = {}
        """The field of a row, and which of its rows it is."""
        self.passing: dict[int, tuple[Field, int]] = {}
        """The same of rows that are carried within a loop, all of them bits: words that no column has."""
        for block in layout.blocks:
            if block.holds:
                self._add(block)
            for k in range(-(-block.size // CHUNK)):
                start, rows = layout.rows(block.name).start + CHUNK * k, min(CHUNK, block.size - CHUNK * k)
                word = Field(f"{block.name}, passing", start, rows, True, 0, 0, CHUNK // 8, ())
                self.passing.update({start + i: (word, i) for i in range(rows)})

    def _add(self, block: RowBlock) -> None:
        first = self.layout.rows(block.name).start
        missing = tuple((place.start, place.stop) for place in (
            self.layout.region(name) for name in self._passive if name not in block.holds))
        if {"real", "fixed"} & set(block.holds.values()):
            parts = [Field(block.name, first, block.size, False, block.size * self.real, 0, self.real, missing)]
        else:
            item = next(size for size in (1, 2, 4, 8) if block.size <= 8 * size or size == 8)
            chunks = -(-block.size // CHUNK)
            parts = [Field(block.name, first + CHUNK * k, min(CHUNK, block.size - CHUNK * k), True, item * chunks, item * k,
                           item, missing) for k in range(chunks)]
        for part in parts:
            self.all.append(part)
            self.of_row.update({part.start + i: (part, i) for i in range(part.rows)})


StateWord = tuple[Field, int | None]
"""Bits that one group carries from loop to loop, or all of them together: the field, and the group."""


@dataclass(frozen=True)
class BufferLayout:
    """Where things are in the buffer, in bytes.

    columns   how many there are; one more has room in every array, for stores without a place
    arrays    by block;  slots  states that are numbers;  words  states that are bits;  passing  bits within a loop
    """

    columns: int
    arrays: Mapping[str, int]
    slots: Mapping[StateSlot, int]
    words: Mapping[StateWord, int]
    fields: Fields
    size: int
    passing: Mapping[StateWord, int] = field(default_factory=dict)

    @property
    def nothing(self) -> int:
        """A place that holds 0."""
        return 0

    @property
    def nowhere(self) -> int:
        """The column that is never read."""
        return self.columns

    def word_of(self, slot: StateSlot) -> tuple[StateWord, int] | None:
        """The word of a state that is a bit, and its place there."""
        its, i = (self.fields.passing if slot.passing else self.fields.of_row)[slot.row]
        word = (its, slot.group)
        return (word, i) if slot.content == "bits" and slot.width == 1 and its.bits else None


def buffer_layout(layout: Layout, fields: Fields, slots: Iterable[StateSlot], passing: Iterable[StateSlot] = (),
                  ) -> BufferLayout:
    """Arrays, each with room in front for the column -1, which may be read before it is refused; then the states."""
    arrays: dict[str, int] = {}
    at = 0
    for one in fields.all:
        if one.block not in arrays:
            at = _line(at + one.stride)
            arrays[one.block] = at
            at += (layout.columns + 1) * one.stride
    numbers: dict[StateSlot, int] = {}
    words: dict[StateWord, int] = {}
    empty = BufferLayout(layout.columns, arrays, numbers, words, fields, 0)
    at = _line(at + CHUNK // 8)
    for slot in slots:
        found = empty.word_of(slot)
        if found is None:
            numbers[slot] = at
            at = -(-(at + slot.width * fields.real) // 8) * 8
        elif found[0] not in words:
            words[found[0]] = at
            at += CHUNK // 8
    between: dict[StateWord, int] = {}
    for slot in passing:
        found = empty.word_of(slot)
        assert found is not None
        if found[0] not in between:
            between[found[0]] = at
            at += CHUNK // 8
    return BufferLayout(layout.columns, arrays, numbers, words, fields, _line(at), between)


def _line(at: int) -> int:
    return -(-at // LINE) * LINE
