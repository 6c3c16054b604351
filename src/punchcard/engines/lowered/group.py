"""The cards of a fleet that one computer runs: their room, those that wait for their turn, and how far each of them is."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from punchcard.card.layout import Pattern
from punchcard.card.packed import PackedCard
from punchcard.engines.lowered.computer import CASES, Computer, Pointers
from punchcard.engines.lowered.live import DONE, LiveCard, Room
from punchcard.engines.lowered.stopping import NOTHING, table_of

SLICE_SECONDS = 0.05
"""What a job should take: long beside handing it out, short for who waits to interrupt."""
SHORTEST = 16
"""A job is no shorter than one part in so many of that."""
FIRST_LOOPS = 1 << 10
"""Loops of a job, all cards together, of which nothing is known yet."""
MOST_CARDS = 256
"""Cards of a job: each makes enough loops at a time to be worth fetching from memory."""


class Group:
    """Cards by their rows in the room; `numbers` says which cards of the fleet they are, `left` how many loops to make.

    The rows in `line` wait to be taken into a job; those that are `unfit` are not what the code was made for.
    """

    def __init__(self, computer: Computer, cards: Sequence[tuple[int, PackedCard]]) -> None:
        self.computer, self.room = computer, Room(computer, len(cards))
        self.numbers = [number for number, _ in cards]
        self.lives = [LiveCard(computer, card, self.room, row) for row, (_, card) in enumerate(cards)]
        self.left: Pointers = np.zeros(len(cards), dtype=np.int64)
        self.line: deque[int] = deque()
        self.unfit: list[int] = []
        self._patterns, self._loops = NOTHING, FIRST_LOOPS
        self._sizes = np.array([array.strides[0] for array in (self.room.buffers, self.room.visits, self.room.reports)])

    def begin(self, rows: Sequence[int], loops: int, patterns: Sequence[Pattern]) -> None:
        """These cards are in line for so many loops; they stop where a pattern stands on them."""
        self._patterns = table_of(self.computer, patterns)
        self.left[rows] = loops
        self.line = deque(row for row in rows if loops and self.lives[row].fits)
        self.unfit = [row for row in rows if loops and not self.lives[row].fits]
        self.careful()

    def careful(self) -> None:
        """Begin again with short jobs: more may be in the way, and threads come back for it."""
        self._loops = FIRST_LOOPS

    def job(self, sharers: int) -> Job:
        """The first cards in line, such that there are so many jobs, for a number of loops that takes a short while.

        A job makes at most half of what is left to make, so that towards the end no thread waits long for another.
        """
        count = min(-(-len(self.line) // sharers), MOST_CARDS)
        rows = np.array([self.line.popleft() for _ in range(count)], dtype=np.int64)
        left = self.left[rows]
        loops = min(self._loops, max(self._loops // SHORTEST, int(left.max()) * count // 2))
        return Job(self, rows, np.minimum(left, max(1, loops // count)))

    def take_back(self, job: Job) -> list[int]:
        """Cards that may go on are in line again; the rows of those that stopped before their last loop."""
        self.left[job.rows] -= job.made
        made = int(job.made.sum())
        if made:
            self._loops = max(1, min(4 * self._loops, int(made * SLICE_SECONDS / max(job.seconds, 1e-6))))
        stopped = self.room.reports[job.rows, 0] != DONE
        self.line.extend(job.rows[~stopped & (self.left[job.rows] > 0)].tolist())
        found: list[int] = job.rows[stopped].tolist()
        return found

    def call(self, table: Pointers) -> None:
        """Run some cards: row by row a card and the loops to make, which become the loops made."""
        computer, room = self.computer, self.room
        computer.call_many(
            room.buffers.ctypes.data, computer.driver_pointers.ctypes.data, room.visits.ctypes.data,
            room.reports.ctypes.data, self._sizes.ctypes.data, table.ctypes.data, len(table), self._patterns.ctypes.data,
            computer.cases.ctypes.data, CASES)


class Job:
    """Some cards of a group, by their rows, for so many loops each; what they made, and the seconds that it took."""

    def __init__(self, group: Group, rows: Pointers, loops: Pointers) -> None:
        self.group, self.rows, self.seconds = group, rows, 0.0
        self._table = np.stack([rows, loops], axis=1)

    @property
    def made(self) -> npt.NDArray[np.int64]:
        return self._table[:, 1]

    def work(self) -> None:
        started = time.perf_counter()
        self.group.call(self._table)
        self.seconds = time.perf_counter() - started
