"""The patterns at which the generated code stops, as it looks for them: words with masks, and numbers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from punchcard.card.layout import Pattern
from punchcard.engines.lowered.computer import Computer, Pointers

NOTHING = np.zeros(1, dtype=np.int64)
"""The table of no patterns."""


def table_of(computer: Computer, patterns: Iterable[Pattern]) -> Pointers:
    """What the driver reads for the cards of a computer: patterns are known by their numbers."""
    wanted = tuple(patterns)
    return np.array([len(wanted), *(part for pattern in wanted for part in _entries(computer, pattern))], dtype=np.int64)


def _entries(computer: Computer, pattern: Pattern) -> list[int]:
    """How many words and numbers a pattern looks at, and what must be there."""
    layout, places = computer.layout, computer.places
    first, column = layout.rows(pattern.rows).start, layout.region(pattern.region).start
    words: dict[int, tuple[int, int]] = {}
    numbers: list[int] = []
    for row, bit in ((first + i, bit) for i, bit in enumerate(pattern.bits) if bit):
        slot = next((s for s in computer.columns.slots if s.row == row and column in computer.columns_of(s.group)), None)
        if row not in places.fields.of_row:
            return [0, 1, places.nothing, 1]  # it holds 0, always
        field, i = places.fields.of_row[row]
        word = None if slot is None else places.word_of(slot)
        if word is not None:
            at = places.words[word[0]]
        elif slot is not None:
            numbers += [places.slots[slot] + computer.columns_of(slot.group).index(column) * places.fields.real, bit]
            continue
        elif field.bits:
            at = places.arrays[field.block] + column * field.stride + field.offset
        else:
            numbers += [places.arrays[field.block] + column * field.stride + i * field.item, bit]
            continue
        mask, wanted = words.get(at, (0, 0))
        words[at] = mask | 1 << i, wanted | (bit > 0) << i
    entries = [part if part < 1 << 63 else part - (1 << 64) for at, (mask, wanted) in words.items()
               for part in (at, mask, wanted)]
    return [len(words), len(numbers) // 2, *entries, *numbers]
