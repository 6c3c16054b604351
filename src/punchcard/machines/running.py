"""Running a card in parts. Between two parts the host may look at the card, keep it in a file, or stop.

An engine enters Python after every loop only when it is watched. What need not be seen after every loop is done at marks:
the run is cut into parts, each a call of one prepared runner. A loop depends on nothing but the card, so a run in parts
ends with the card of a run in one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from punchcard.card.holder import CardHolder
from punchcard.card.layout import Card, Pattern
from punchcard.engines import NoCopyWatch, Port, Runner, Watch
from punchcard.engines.base import count_from
from punchcard.errors import LoweringError, PunchcardError
from punchcard.formatting import plural
from punchcard.machines.ports import Host
from punchcard.machines.streams import Traffic

DEFAULT_ENGINE = "auto"
OBSERVED = "dense"
"""The engine that passes through the model's layers, where `observe` listens."""
MOST_NOTES = 16


@dataclass(frozen=True)
class Mark(CardHolder):
    """A point of a run, from which it can go on: the card, the loops made, and the engine that made most of them.

    `ended`: the program has halted or stopped with a fault, so that no loop is left to make. `traffic`: what was read and
    written.
    """

    raw_card: Card = field(repr=False)
    loops: int = 0
    engine: str = ""
    ended: bool = False
    traffic: Traffic = field(default_factory=Traffic)

    def __repr__(self) -> str:
        read, written = len(self.traffic.read), len(self.traffic.written)
        moved = f", {plural(read, 'byte')} read, {written:,} written" if read or written else ""
        return f"<Mark after {plural(self.loops, 'loop')}{', ended' * self.ended}{moved}>"


@dataclass(frozen=True)
class PeriodicAction:
    """Something to do with the mark whenever the loops made are a multiple of `every`, and at the end of the run."""

    every: int
    act: Callable[[Mark], None]

    def __post_init__(self) -> None:
        if self.every < 1:
            raise PunchcardError(f"every={self.every}: it must be 1 or more loops")


@dataclass(frozen=True)
class RunOutcome:
    """A run in parts: the mark where it ended and why, what ran it, and the seconds spent running and compiling."""

    mark: Mark
    reason: Literal["matched", "loops", "interrupted", "stopped"]
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    compile_seconds: float = 0.0


def run_parts(
    runner: Runner,
    begin: Mark,
    loops: int,
    *,
    until: Sequence[Pattern],
    ports: Mapping[Pattern, Port] | None = None,
    host: Host | None = None,
    marks: Sequence[PeriodicAction] = (),
    watch: Watch | None = None,
    interrupted: Callable[[], bool] | None = None,
    progress: Callable[[int], None] | None = None,
) -> RunOutcome:
    """Go on from a mark until a card shows `until` or `loops` loops have been made in all, those before included."""
    mark, made, seconds = begin, Counter[str](), 0.0
    while True:
        before, started, compiled = mark.loops, time.perf_counter(), runner.compile_seconds
        ran = runner.run(
            part_of(before, loops, marks), until=until, interrupted=interrupted,
            ports=ports and {pattern: count_from(before, port) for pattern, port in ports.items()},
            watch=watch and NoCopyWatch.like(count_from(before, watch), watch),
            progress=progress and count_from(before, progress))
        seconds += time.perf_counter() - started - (runner.compile_seconds - compiled)
        made.update(ran.made)
        if ran.reason == "declined":
            raise LoweringError(f"loop {before + ran.loops + 1}: {'; '.join(ran.notes)}; the engine 'auto' goes on with a "
                                "slower one")
        engine = max(made, key=made.__getitem__, default=runner.engine)
        ended = ran.reason == "matched" or (host is not None and host.ended in ("halted", "fault"))
        mark = Mark(ran.raw_card, before + ran.loops, engine, ended, Traffic() if host is None else host.traffic)
        reason = ran.reason
        if reason == "loops" and mark.loops < loops and interrupted is not None and interrupted():
            reason = "interrupted"
        last = reason != "loops" or mark.loops >= loops
        for at in marks:
            if last or mark.loops % at.every == 0:
                at.act(mark)
        if last:
            notes = tuple(dict.fromkeys(runner.notes))[:MOST_NOTES]
            return RunOutcome(mark, reason, notes, max(0.0, seconds), runner.compile_seconds)


def in_turn(*watchers: Watch) -> Watch:
    """Several watchers as one."""
    def look(loop: int, card: Any) -> None:
        for watcher in watchers:
            watcher(loop, card)

    return NoCopyWatch.like(look, *watchers)


def part_of(done: int, loops: int, marks: Sequence[PeriodicAction]) -> int:
    """How many loops until the next mark, or the end."""
    return max(0, min([loops - done, *(at.every - done % at.every for at in marks)]))
