"""The patterns at which the generated code stops, as it looks for them: words with masks, and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, groupby

import numpy as np

from punchcard.card.layout import Pattern
from punchcard.engines.base import Port
from punchcard.engines.lowered.computer import Computer, Pointers
from punchcard.engines.tap import Tap

NOTHING = np.zeros(4, dtype=np.int64)
"""The table of no patterns."""
NO_TAP = (0, 0, 0)
MOST_NOTES = 1 << 13


class TapLog:
    """Numbers that the code took at taps: how many there are, how many there is room for, then pairs.

    A pair is the number of the pattern, and the word with the bits that were taken.
    """

    def __init__(self) -> None:
        self._log = np.zeros(2 + 2 * MOST_NOTES, dtype=np.int64)
        self._log[1] = MOST_NOTES
        self._taps: dict[int, tuple[Tap, int]] = {}

    @property
    def address(self) -> int:
        return int(self._log.ctypes.data)

    def serve(self, computer: Computer, first: int, ports: Mapping[Pattern, Port]) -> dict[int, tuple[int, int, int]]:
        """The entries of those ports that the code can serve: taps that no other port stands before."""
        self._taps, found = {}, {}
        for number, port in enumerate(ports.values(), start=first):
            place = tap_place(computer, port) if isinstance(port, Tap) else NO_TAP
            if not isinstance(port, Tap) or place == NO_TAP:
                break
            found[number], lowest = place, place[1] & -place[1]
            self._taps[number] = port, lowest.bit_length() - 1
        return found

    def hand_over(self) -> bool:
        """Give the numbers to their taps; whether there were any."""
        count: int = self._log.item(0)
        if count:
            self._log[0] = 0
            pairs = self._log[2 : 2 + 2 * count].reshape(-1, 2).tolist()
            for number, some in groupby(pairs, lambda pair: pair[0]):
                tap, shift = self._taps[number]
                tap.take([(word % (1 << 64)) >> shift for _, word in some])
        return count > 0


def tap_place(computer: Computer, tap: Tap) -> tuple[int, int, int]:
    """Where the code finds a tap's number, the mask of its bits, and what it puts there; no mask: it cannot.

    It can where the number is in one word of a quiet column, and where such a column needs no loop of its own after it was
    stored to.
    """
    layout, places = computer.layout, computer.places
    rows = layout.rows(tap.rows)
    parts = [places.fields.of_row.get(row) for row in range(rows.start, rows.stop)]
    first = parts[0]
    quiet = tap.column in computer.columns.quiet and not computer.quiet.settles
    if first is None or not first[0].bits or any(part is None or part[0] != first[0] for part in parts) or not quiet:
        return NO_TAP
    field, shift = first
    place = layout.place(tap.rows)
    if any(start <= tap.column < stop for start, stop in (*place.empty, *place.ones)):
        return NO_TAP
    mask = (1 << len(parts)) - 1
    at = places.arrays[field.block] + tap.column * field.stride + field.offset
    return at, _signed(mask << shift), _signed((tap.then & mask) << shift)


def _signed(word: int) -> int:
    return word if word < 1 << 63 else word - (1 << 64)


def table_of(
    computer: Computer, patterns: Iterable[Pattern], log: int = 0,
    taps: Mapping[int, tuple[int, int, int]] | None = None,
) -> Pointers:
    """What the driver reads for the cards of a computer: patterns, known by their numbers, some of them with a tap."""
    wanted, served = tuple(patterns), taps or {}
    entries = [_entries(computer, pattern, served.get(number, NO_TAP)) for number, pattern in enumerate(wanted)]
    return np.array([len(wanted), log, *_common(entries), *chain(*entries)], dtype=np.int64)


def _common(entries: list[list[int]]) -> tuple[int, int]:
    """A place in which every pattern wants a 1, and those bits of it: while all of them are 0, no pattern stands."""
    wanted = []
    for words, _, _, _, _, *rest in entries:
        places = zip(rest[0 : 3 * words : 3], rest[2 : 3 * words : 3], strict=True)
        wanted.append({at: bits for at, bits in places if bits})
    common = set.intersection(*map(set, wanted)) if wanted else set()
    if not common:
        return 0, 0
    at, union = min(common), 0
    for bits in wanted:
        union |= bits[at]
    return at, union


def _entries(computer: Computer, pattern: Pattern, tap: tuple[int, int, int]) -> list[int]:
    """How many words and numbers a pattern looks at, its tap, and what must be there."""
    layout, places = computer.layout, computer.places
    first, column = layout.rows(pattern.rows).start, layout.region(pattern.region).start
    words: dict[int, tuple[int, int]] = {}
    numbers: list[int] = []
    for row, bit in ((first + i, bit) for i, bit in enumerate(pattern.bits) if bit):
        slot = next((s for s in computer.columns.slots if s.row == row and column in computer.columns_of(s.group)), None)
        if row not in places.fields.of_row or pattern.region not in layout.place(pattern.rows).block.holds:
            return [0, 1, *tap, places.nothing, 1]  # it holds 0, always
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
    entries = [_signed(part) for at, (mask, wanted) in words.items() for part in (at, mask, wanted)]
    return [len(words), len(numbers) // 2, *tap, *entries, *numbers]
