"""Running a card in parts. Between two parts the host may look at the card, keep it in a file, or stop.

An engine enters Python after every loop only when it is watched. What need not be seen after every loop is done at marks:
the run is cut into parts, each a call of the engine on the card that the last one left. A loop depends on nothing but the
card, so a run in parts ends with the card of a run in one, as long as one engine makes all of it: real numbers may differ
in the last bit between engines.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from torch import Tensor

from punchcard.card.layout import Layout, Pattern
from punchcard.engines import Port, Run, Watch, find_engine
from punchcard.errors import PunchcardError
from punchcard.transformer.model import LoopedTransformer

DEFAULT_ENGINE = "auto"
OBSERVED = "dense"
"""The engine that passes through the model's layers, where `observe` listens."""
LONG = 10**9
MOST_NOTES = 16


@dataclass(frozen=True)
class Mark:
    """A point of a run, from which it can go on: the card, the loops made, and the engine that made the last of them.

    `ended`: a stopping pattern stands on the card, so that no loop is left to make.
    """

    card: Tensor = field(repr=False)
    loops: int = 0
    engine: str = ""
    ended: bool = False


@dataclass(frozen=True)
class At:
    """Something to do with the mark whenever the loops made are a multiple of `every`, and at the end of the run."""

    every: int
    act: Callable[[Mark], None]

    def __post_init__(self) -> None:
        if self.every < 1:
            raise PunchcardError(f"every={self.every}: it must be 1 or more loops")


Keep: TypeAlias = Callable[[Mark], None]
"""Writes a mark somewhere safe."""


@dataclass(frozen=True)
class Course:
    """A run in parts: the last part's `Run` with all loops, notes and compile time, and the seconds spent running.

    `begun` are the loops that had been made before.
    """

    run: Run
    begun: int
    seconds: float


def run_parts(
    model: LoopedTransformer,
    begin: Mark,
    loops: int,
    *,
    engine: str,
    facts: Layout,
    until: Pattern,
    marks: Sequence[At] = (),
    kept: bool = False,
    ports: Mapping[Pattern, Port] | None = None,
    watch: Watch | None = None,
    interrupted: Callable[[], bool] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Course:
    """Go on from a mark until a card shows `until` or `loops` loops have been made in all, those before included.

    A run that is `kept` may be resumed with more loops, so that its engine is chosen as for a long run.
    """
    name = OBSERVED if engine == DEFAULT_ENGINE and is_observed(model) else engine
    if begin.ended:
        return Course(Run(begin.card, begin.loops, "matched", begin.engine or name, until), begin.loops, 0.0)
    make, mark = find_engine(name), begin
    notes: dict[str, None] = {}
    compiling = seconds = 0.0
    if name == DEFAULT_ENGINE and (kept or _part(mark.loops, loops, marks) < loops - mark.loops):
        # It chooses by the length of a run: let it see the whole one, and make all parts with the engine it takes.
        tried = make(model, mark.card, LONG if kept else loops - mark.loops, facts=facts, until=until,
                     interrupted=lambda: True)
        make, compiling, notes = find_engine(tried.engine), tried.compile_seconds, dict.fromkeys(tried.notes)
    while True:
        start = time.perf_counter()
        ran = make(model, mark.card, _part(mark.loops, loops, marks), facts=facts, until=until, interrupted=interrupted,
                   ports={pattern: _port_shifted(port, mark.loops) for pattern, port in (ports or {}).items()},
                   watch=_shifted(watch, mark.loops), progress=_counted_on(progress, mark.loops))
        seconds += time.perf_counter() - start - ran.compile_seconds
        compiling += ran.compile_seconds
        notes.update(dict.fromkeys(ran.notes[: MOST_NOTES - len(notes)]))
        mark = Mark(ran.card, mark.loops + ran.loops, ran.engine, ran.reason == "matched")
        ran = replace(ran, loops=mark.loops, notes=tuple(notes), compile_seconds=compiling)
        if ran.reason == "loops" and mark.loops < loops and interrupted is not None and interrupted():
            ran = replace(ran, reason="interrupted")
        last = ran.reason != "loops" or mark.loops >= loops
        for at in marks:
            if last or mark.loops % at.every == 0:
                at.act(mark)
        if last:
            return Course(ran, begin.loops, max(0.0, seconds))


def _part(done: int, loops: int, marks: Sequence[At]) -> int:
    """How many loops until the next mark, or the end."""
    return max(0, min([loops - done, *(at.every - done % at.every for at in marks)]))


def loops_a_second(loops: int, seconds: float) -> float | None:
    """A rate, or None where nothing was made or no time has passed."""
    rate = loops / seconds if loops and seconds > 0 else math.nan
    return rate if math.isfinite(rate) else None


def is_observed(model: LoopedTransformer) -> bool:
    """Whether forward hooks listen at a layer (see `punchcard.trace`)."""
    return any(layer._forward_hooks for layer in model.layers)


def _shifted(watch: Watch | None, before: int) -> Watch | None:
    """Loops are counted from the beginning of the run, not of the part."""
    return None if watch is None else lambda loop, card: watch(before + loop, card)


def _port_shifted(port: Port, before: int) -> Port:
    """The same for a port."""
    return lambda loop, card: port(before + loop, card)


def _counted_on(progress: Callable[[int], None] | None, before: int) -> Callable[[int], None] | None:
    """The same for `progress`."""
    return None if progress is None else lambda loops: progress(before + loops)
