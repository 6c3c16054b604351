"""One run of a batch: jobs go to the thread pool; a card that comes back is served, recovered, or has ended.

Cards wait in line. A job takes some of them, and those that have not stopped are in line again. What needs more code (a case
that was not met before) waits until all threads are idle: no thread runs code that is being replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from punchcard.card.layout import Pattern
from punchcard.engines.base import Reason, Stops
from punchcard.engines.controls import Controls
from punchcard.engines.lowered.card_group import CardGroup, Job
from punchcard.engines.lowered.card_state import MATCHED
from punchcard.engines.lowered.thread_pool import ThreadPool

JOBS_A_THREAD = 2
"""One that is worked on, and one that waits, so that no thread does."""


@dataclass(frozen=True)
class CardEnd:
    """Why a card makes no more loops."""

    reason: Reason
    matched: Pattern | None = None
    note: str = ""


class BatchRun:
    """The groups of a batch while they run; `ends` says, by a card's number, why it ended before its last loop.

    `stops` has the patterns of all cards, `ports` the same with the ports of each card, or nothing.
    """

    def __init__(self, groups: Sequence[CardGroup], pool: ThreadPool, loops: int, ports: Sequence[Stops],
                 stops: Stops) -> None:
        self.groups, self.pool, self.loops, self.ports, self.stops = groups, pool, loops, ports, stops
        self.ends: dict[int, CardEnd] = {}
        self.made = 0
        self._failed: list[tuple[CardGroup, int]] = []

    def run(self, controls: Controls) -> None:
        """Until no card is in line, and no job is out."""
        with self.pool.started():
            for group in self.groups:
                for row in group.unfit:
                    self._decline(group, row)
            self._hand_out()
            while self.pool.pending:
                self._take_back(self.pool.next_finished())
                controls.report(self.made)
                if controls.is_interrupted():
                    self._all_back()
                    self._interrupt()
                    return
                if self._failed:
                    self._all_back()
                    self._recover()
                self._hand_out()

    def _hand_out(self) -> None:
        """Jobs for every thread, from the longest line."""
        while (free := JOBS_A_THREAD * self.pool.threads - self.pool.pending) > 0:
            group = max(self.groups, key=lambda one: len(one.queue))
            if not group.queue:
                return
            self.pool.submit(group.job(free))

    def _take_back(self, job: Job) -> None:
        """What stopped has come to its end, is served by a port, or is broken: it waits to be recovered."""
        self.made += int(job.made.sum())
        group = job.group
        for row in group.take_back(job):
            status, pattern = group.memory.reports[row, :2].tolist()
            if status != MATCHED:
                self._failed.append((group, row))
            elif pattern < len(self.stops.until):
                self.ends[group.numbers[row]] = CardEnd("matched", self.stops.until[pattern])
            else:
                self._serve(group, row)

    def _serve(self, group: CardGroup, row: int) -> None:
        state, number = group.states[row], group.numbers[row]
        stopped = self.ports[number].serve(self.loops - int(group.left[row]), state.show())
        state.resume(None)
        if stopped is not None:
            self.ends[number] = CardEnd("stopped", stopped)
        elif group.left[row]:
            self._go_on(group, row)

    def _go_on(self, group: CardGroup, row: int) -> None:
        """In line again, unless the code does not apply to the card."""
        if group.states[row].fits:
            group.queue.append(row)
        else:
            self._decline(group, row)

    def _decline(self, group: CardGroup, row: int) -> None:
        self.ends[group.numbers[row]] = CardEnd("declined", note=group.states[row].why())

    def _all_back(self) -> None:
        """No thread is in the code, and no job is out."""
        for job in self.pool.cancel_waiting():
            job.group.queue.extendleft(reversed(job.rows.tolist()))
        while self.pool.pending:
            self._take_back(self.pool.next_finished())

    def _recover(self) -> None:
        """Find out what was in the way of the first broken card. If it can go on, the others of its group try again: what
        was in their way may be gone, and their reports are about code that may be gone.
        """
        recovered: set[int] = set()
        for group, row in self._failed:
            if id(group) in recovered or group.states[row].recover():
                recovered.add(id(group))
                group.reset_pace()
                group.queue.append(row)
            else:
                self._decline(group, row)
        self._failed = []

    def _interrupt(self) -> None:
        waiting = [(group, row) for group in self.groups for row in group.queue]
        for group, row in [*self._failed, *waiting]:
            self.ends[group.numbers[row]] = CardEnd("interrupted")
