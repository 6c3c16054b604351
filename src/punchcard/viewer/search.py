"""Looking for moments of a run: its end, a port, a branch, a breakpoint, or when a cell changed."""

from __future__ import annotations

import operator
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from punchcard.card.layout import Card
from punchcard.errors import PunchcardError, did_you_mean
from punchcard.viewer.stages import entries_of

if TYPE_CHECKING:
    from punchcard.viewer.session import Session

KINDS = ("halt", "port", "branch", "breakpoint", "change")
PART = 4096
"""Loops that are looked through at a time when one looks back."""


def find(session: Session, what: str, moment: int, *, forward: bool, instructions: Sequence[int], rows: str, column: int,
         seconds: float) -> int | None:
    """See `Session.find`."""
    if what not in KINDS:
        raise PunchcardError(f"unknown event {what!r}{did_you_mean(what, KINDS)}: there are {', '.join(KINDS)}")
    if not 0 < seconds <= 60:
        raise PunchcardError(f"seconds={seconds:g}: it must be more than 0, and at most 60")
    loop, stage = session.place(moment)
    moment = min(moment, loop * session.per_loop + stage + 1)  # however far beyond the end of the run
    deadline = time.monotonic() + seconds
    if what == "halt":
        return _halt(session, moment, forward=forward, seconds=seconds)
    if what == "port":
        found = _port(session, loop, deadline) if forward else _port_before(session, moment)
        return None if found is None else found * session.per_loop
    if what == "change":
        return _change(session, moment, rows, column, deadline, forward=forward)
    if session.counter is None:
        raise PunchcardError(f"a {session.machine.kind.name} machine shows no program counter: it has no {what} to find")
    wanted = set(instructions)
    if what == "breakpoint" and not wanted:
        raise PunchcardError("a breakpoint is an instruction: name at least one")
    size = session.machine.instruction_size

    def hits(before: int | None, now: int | None) -> bool:
        if what == "breakpoint":
            return now in wanted
        return before is not None and now is not None and now != before + size

    found = _by_counter(session, loop, hits, deadline, forward, moment)
    return None if found is None else found * session.per_loop


def _halt(session: Session, moment: int, *, forward: bool, seconds: float) -> int | None:
    session.timeline.explore(seconds)
    session.searched, end = session.timeline.known, session.timeline.end
    if end is None:
        return None
    at = end.loops * session.per_loop
    return at if (at > moment) == forward and at != moment else None


def _passed(session: Session, loop: int) -> int:
    traffic = session.timeline.served(loop).traffic
    return len(traffic.read) + len(traffic.written)


def _port(session: Session, loop: int, deadline: float) -> int | None:
    """The next loop before which something was read or written: what has passed only grows, so it is halved."""
    here, step, low = _passed(session, loop), 1, loop
    while True:
        high = session.timeline.mark(low + step).loops
        session.searched = high
        if high == low:
            return None
        if _passed(session, high) != here:
            break
        low, step = high, 2 * step
        if time.monotonic() > deadline:
            return None
    return low + bisect_right(range(low, high), here, key=lambda loop: _passed(session, loop))


def _port_before(session: Session, moment: int) -> int | None:
    loop = (moment - 1) // session.per_loop if moment else 0
    here = _passed(session, loop)
    if _passed(session, 0) == here:
        return None
    found = bisect_left(range(loop), here, key=lambda loop: _passed(session, loop))  # the first where as much has passed
    session.searched = found - 1
    return found


def _by_counter(session: Session, loop: int, hits: Callable[[int | None, int | None], bool], deadline: float,
                forward: bool, moment: int) -> int | None:
    """The next loop, or the last one before, at which the program counter is as wanted."""
    if forward:
        return _scan(session, loop, 1 << 61, session.counter_on, hits, deadline, first=True)
    high = -(-moment // session.per_loop) - 1  # the last loop that begins before the moment
    found = _last_before(session, high, session.counter_on, hits, deadline)
    if found is None and high >= 0 and session.searched == 0 and hits(
            None, session.counter_on(session.timeline.served(0).card)):
        return 0
    return found


def _change(session: Session, moment: int, rows: str, column: int, deadline: float, *, forward: bool) -> int | None:
    """The moment at which rows of a column change: first the loop, then the stage in it."""
    place, per_loop = session.layout.rows(rows), session.per_loop
    session.state(moment, [column])

    def content(card: Card) -> bytes:
        return np.ascontiguousarray(entries_of(card, np.array([column]))[place]).tobytes()

    def stages(loop: int) -> list[int]:
        """The stages of a loop after which the rows are others, counted from 1; the last is the loop's end."""
        cards = [stage[place, 0] for stage in session.inspector.stages(loop).only(np.array([column])).stages]
        return [i for i in range(1, len(cards)) if not np.array_equal(cards[i - 1], cards[i])]

    loop, stage = session.place(moment)
    if forward:
        if not session.inspector.has_ended(loop):
            inner = [i for i in stages(loop) if i > stage]
            if inner:
                return loop * per_loop + inner[0]
        found = _scan(session, loop + 1, 1 << 61, content, operator.ne, deadline, first=True)
        return None if found is None else (found - 1) * per_loop + (stages(found - 1) or [per_loop])[0]
    if stage == 0 and loop:
        loop, stage = loop - 1, per_loop
    inner = [i for i in stages(loop) if i < stage] if stage else []
    if inner:
        return loop * per_loop + inner[-1]
    found = _last_before(session, loop, content, operator.ne, deadline)
    return None if found is None else (found - 1) * per_loop + (stages(found - 1) or [per_loop])[-1]


Content = TypeVar("Content")


def _last_before(session: Session, high: int, read: Callable[[Card], Content], hits: Callable[[Content, Content], bool],
                 deadline: float) -> int | None:
    """The last loop up to `high` that hits, looked for part by part from there back."""
    session.searched = high
    while high > 0 and time.monotonic() < deadline:
        low = max(0, high - PART)
        found = _scan(session, low, high, read, hits, deadline, first=False)
        session.searched = low
        if found is not None:
            return found
        high = low
    return None


def _scan(session: Session, begin: int, end: int, read: Callable[[Card], Content],
          hits: Callable[[Content, Content], bool], deadline: float, *, first: bool) -> int | None:
    """The first or last loop after `begin` and up to `end` that hits, by what is read off the cards before and after it."""
    before = read(session.timeline.served(begin).card)
    found: int | None = None

    def look(loop: int, card: Card) -> bool:
        nonlocal before, found
        if loop > end:
            return True
        now = read(card)
        if hits(before, now):
            found = loop
        before = now
        return first and found is not None

    session.searched = session.timeline.watch(begin, end, look, max(0.0, deadline - time.monotonic()))
    return found
