"""The cards between loops, on demand: a run of any length opens at once.

A fast engine makes the loops, and leaves *marks* on the way, from which any later loop is near. The number of marks does not
grow with the run: when there are too many, every second one is dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from punchcard.card.layout import Card
from punchcard.card.packed import packed_bytes
from punchcard.engines import Controls, NoCopyWatch
from punchcard.errors import PunchcardError
from punchcard.machines.base import Machine
from punchcard.machines.result import Result
from punchcard.machines.running import DEFAULT_ENGINE, Mark, PeriodicAction
from punchcard.machines.streams import Traffic, reader
from punchcard.viewer.cache import BoundedCache

FIRST_EVERY = 64
MOST_MARKS = 256
MARK_BYTES = 1 << 28
FEW = 32
"""Loops that a slow engine makes before a fast one is ready."""
RECENT = 48
"""Loops that were asked for lately, which are kept beside the marks: so a step back takes no longer than one forth."""
NEAR = 0.005
"""Seconds of a run that may lie between two marks, where the engine is fast."""
SLICE = 0.1
"""Seconds of a run after which the distance of marks is chosen anew."""
NOT_LOWERED = "not lowered"
"""How the note begins that says why the lowered engine declined a machine."""
PATIENCE = 10.0
"""Seconds in which a loop that is asked for, or that of an error, has to be reached."""


class RunEnd(NamedTuple):
    """After how many loops a run ends, and why: "halted", "fault", "steps" or "error"; `message` for people."""

    loops: int
    reason: str
    message: str | None = None


class Served(NamedTuple):
    """The card from which a loop begins, after a host has done its part, and what has been read and written by then."""

    card: Card
    traffic: Traffic


class Timeline:
    """The run of a program on a machine, from loop to loop."""

    def __init__(self, machine: Machine[Any, Any], program: object, given: bytes, max_steps: int | None,
                 near: str = DEFAULT_ENGINE) -> None:
        """`near` is the engine for a few loops."""
        machine.check_type(program)
        self.machine, self.program, self.given, self.near = machine, program, given, near
        self.last = machine.last_loop(max_steps)
        self.end: RunEnd | None = None
        self.known = 0
        self.patience = PATIENCE
        self._far = DEFAULT_ENGINE
        self._every = FIRST_EVERY
        size = max(1, packed_bytes(machine.layout, machine.precision.name))
        self._most = max(8, min(MOST_MARKS, MARK_BYTES // size))
        self._marks: dict[int, Mark] = {0: Mark(machine.pack(program))}
        self._recent: BoundedCache[Mark] = BoundedCache(min(RECENT, self._most))
        self._served: BoundedCache[Served] = BoundedCache(RECENT)
        if self.last == 0:
            self.end = RunEnd(0, "steps")

    def mark(self, loop: int) -> Mark:
        """The run after so many loops, or at its end if that comes first."""
        if self.end is not None:
            loop = min(loop, self.end.loops)
        found = self._marks.get(loop) or self._recent.get(loop)
        if found is not None:
            return found
        near, deadline = self._before(loop), time.monotonic() + self.patience
        while near.loops < (loop if self.end is None else min(loop, self.end.loops)):
            if time.monotonic() > deadline:
                raise PunchcardError(f"loop {loop:,} is too far away to be shown at once: the run is known up to loop "
                                     f"{self.known:,} now; ask again to continue from there")
            reached = self._advance(near, loop, deadline)
            if reached.loops <= near.loops:
                break
            near = reached
        return self._remember(near)

    def served(self, loop: int) -> Served:
        """The card from which loop number `loop` begins; at the end of the run the last card."""
        mark = self.mark(loop)
        if self.end is not None and mark.loops >= self.end.loops:
            return Served(mark.raw_card, mark.traffic)
        found = self._served.get(mark.loops)
        if found is None:
            found = self._served[mark.loops] = self._serve(mark)
        return found

    def put(self, mark: Mark) -> None:
        """Keep a mark that was made elsewhere."""
        self.known = max(self.known, mark.loops)
        self._remember(mark)
        if mark.ended:
            self._ended(mark, "halted", None)

    def explore(self, seconds: float) -> None:
        """Run ahead from where the run is known, for some time at most, to learn where it ends."""
        deadline = time.monotonic() + seconds
        while self.end is None and time.monotonic() < deadline:
            before, started = self.known, time.monotonic()
            self._advance(self._before(self.last), self.last, min(deadline, started + SLICE))
            if self.known == before:
                return
            while self._every < NEAR * (self.known - before) / (time.monotonic() - started):
                self._thin()

    def watch(self, begin: int, end: int, look: Callable[[int, Card], bool], seconds: float) -> int:
        """Show the card after every loop from `begin` on to `look`, until that says stop; the loop that was reached."""
        mark = self.mark(begin)
        reached, stop, deadline = mark.loops, False, time.monotonic() + seconds

        def see(loop: int, card: Card) -> None:
            nonlocal reached, stop
            if not stop:
                reached, stop = loop, look(loop, card)

        limit = min(end, self.last if self.end is None else self.end.loops)
        with suppress(PunchcardError):  # what cannot be read at the end was looked at on the way
            self._run(mark, limit, keep=PeriodicAction(1 << 60, lambda mark: None), guarded=False, controls=Controls(
                watch=NoCopyWatch(see), interrupted=lambda: stop or time.monotonic() > deadline))
        return reached

    # Running

    def _run(self, begin: Mark, loops: int, **options: Any) -> Result[Any]:
        """Continue from a mark until so many loops are made, with these options of `Machine.run`."""
        return self.machine.run(self.program, max_steps=self._steps(loops), input=self.given, begin=begin, **options)

    def _steps(self, loops: int) -> int | None:
        """The instructions of so many loops, as `run` counts them."""
        return loops - self.machine.design.warm_up if loops < 1 << 61 else None

    def _before(self, loop: int) -> Mark:
        """The last mark that is not after a loop."""
        found = max(number for number in self._marks if number <= loop)
        recent = max((number for number in self._recent if number <= loop), default=-1)
        return self._marks[found] if found >= recent else self._recent[recent]

    def _advance(self, begin: Mark, target: int, deadline: float | None = None) -> Mark:
        """Continue from a mark to a loop; the mark that was reached."""
        reached, steps = begin, self._steps(target)
        if begin.ended or (steps is not None and steps < 0):
            return reached

        stopping = over = False

        def late() -> bool:
            nonlocal stopping
            stopping = deadline is not None and time.monotonic() > deadline
            return stopping

        def keep(mark: Mark) -> None:
            nonlocal reached, over
            reached, over = mark, stopping or mark.ended or mark.loops >= target
            self._keep(mark)

        reason, message = "halted", None
        try:
            result = self._run(begin, target, engine=self.near if target - begin.loops <= FEW else self._far,
                               keep=PeriodicAction(self._every, keep), controls=Controls(interrupted=late))
            if any(note.startswith(NOT_LOWERED) for note in result.notes):
                self.near = self._far = result.engine  # to be declined takes a second each time
            reason, message = result.reason, None if result.fault is None else str(result.fault)
        except PunchcardError as error:
            if not over:
                return self._broke(self._before(target), error)
            message = str(error)  # all loops were made, but a soft attention has left a card that cannot be read
        if reached.ended:
            self._ended(reached, reason, message)
        elif reached.loops >= self.last:
            self.end = RunEnd(reached.loops, "steps", message)
        return reached

    def _ended(self, mark: Mark, reason: str, message: str | None) -> None:
        self.end = RunEnd(mark.loops, reason, message)
        self._marks[mark.loops] = mark

    def _broke(self, begin: Mark, error: PunchcardError) -> Mark:
        """A promise was broken after a mark: find the loop, look by look, and let the run end there."""
        reached, message, deadline = begin.loops, str(error), time.monotonic() + PATIENCE

        def note(loop: int, card: Card) -> None:
            nonlocal reached
            reached = loop

        try:
            self._run(begin, self.last, controls=Controls(watch=NoCopyWatch(note),
                                                          interrupted=lambda: time.monotonic() > deadline))
        except PunchcardError as again:
            message = str(again)
        last = begin

        def keep(mark: Mark) -> None:
            nonlocal last
            last = mark

        with suppress(PunchcardError):  # a transformer knows no errors: it makes that loop as any other
            self._run(begin, reached + 1, keep=PeriodicAction(1 << 30, keep), guarded=False)
        self.known = last.loops
        self._ended(last, "error", message)
        return last

    def _serve(self, mark: Mark) -> Served:
        read = reader(self.given, len(mark.traffic.read))
        host = self.machine.host(mark, read, lambda byte: None, self.last, self.program)
        if host is None:
            return Served(mark.raw_card, mark.traffic)
        return Served(host.begin(mark.raw_card), host.traffic)

    # Marks

    def _keep(self, mark: Mark) -> None:
        self.known = max(self.known, mark.loops)
        if mark.loops % self._every:
            self._remember(mark)
            return
        self._marks[mark.loops] = mark
        if len(self._marks) > self._most:
            self._thin()

    def _thin(self) -> None:
        """Drop every second mark."""
        self._every *= 2
        self._marks = {loop: kept for loop, kept in self._marks.items()
                       if loop % self._every == 0 or (self.end is not None and loop == self.end.loops)}

    def _remember(self, mark: Mark) -> Mark:
        self._recent[mark.loops] = mark
        return mark
