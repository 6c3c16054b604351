"""Looking for moments of a run: its end, a port, a branch, a breakpoint, or when a cell changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from punchcard.card.formats import as_array
from punchcard.card.layout import Card
from punchcard.card.packed import PackedCard
from punchcard.errors import PunchcardError, did_you_mean
from punchcard.machines.display_values import UNREADABLE
from punchcard.view.stages import entries_of

if TYPE_CHECKING:
    from punchcard.view.session import Session

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
    loop = session.place(moment)[0]
    deadline = time.monotonic() + seconds
    if what == "halt":
        return _halt(session, moment, forward=forward, seconds=seconds)
    if what == "port":
        found = _port(session, loop, deadline) if forward else _port_before(session, moment)
        return None if found is None else found * session.per_loop
    if what == "change":
        session.layout.rows(rows)
        if column not in range(session.layout.columns):
            raise PunchcardError(f"column {column}: the card has {session.layout.columns}, counted from 0")
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
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _passed(session, middle) == here else (low, middle)
    return high


def _port_before(session: Session, moment: int) -> int | None:
    loop = (moment - 1) // session.per_loop if moment else 0
    here = _passed(session, loop)
    if _passed(session, 0) == here:
        return None
    low, high = 0, loop  # the first loop at which as much has passed as here
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _passed(session, middle) == here else (middle, high)
    session.searched = low
    return high


def counter_of(session: Session, card: Card) -> int | None:
    """The program counter on a card."""
    counter = session.counter
    assert counter is not None
    if isinstance(card, PackedCard):
        rows = session.layout.place(counter.rows)
        return counter.unsigned(card.word(rows, counter.column), rows.size)
    column = as_array(card)[:, counter.column].tolist()
    text = counter.text(session.layout, lambda number: column)
    return None if text == UNREADABLE else int(text)


def _by_counter(session: Session, loop: int, hits: Callable[[int | None, int | None], bool], deadline: float,
                forward: bool, moment: int) -> int | None:
    """The next loop, or the last one before, at which the program counter is as wanted."""
    if forward:
        return _scan(session, loop, 1 << 61, hits, deadline, first=True)
    high = -(-moment // session.per_loop) - 1  # the last loop that begins before the moment
    while high >= 0 and time.monotonic() < deadline:
        low = max(0, high - PART)
        found = _scan(session, low, high, hits, deadline, first=False)
        session.searched = low
        if found is not None or low == 0:
            return 0 if found is None and hits(None, counter_of(session, session.timeline.served(0).card)) else found
        high = low
    return None


def _scan(session: Session, begin: int, end: int, hits: Callable[[int | None, int | None], bool], deadline: float, *,
          first: bool) -> int | None:
    """The first or the last loop after `begin`, and up to `end`, at which the program counter is as wanted."""
    before = counter_of(session, session.timeline.served(begin).card)
    found: int | None = None

    def look(loop: int, card: Card) -> bool:
        nonlocal before, found
        if loop > end:
            return True
        now = counter_of(session, card)
        if hits(before, now):
            found = loop
        before = now
        return first and found is not None

    session.searched = session.timeline.watch(begin, end, look, max(0.0, deadline - time.monotonic()))
    return found


def _change(session: Session, moment: int, rows: str, column: int, deadline: float, *, forward: bool) -> int | None:
    """The moment at which rows of a column change: first the loop, then the stage in it."""
    place = session.layout.rows(rows)
    session.state(moment, [column])

    def content(card: Card) -> bytes:
        return np.ascontiguousarray(entries_of(card, np.array([column]))[place]).tobytes()

    def stages(loop: int) -> list[int]:
        """The stages of a loop after which the rows are others, counted from 1; the last is the loop's end."""
        inside = session.inside(loop)
        at = int(np.searchsorted(inside.columns, column))
        cards = [stage[place, at] for stage in inside.stages]
        return [i for i in range(1, len(cards)) if not np.array_equal(cards[i - 1], cards[i])]

    loop, stage = session.place(moment)
    if forward:
        if not session._over(loop):
            inner = [i for i in stages(loop) if i > stage]
            if inner:
                return loop * session.per_loop + inner[0]
        begin = loop + 1
        found = _changed_loop(session, begin, 1 << 61, content, deadline, first=True)
        if found is None:
            return None
        inner = stages(found - 1)
        return (found - 1) * session.per_loop + (inner[0] if inner else session.per_loop)
    inner = [i for i in stages(loop) if i < stage] if stage else []
    if inner:
        return loop * session.per_loop + inner[-1]
    high = loop
    if stage == 0 and loop:
        inner = [i for i in stages(loop - 1) if i < session.per_loop]
        if inner:
            return (loop - 1) * session.per_loop + inner[-1]
        high = loop - 1
    while high > 0 and time.monotonic() < deadline:
        low = max(0, high - PART)
        found = _changed_loop(session, low, high, content, deadline, first=False)
        session.searched = low
        if found is not None:
            inner = stages(found - 1)
            return (found - 1) * session.per_loop + (inner[-1] if inner else session.per_loop)
        high = low
    return None


def _changed_loop(session: Session, begin: int, end: int, content: Callable[[Card], bytes], deadline: float, *,
                  first: bool) -> int | None:
    """The first or last loop after `begin` and up to `end` after which the content is another than before it."""
    before = content(session.timeline.served(begin).card)
    found: int | None = None

    def look(loop: int, card: Card) -> bool:
        nonlocal before, found
        if loop > end:
            return True
        now = content(card)
        if now != before:
            found = loop
        before = now
        return first and found is not None

    session.searched = session.timeline.watch(begin, end, look, max(0.0, deadline - time.monotonic()))
    return found
