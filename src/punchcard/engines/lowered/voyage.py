"""One run of a fleet: jobs go out to the crew, and what comes back is served, mended, or has come to its end.

Cards wait in line. A job takes some of them, and those that have not stopped are in line again. What needs more code (a case
that was not met before) waits until all threads have come back: nobody runs code that is being replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from punchcard.card.layout import Pattern
from punchcard.engines.base import Reason, Stops
from punchcard.engines.lowered.crew import Crew
from punchcard.engines.lowered.group import Group, Job
from punchcard.engines.lowered.live import MATCHED

JOBS_A_THREAD = 2
"""One that is worked on, and one that waits, so that no thread does."""


@dataclass(frozen=True)
class End:
    """Why a card makes no more loops."""

    reason: Reason
    matched: Pattern | None = None
    note: str = ""


class Voyage:
    """The groups of a fleet on their way; `ends` says of cards, by number, why they ended before their last loop.

    `stops` has the patterns of all cards, `ports` the same with the ports of each card, or nothing.
    """

    def __init__(self, groups: Sequence[Group], crew: Crew, loops: int, ports: Sequence[Stops], stops: Stops) -> None:
        self.groups, self.crew, self.loops, self.ports, self.stops = groups, crew, loops, ports, stops
        self.ends: dict[int, End] = {}
        self.made = 0
        self._broken: list[tuple[Group, int]] = []

    def run(self, interrupted: Callable[[], bool] | None, progress: Callable[[int], None] | None) -> None:
        """Until no card is in line, and no job is out."""
        with self.crew.at_work():
            for group in self.groups:
                for row in group.unfit:
                    self._decline(group, row)
            self._hand_out()
            while self.crew.busy:
                self._take_back(self.crew.next_done())
                if progress is not None:
                    progress(self.made)
                if interrupted is not None and interrupted():
                    self._all_back()
                    self._interrupt()
                    return
                if self._broken:
                    self._all_back()
                    self._mend()
                self._hand_out()

    def _hand_out(self) -> None:
        """Jobs for every thread, from the longest line."""
        while (free := JOBS_A_THREAD * self.crew.threads - self.crew.busy) > 0:
            group = max(self.groups, key=lambda one: len(one.line))
            if not group.line:
                return
            self.crew.hand_out(group.job(free))

    def _take_back(self, job: Job) -> None:
        """What stopped has come to its end, is served by a port, or is broken: it waits to be mended."""
        self.made += int(job.made.sum())
        group = job.group
        for row in group.take_back(job):
            status, pattern = group.room.reports[row, :2].tolist()
            if status != MATCHED:
                self._broken.append((group, row))
            elif pattern < len(self.stops.until):
                self.ends[group.numbers[row]] = End("matched", self.stops.until[pattern])
            else:
                self._serve(group, row)

    def _serve(self, group: Group, row: int) -> None:
        live, number = group.lives[row], group.numbers[row]
        stopped = self.ports[number].serve(self.loops - int(group.left[row]), live.show())
        live.take_back(None)
        if stopped is not None:
            self.ends[number] = End("stopped", stopped)
        elif group.left[row]:
            self._go_on(group, row)

    def _go_on(self, group: Group, row: int) -> None:
        """In line again, unless the code does not apply to the card."""
        if group.lives[row].fits:
            group.line.append(row)
        else:
            self._decline(group, row)

    def _decline(self, group: Group, row: int) -> None:
        self.ends[group.numbers[row]] = End("declined", note=group.lives[row].why())

    def _all_back(self) -> None:
        """No thread is in the code, and no job is out."""
        for job in self.crew.call_back():
            job.group.line.extendleft(reversed(job.rows.tolist()))
        while self.crew.busy:
            self._take_back(self.crew.next_done())

    def _mend(self) -> None:
        """Find out what was in the way of the first broken card. If it can go on, the others of its group try again: what
        was in their way may be gone, and their reports are about code that may be gone.
        """
        mended: set[int] = set()
        for group, row in self._broken:
            if id(group) in mended or group.lives[row].mended():
                mended.add(id(group))
                group.careful()
                group.line.append(row)
            else:
                self._decline(group, row)
        self._broken = []

    def _interrupt(self) -> None:
        waiting = [(group, row) for group in self.groups for row in group.line]
        for group, row in [*self._broken, *waiting]:
            self.ends[group.numbers[row]] = End("interrupted")
