"""A card on its way through the generated code: the buffer, the patterns to stop at, and what the code reported."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from punchcard.card.layout import Card, Pattern
from punchcard.card.packed import PackedCard
from punchcard.engines.lowered.analysis.fields import LINE
from punchcard.engines.lowered.analysis.plan import Lookup
from punchcard.engines.lowered.analysis.tables import CLOSED
from punchcard.engines.lowered.codegen.emit import MOST_CODES, REPORT_CODES
from punchcard.engines.lowered.computer import CASES, Buffer, Computer
from punchcard.errors import PunchcardError

if TYPE_CHECKING:
    from torch import Tensor

LOOK_SHARE = 20
"""A look at the whole of a card may take, after a port, one part in so many of the time."""
DONE, FAILED, MATCHED, UNKNOWN = range(4)


class LiveCard:
    """One card being run: the buffer that the code works on, and what it reported.

    `card` is the packed card whose fields lie in the buffer; its busy columns are what they were when it was last shown.
    `strange` is a card that cannot be packed, on which no loop is made.
    """

    def __init__(self, computer: Computer, card: PackedCard) -> None:
        self.computer, self.seconds = computer, 0.0
        places = computer.places
        whole = np.zeros(places.size + LINE, dtype=np.uint8)
        first = -whole.ctypes.data % LINE
        self.buffer: Buffer = whole[first : first + places.size]
        self.card = PackedCard(computer.layout, card.dtype, {})
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        for name, field in card.fields.items():
            at = places.arrays[name]
            more = self.buffer[at : at + field.nbytes + field.nbytes // len(field)].view(field.dtype)
            self._arrays[name] = more.reshape(len(field) + 1, *field.shape[1:])
            self.card.fields[name] = self._arrays[name][: len(field)]
        self.visits = np.zeros(len(computer.columns.quiet) + 1 + MOST_CODES, dtype=np.int32)
        self.report = np.zeros(REPORT_CODES + 1 + 2 * MOST_CODES, dtype=np.int64)
        self.nothing = np.zeros(1, dtype=np.int64)
        self.looked_at = self.look_seconds = 0.0
        self.strange: Any = None
        self.look_for(())
        self.take(card)

    def look_for(self, patterns: Iterable[Pattern]) -> None:
        """The patterns at which `advance` stops; they are known by their numbers."""
        self.wanted = tuple(patterns)
        found = [len(self.wanted)]
        for pattern in self.wanted:
            found += self._pattern(pattern)
        self.patterns = np.array(found, dtype=np.int64)

    def _pattern(self, pattern: Pattern) -> list[int]:
        """How many words and numbers a pattern looks at, and what must be there."""
        computer, layout, places = self.computer, self.computer.layout, self.computer.places
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

    def take(self, card: Card) -> None:
        """Begin with this card. One that does not keep the facts, or is not what its layout declares, is not run."""
        self._hold(card)
        if self.strange is None:
            self._look()
            self._begin()

    def _hold(self, card: Card) -> None:
        self.strange, self.fits, self.unseen = None, False, False
        if not isinstance(card, PackedCard):
            self.strange = card
            return
        for name, field in card.fields.items():
            self.card.fields[name][:] = field
            self._arrays[name][-1] = field[self.computer.columns.quiet[-1]]  # where stores without a place go

    def tensor(self) -> Tensor:
        """The card as it is now."""
        return self.show().tensor() if self.strange is None else self.strange

    def stands(self, number: int) -> bool:
        """Whether a pattern stands on the card that is shown, which a port may have changed."""
        return bool(self.computer.layout.matches(self.card, self.wanted[number]))

    def take_back(self, changed: Card | None) -> None:
        """Go on after a port, which may have changed the card, in place or as another one.

        Its busy columns are looked at every time, and the whole card now and then and at the end.
        """
        if changed is not None:
            self._hold(changed)
            if self.strange is not None:
                return
        if time.perf_counter() - self.looked_at > LOOK_SHARE * self.look_seconds:
            self._look()
        else:
            self.unseen = True
            self.fits = self.computer.facts.hold(self.card, everywhere=False)
        self._begin()

    def seen(self) -> None:
        """The last look at a card that ports have changed, and from which loops were made."""
        if self.unseen and self.fits:
            self._look()
            if not self.fits:
                raise PunchcardError("a port left something on the card that its layout does not declare: "
                                     "what came after is not what the model computes")

    def _look(self) -> None:
        started = time.perf_counter()
        self.fits, self.unseen = self.computer.facts.hold(self.card), False
        self.looked_at = time.perf_counter()
        self.look_seconds = self.looked_at - started

    def _begin(self) -> None:
        self.computer.begin(self.buffer, self.card)
        if self.computer.quiet.settles:
            quiet = self.computer.columns.quiet
            self.visits[0], self.visits[1 : len(quiet) + 1] = len(quiet), quiet

    def keep(self) -> tuple[Any, ...]:
        """All that a loop changes, to come back to."""
        return self.buffer.copy(), self.visits.copy(), self.fits, self.unseen, self.strange

    def come_back(self, kept: tuple[Any, ...]) -> None:
        self.buffer[:], self.visits[:], self.fits, self.unseen, self.strange = kept

    def show(self) -> PackedCard:
        """The card as it is now; the next loop changes it."""
        if self.fits:  # else no loop was made, and columns that should hold the same may differ
            self.computer.finish(self.buffer, self.card)
        return self.card

    def advance(self, loops: int, *, stop: bool = True) -> tuple[int, int | None]:
        """Make up to `loops` loops; how many were made, and the number of the pattern that then stands on the card."""
        computer, made = self.computer, 0
        if not self.fits:
            return 0, None
        patterns = self.patterns if stop else self.nothing
        while made < loops:
            made += computer.call(
                self.buffer.ctypes.data, computer.driver_pointers.ctypes.data, self.visits.ctypes.data,
                self.report.ctypes.data, loops - made, patterns.ctypes.data, computer.cases.ctypes.data, CASES,
            )
            status = int(self.report[0])
            if status == MATCHED:
                return made, int(self.report[1])
            if status == UNKNOWN:
                before = computer.compile_seconds
                added = computer.add_case(int(self.report[1]))
                self.seconds += computer.compile_seconds - before
                if not added:
                    return made, None
            elif status == FAILED and not self._mended():
                return made, None
        return made, None

    def why(self) -> str:
        """Why the last loop was not made, as far as the report tells."""
        if not self.fits:
            return "the card held something that its layout does not declare, or what never changes had changed"
        if self.report[0] == UNKNOWN:
            return self.computer.refused[int(self.report[1])]
        asked, pairs = self._asked()
        for number, code in pairs:
            table = asked[number]
            if table.kind == "find" and self.computer.entry(table, code) < 0:
                return f"a pointer matched no column (layer {table.layer + 1}, head {table.head + 1})"
            if table.kind == "store" and self.computer.entry(table, code) == CLOSED:
                return f"a pointer led to a column that should not change (layer {table.layer + 1}, head {table.head + 1})"
        return "a bit was not ±1, a number was beyond its limit, or two columns stored to one"

    def _asked(self) -> tuple[list[Lookup], list[tuple[int, int]]]:
        """The tables of the loop that failed, and which of them was asked for which code."""
        asked = self.computer.driver_tables
        if self.computer.selectors and not self.report[2]:
            asked = self.computer.known[int(self.report[1])][1]
        count = int(self.report[REPORT_CODES])
        pairs = self.report[REPORT_CODES + 1 : REPORT_CODES + 1 + 2 * count].reshape(-1, 2)
        return asked, [(int(table), int(code)) for table, code in pairs]

    def _mended(self) -> bool:
        """Whether a loop failed only because a table had not been asked before."""
        return self.computer.look_up(*self._asked())
