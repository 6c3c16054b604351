"""The tracing tier of a compiled model: when a card is sampled, when traces are compiled, and what came of it."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from punchcard.engines.base import TraceReport
from punchcard.engines.lowered.codegen.trace import COUNTERS, PatternPart
from punchcard.engines.lowered.tracing.compiler import MOST_CASES, LoadedFunction, TraceCompiler
from punchcard.engines.lowered.tracing.profile import Flags, HotGraph, Sample, Words, hot_graph
from punchcard.errors import LoweringError

if TYPE_CHECKING:
    from punchcard.engines.lowered.compiled_model import Buffer, CompiledModel, Pointers

SAMPLED, FEW_SAMPLED, FEW_BETWEEN = 1 << 11, 16, 61
"""Loops of a part of a sample; and where everything counts as hot, also loops between two samples."""
PARTS, GAPS = 8, 32
"""Parts of a sample; and how many times as many loops were made before it as between two of them."""
LEAST_VISITS = 4
"""Visits in a sample that make a state hot."""
MOST_STATES = 256
SECONDS_OF_A_STATE = 0.005
"""About half of what compiling a hot state takes, of a loop in one part: traces wait until so much was spent for each."""
SECONDS_OF_A_CASE = 0.15
"""About what a case takes to be ready for traces, when it is not on the disk: the first sample waits until so much was spent
for each that the run has met."""
MOST_BUILDS, FEW_BUILDS = 12, 3
"""How often traces are compiled for a card; and where everything counts as hot."""
ENOUGH_INSIDE, LONG_VISIT = 0.99, 256
"""Traces are good enough when this share of the loops is made in them, and so many at a time."""
LEAST_INSIDE = 0.5
"""With less than that, traces cost more than they win."""
EARLY = 0.25
"""The share of the time before the first sample after which a copy of the card is kept, to see what changes."""
PATIENCE = 3
"""Compiling again waits for so many times what it took before."""


class TraceTier:
    """Traces for the cards of a model that are run with the same patterns. `seconds`: what is spent before the first.

    Seconds are those of this thread on a processor. With 0 seconds, everything is hot.
    """

    def __init__(self, model: CompiledModel, patterns: Sequence[Sequence[PatternPart]], seconds: float) -> None:
        self._model, self._patterns, self._first = model, patterns, seconds
        self._eager = seconds == 0
        self._driver = model.driver
        self._run: LoadedFunction | None = None
        self._graph: HotGraph | None = None
        self._pending: HotGraph | None = None
        """What is hot, but waits to be compiled."""
        self._sample = Sample.none()
        self._all_spent = 0.0
        self.extra: Pointers = np.zeros(COUNTERS + MOST_CASES, dtype=np.int64)
        """Loops made in traces, how often one was left, and the tables of cases."""
        self._inside = self._left = 0
        self._compiled = self._states = 0
        self._seconds = 0.0
        self._off = ""
        self._card: Callable[[], Buffer | None] = _no_card
        self._early: dict[int, tuple[Buffer, int]] = {}
        """What loops may change, as it was some time before the first sample; and the bytes of a word there."""
        self._spent, self._took, self._due = 0.0, 0.0, seconds
        self._made = self._builds = self._gap = self._parts_left = 0

    def _begin(self, buffer: Buffer) -> None:
        """Another card. What is known stays: most times it is of the same program. Its memory is not kept."""
        self._card, self._early, self._gap, self._parts_left, self._builds = weakref.ref(buffer), {}, 0, 0, 0

    def forget_samples(self) -> None:
        """Free what only better traces would need."""
        self._sample, self._early = Sample.none(), {}

    @property
    def report(self) -> TraceReport:
        """All so far."""
        inside, left = self.extra[:COUNTERS].tolist()
        return TraceReport(inside, left, self._compiled, self._states, self._seconds, self._off)

    def call(self, arguments: int, loops: int, buffer: Buffer) -> int:
        """Make up to so many loops, in traces where there are any; how many were made. The arguments have this buffer."""
        model = self._model
        if self._off:
            return int(model.call(arguments, loops))
        if buffer is not self._card():
            self._begin(buffer)
        if self._driver is not model.driver:  # compiled anew, with fewer assumptions
            self._driver, self._run, self._pending, self._sample = model.driver, None, None, Sample.none()
        if self._spent >= max(self._due, self._preparation) and (made := self._consider(arguments, loops)):
            return made
        if not self._early and self._spent >= EARLY * self._due:
            self._early = {
                at: (buffer[at : at + size].copy(), item) for at, size, item in model.places.changing(model.layout)}
        started = time.thread_time()
        run = model.call if self._run is None else self._run.call
        made = int(run(arguments, min(loops, self._gap) if self._gap else loops))
        self._spent += time.thread_time() - started
        self._made += made
        self._gap -= min(self._gap, made)
        return made

    @property
    def _preparation(self) -> float:
        """What it takes to get the cases ready, before the first sample."""
        return 0.0 if self._eager or self._seconds else SECONDS_OF_A_CASE * len(self._model.known)

    def _consider(self, arguments: int, loops: int) -> int:
        """Look whether other traces would pay, and compile them; how many loops were made meanwhile.

        A sample has several parts, with other loops between them: a program has phases.
        """
        if self._gap or (self._parts_left == 0 and self._is_good()):
            if not self._gap:
                self._wait(0.0)
            return 0
        started, cpu, before = time.perf_counter(), time.thread_time(), self._run
        wait, made = 0.0, 0
        try:
            compiler = self._model.trace_compiler
            self.extra[COUNTERS:] = compiler.tables_of_cases()
            if self._pending is not None:
                self._compile(compiler, self._pending)
            else:
                made, wait = self._look(compiler, arguments, loops)
        except LoweringError as why:
            self._off, self._run = str(why), None
        self._seconds += time.perf_counter() - started
        self._took += time.thread_time() - cpu
        if not self._gap:
            if self._run is before and not wait:  # nothing came of it: look less often
                self._first *= 2
            self._wait(wait)
        return made

    def _look(self, compiler: TraceCompiler, arguments: int, loops: int) -> tuple[int, float]:
        """Take a part of a sample; after the last one, compile what is hot, or say how long that has to wait."""
        found = compiler.sample(arguments, min(loops, FEW_SAMPLED if self._eager else SAMPLED))
        self._sample = self._sample.joined(found.sample)
        if self._eager or self._parts_left == 1:
            self._parts_left = 0
            return found.made, self._build(compiler)
        self._parts_left = (self._parts_left or PARTS) - 1
        self._gap = max(1, self._made // GAPS)
        return found.made, 0.0

    def _wait(self, seconds: float) -> None:
        """Look again after so long, or after some time."""
        self._all_spent += self._spent
        self._due = 0.0 if self._eager else seconds or max(self._first, PATIENCE * self._took)
        self._gap = FEW_BETWEEN if self._eager and self._builds < FEW_BUILDS else 0
        self._spent = self._took = 0.0
        self._made = 0
        self._inside, self._left = self.extra[:COUNTERS].tolist()

    def _is_good(self) -> bool:
        """Whether the traces that there are do most of the work. Those that do little are given up."""
        if self._run is None or self._made == 0:
            return self._run is not None
        inside, left = self.extra[0] - self._inside, self.extra[1] - self._left
        share = inside / self._made
        if share < LEAST_INSIDE and not self._eager:
            self._run = None
        return bool(share >= ENOUGH_INSIDE and inside >= LONG_VISIT * left)

    def _build(self, compiler: TraceCompiler) -> float:
        """Compile what is hot, if it is hot enough; else, the seconds until it may be."""
        if self._builds >= (FEW_BUILDS if self._eager else MOST_BUILDS):
            return 0.0
        graph = hot_graph(self._sample, compiler.groups, 1 if self._eager else LEAST_VISITS, MOST_STATES, self._has_changed)
        if graph is None or (graph == self._graph and self._run is not None):
            return 0.0
        wait = len(graph.states) * SECONDS_OF_A_STATE * compiler.parts - self._all_spent - self._spent
        if wait > 0 and not self._eager:
            self._pending = graph
            return wait
        self._compile(compiler, graph)
        return 0.0

    def _compile(self, compiler: TraceCompiler, graph: HotGraph) -> None:
        self._run, self._graph, self._pending = compiler.compile(graph, self._patterns), graph, None
        self._states = len(graph.states)
        self._builds, self._compiled = self._builds + 1, self._compiled + 1

    def _has_changed(self, places: Words) -> Flags:
        """Whether the words at some places in the buffer are not what they were when the run was young."""
        buffer = self._card()
        assert buffer is not None
        found, of = np.unique(places.astype(np.int64), return_inverse=True)
        changed = np.zeros(len(found), dtype=bool)
        for at, (early, item) in self._early.items():
            own = (found >= at) & (found < at + len(early))
            for byte in range(item):
                within = np.minimum(found[own] + byte, at + len(early) - 1)
                changed[own] |= buffer[within] != early[within - at]
        return np.asarray(changed[of].reshape(places.shape))


def _no_card() -> None:
    """The card of a tier that has not run any."""
