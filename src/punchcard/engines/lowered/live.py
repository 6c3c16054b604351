"""A card on its way through the generated code: the buffer, the patterns to stop at, and what the code reported."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from punchcard.card.layout import Pattern
from punchcard.engines.lowered.analysis.plan import Lookup
from punchcard.engines.lowered.analysis.tables import CLOSED
from punchcard.engines.lowered.codegen.emit import MOST_CODES, REPORT_CODES
from punchcard.engines.lowered.computer import CASES, LINE, Computer
from punchcard.errors import PunchcardError

SMALL_CARD = 1 << 16
LOOK_SHARE = 20
"""A look at the whole of a card with more entries may take, after a port, one part in so many of the time."""
DONE, FAILED, MATCHED, UNKNOWN = range(4)


class LiveCard:
    """One card being run: the buffer that the code works on, and what it reported."""

    def __init__(self, computer: Computer, card: Tensor) -> None:
        self.computer, self.seconds = computer, 0.0
        layout = computer.layout
        self.columns, self.width = layout.columns, layout.width
        # A missing column has the number -1: it may be read, before a check sees it, in the space that stands in front.
        whole = np.zeros(self.width + computer.size + 2 * LINE, dtype=computer.number)
        first = self.width + -(whole.ctypes.data // whole.itemsize + self.width) % LINE
        self.buffer = whole[first : first + computer.size]
        self.card = torch.from_numpy(self.buffer[: self.columns * self.width].reshape(self.columns, self.width)).T
        self.visits = np.zeros(len(computer.columns.quiet) + 1 + MOST_CODES, dtype=np.int32)
        self.report = np.zeros(REPORT_CODES + 1 + 2 * MOST_CODES, dtype=np.int64)
        self.nothing = np.zeros(1, dtype=np.int64)
        self.looked_at = self.look_seconds = 0.0
        self.look_for(())
        self.take(card)

    def look_for(self, patterns: Iterable[Pattern]) -> None:
        """The patterns at which `advance` stops; they are known by their numbers."""
        computer, layout = self.computer, self.computer.layout
        self.wanted: list[tuple[list[int], list[int]]] = []
        """Where on the card the bits of each pattern are, and what they should be."""
        places, signs = [0], [0.0]
        for pattern in patterns:
            first, column = layout.rows(pattern.rows).start, layout.region(pattern.region).start
            rows = [first + i for i, bit in enumerate(pattern.bits) if bit]
            bits = [bit for bit in pattern.bits if bit]
            self.wanted.append(([computer.places.at(column, row) for row in rows], bits))
            places += [len(rows), *(computer.place(row, column) for row in rows)]
            signs += [0.0, *bits]
        places[0] = len(self.wanted)
        self.patterns, self.signs = np.array(places, dtype=np.int64), np.array(signs, dtype=computer.number)

    def take(self, card: Tensor) -> None:
        """Begin with this card. One that does not keep the facts is not run."""
        self.card.copy_(card)
        self._look()
        self._begin()

    def stands(self, number: int) -> bool:
        """Whether a pattern stands on the card that is shown, which a port may have changed."""
        places, bits = self.wanted[number]
        return all(abs(self.buffer.item(place) - bit) < 0.5 for place, bit in zip(places, bits, strict=True))

    def take_back(self) -> None:
        """Go on after a port, which may have changed the card.

        The whole card is looked at, unless it is so large that this takes long: then its busy columns every time, and all
        of it now and then and at the end.
        """
        if self.card.numel() <= SMALL_CARD or time.perf_counter() - self.looked_at > LOOK_SHARE * self.look_seconds:
            self._look()
        else:
            self.unseen = True
            self.fits = self.computer.facts.hold(self.card.numpy(), everywhere=False)
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
        self.fits, self.unseen = self.computer.facts.hold(self.card.numpy()), False
        self.looked_at = time.perf_counter()
        self.look_seconds = self.looked_at - started

    def _begin(self) -> None:
        self.computer.begin(self.buffer)
        if self.computer.quiet.settles:
            quiet = self.computer.columns.quiet
            self.visits[0], self.visits[1 : len(quiet) + 1] = len(quiet), quiet

    def keep(self) -> tuple[Any, ...]:
        """All that a loop changes, to come back to."""
        return self.buffer.copy(), self.visits.copy(), self.fits, self.unseen

    def come_back(self, kept: tuple[Any, ...]) -> None:
        self.buffer[:], self.visits[:], self.fits, self.unseen = kept

    def show(self) -> Tensor:
        """The card as it is now; a view that the next loop changes."""
        if self.fits:  # else no loop was made, and columns that should hold the same may differ
            self.computer.finish(self.buffer)
        return self.card

    def advance(self, loops: int, *, stop: bool = True) -> tuple[int, int | None]:
        """Make up to `loops` loops; how many were made, and the number of the pattern that then stands on the card."""
        computer, made = self.computer, 0
        if not self.fits:
            return 0, None
        patterns = self.patterns if stop else self.nothing
        while made < loops:
            made += computer.call(
                self.buffer.ctypes.data_as(computer.real_pointer), computer.driver_pointers.ctypes.data,
                self.visits.ctypes.data, self.report.ctypes.data, loops - made, patterns.ctypes.data,
                self.signs.ctypes.data, computer.cases.ctypes.data, CASES,
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
            if table.kind == "find" and self.computer.filled[table][code] < 0:
                return f"a pointer matched no column (layer {table.layer + 1}, head {table.head + 1})"
            if table.kind == "store" and self.computer.filled[table][code] == CLOSED:
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
