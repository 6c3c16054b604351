"""The cards of a batch that share compiled code: their memory, the queue of those that wait, and how far each is."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from punchcard.card.layout import Pattern
from punchcard.card.packed import PackedCard
from punchcard.engines.lowered.card_state import DONE, CardMemory, CardState
from punchcard.engines.lowered.compiled_model import CASES, CompiledModel, Pointers
from punchcard.engines.lowered.pattern_table import NOTHING, pattern_table

SLICE_SECONDS = 0.05
"""What a job should take: long beside handing it out, short for who waits to interrupt."""
SHORTEST = 16
"""A job is no shorter than one part in so many of that."""
FIRST_LOOPS = 1 << 10
"""Loops of a job, all cards together, of which nothing is known yet."""
MOST_CARDS = 256
"""Cards of a job: each makes enough loops at a time to be worth fetching from memory."""


class CardGroup:
    """Cards by their rows in the memory; `numbers` says which cards of the batch they are, `left` how many loops to make.

    The rows in `line` wait to be taken into a job; those that are `unfit` are not what the code was made for.
    """

    def __init__(self, compiled_model: CompiledModel, cards: Sequence[tuple[int, PackedCard]]) -> None:
        self.compiled_model, self.memory = compiled_model, CardMemory(compiled_model, len(cards))
        self.numbers = [number for number, _ in cards]
        self.states = [CardState(compiled_model, card, self.memory, row) for row, (_, card) in enumerate(cards)]
        self.left: Pointers = np.zeros(len(cards), dtype=np.int64)
        self.queue: deque[int] = deque()
        self.unfit: list[int] = []
        self._patterns, self._loops = NOTHING, FIRST_LOOPS
        arrays = self.memory.buffers, self.memory.visits, self.memory.reports
        self._sizes = np.array([array.strides[0] for array in arrays])

    def begin(self, rows: Sequence[int], loops: int, patterns: Sequence[Pattern]) -> None:
        """Queue these cards for so many loops; each stops when a pattern is on it."""
        self._patterns = pattern_table(self.compiled_model, patterns)
        self.left[rows] = loops
        self.queue = deque(row for row in rows if loops and self.states[row].fits)
        self.unfit = [row for row in rows if loops and not self.states[row].fits]
        self.reset_pace()

    def reset_pace(self) -> None:
        """Begin again with short jobs: more may be in the way, and threads come back for it."""
        self._loops = FIRST_LOOPS

    def job(self, sharers: int) -> Job:
        """The first cards in line, such that there are so many jobs, for a number of loops that takes a short while.

        A job makes at most half of what is left to make, so that towards the end no thread waits long for another.
        """
        count = min(-(-len(self.queue) // sharers), MOST_CARDS)
        rows = np.array([self.queue.popleft() for _ in range(count)], dtype=np.int64)
        left = self.left[rows]
        loops = min(self._loops, max(self._loops // SHORTEST, int(left.max()) * count // 2))
        return Job(self, rows, np.minimum(left, max(1, loops // count)))

    def take_back(self, job: Job) -> list[int]:
        """Cards that may go on are in line again; the rows of those that stopped before their last loop."""
        self.left[job.rows] -= job.made
        made = int(job.made.sum())
        if made:
            self._loops = max(1, min(4 * self._loops, int(made * SLICE_SECONDS / max(job.seconds, 1e-6))))
        stopped = self.memory.reports[job.rows, 0] != DONE
        self.queue.extend(job.rows[~stopped & (self.left[job.rows] > 0)].tolist())
        found: list[int] = job.rows[stopped].tolist()
        return found

    def call(self, table: Pointers) -> None:
        """Run some cards: row by row a card and the loops to make, which become the loops made."""
        compiled_model, memory = self.compiled_model, self.memory
        compiled_model.call_many(
            memory.buffers.ctypes.data, compiled_model.driver_pointers.ctypes.data, memory.visits.ctypes.data,
            memory.reports.ctypes.data, self._sizes.ctypes.data, table.ctypes.data, len(table), self._patterns.ctypes.data,
            compiled_model.cases.ctypes.data, CASES)


class Job:
    """Some cards of a group, by their rows, for so many loops each; what they made, and the seconds that it took."""

    def __init__(self, group: CardGroup, rows: Pointers, loops: Pointers) -> None:
        self.group, self.rows, self.seconds = group, rows, 0.0
        self._table = np.stack([rows, loops], axis=1)

    @property
    def made(self) -> npt.NDArray[np.int64]:
        return self._table[:, 1]

    def work(self) -> None:
        started = time.perf_counter()
        self.group.call(self._table)
        self.seconds = time.perf_counter() - started
