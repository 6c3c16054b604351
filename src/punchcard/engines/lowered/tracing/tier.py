"""The tracing tier of a compiled model: when a card is sampled, when traces are compiled, and what came of it."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from punchcard.engines.base import TraceReport
from punchcard.engines.lowered.codegen.driver import put_entry
from punchcard.engines.lowered.codegen.trace import PatternPart
from punchcard.engines.lowered.codegen.trace_driver import TABLE_SIZE, TracePlace
from punchcard.engines.lowered.tracing.compiler import CompiledTrace, FoundSample, LoadedFunction, TraceCompiler
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
"""Hot states of a trace: compiling takes seconds then. A card may have several traces."""
SECONDS_OF_A_STATE = 0.005
"""About half of what compiling a hot state takes, of a loop in one part: traces wait until so much was spent for each."""
SECONDS_OF_A_CASE = 0.15
"""About what a case takes to be ready for traces, when it is not on the disk: the first sample waits until so much was spent
for each that the run has met."""
MOST_BUILDS, FEW_BUILDS = 16, 6
"""How often traces are compiled for a card; and where everything counts as hot."""
ENOUGH_INSIDE, LONG_VISIT = 0.99, 256
"""Traces are good enough when this share of the loops is made in them, and so many at a time."""
LEAST_INSIDE = 0.5
"""With less than that, traces cost more than they win."""
WRONG = 0.5
"""Where traces are left so often at hot states of their own, what they take for constant is wrong."""
EARLY = 0.25
"""The share of the time before the first sample after which a copy of the card is kept, to see what changes."""
LONGEST = 0.25
"""Seconds that the loops made at once would take in the usual code."""
PATIENCE = 3
"""A sample waits for so many times what the one before took."""


class TraceTier:
    """Traces for the cards of a model that are run with the same patterns. `seconds`: what is spent before the first.

    Seconds are those of this thread on a processor. With 0 seconds, everything is hot.
    """

    def __init__(self, model: CompiledModel, patterns: Sequence[Sequence[PatternPart]], seconds: float) -> None:
        self._model, self._patterns, self._first = model, patterns, seconds
        self._eager = seconds == 0
        self._driver = model.driver
        self._traces: list[CompiledTrace] = []
        self._run: LoadedFunction | None = None
        self._pending: HotGraph | None = None
        """What is hot, but waits to be compiled."""
        self._sample = self._outside = Sample.none()
        """Of all loops; and of those made outside of traces since the last one was compiled."""
        self._all_spent = self._usual = 0.0
        """Seconds of all loops, and those of one in the usual code."""
        self._outside_before = 0
        """Loops made outside until a trace was last compiled."""
        self.memory: Pointers = np.zeros(TracePlace.END, dtype=np.int64)
        """What the code of traces has beside the card's buffer (`TracePlace`)."""
        self._inside = self._left = 0
        self._compiled = self._all_made = 0
        self._seconds = 0.0
        self._off = ""
        self._card: Callable[[], Buffer | None] = _no_card
        self._early: dict[int, tuple[Buffer, int]] = {}
        """What loops may change, as it was some time before the first sample; and the bytes of a word there."""
        self._spent, self._took, self._due, self._gap_ends = 0.0, 0.0, seconds, 0.0
        self._made = self._builds = self._gap = self._parts_left = 0

    def _begin(self, buffer: Buffer) -> None:
        """Another card. What is known stays: most times it is of the same program. Its memory is not kept."""
        self._card, self._early, self._gap, self._parts_left, self._builds = weakref.ref(buffer), {}, 0, 0, 0

    def forget_samples(self) -> None:
        """Free what only better traces would need."""
        self._sample, self._outside, self._early = Sample.none(), Sample.none(), {}

    @property
    def report(self) -> TraceReport:
        """All so far."""
        return TraceReport(*self._counters(), self._compiled, sum(len(trace.graph.states) for trace in self._traces),
                           self._seconds, self._off)

    def _counters(self) -> tuple[int, int]:
        """Loops made in traces, and how often one was left."""
        return int(self.memory[TracePlace.INSIDE]), int(self.memory[TracePlace.LEFT])

    def call(self, arguments: int, loops: int, buffer: Buffer) -> int:
        """Make up to so many loops, in traces where there are any; how many were made. The arguments have this buffer."""
        model = self._model
        if self._off:
            return int(model.call(arguments, loops))
        if buffer is not self._card():
            self._begin(buffer)
        if self._driver is not model.driver:  # compiled anew, with fewer assumptions
            self._driver, self._pending, self._sample, self._outside = model.driver, None, Sample.none(), Sample.none()
            self._use([])
        if self._spent >= self._due and (made := self._consider(arguments, loops)):
            return made
        if not self._early and self._spent >= EARLY * self._due:
            self._early = {
                at: (buffer[at : at + size].copy(), item) for at, size, item in model.places.changing(model.layout)}
        started = time.thread_time()
        run = model.call if self._run is None else self._run.call
        made = int(run(arguments, self._loops_at_once(loops)))
        self._spent += time.thread_time() - started
        self._made += made
        self._gap = max(0, self._gap - made) if self._spent < self._gap_ends else 0
        return made

    def _loops_at_once(self, loops: int) -> int:
        """So many at most: those in traces may be many, but what is made outside must not go unseen for long."""
        if self._gap:
            loops = min(loops, self._gap)
        if self._usual:
            seconds = min(LONGEST, self._gap_ends - self._spent) if self._gap else LONGEST
            loops = min(loops, max(1, int(seconds / self._usual)))
        return loops

    def _is_early(self, compiler: TraceCompiler) -> bool:
        """Whether the first sample must wait, for what it takes to get the cases ready."""
        return not (self._eager or self._seconds) and self._spent < SECONDS_OF_A_CASE * compiler.cases_to_prepare

    def _consider(self, arguments: int, loops: int) -> int:
        """Look whether other traces would pay, and compile them; how many loops were made meanwhile.

        A sample has several parts, with other loops between them: a program has phases.
        """
        if self._gap or (self._parts_left == 0 and self._is_good()):
            if not self._gap:
                self._wait(0.0)
            return 0
        started, cpu, before = time.perf_counter(), time.thread_time(), self._traces
        wait, made = 0.0, 0
        try:
            compiler = self._model.trace_compiler
            if self._is_early(compiler):
                return 0
            self.memory[TracePlace.CASES : TracePlace.TABLE] = compiler.tables_of_cases()
            if not self._seconds:  # the first sample waited until its time was spent
                compiler.prepare_sampler()
                cpu = time.thread_time()
            if self._pending is not None:
                self._compile(compiler, self._pending, [])
            else:
                made, wait = self._look(compiler, arguments, loops)
        except LoweringError as why:
            self._off = str(why)
            self._use([])
        self._seconds += time.perf_counter() - started
        self._took += time.thread_time() - cpu
        if not self._gap:
            if self._traces is before and not wait:  # nothing came of it: look less often
                self._first *= 2
            self._wait(wait)
        return made

    def _look(self, compiler: TraceCompiler, arguments: int, loops: int) -> tuple[int, float]:
        """Take a part of a sample; after the last one, compile what is hot, or say how long that has to wait."""
        rows = min(loops, FEW_SAMPLED if self._eager else SAMPLED)
        is_both = self._eager or not self._traces
        is_outside = is_both or self._parts_left % 2 == 1
        if is_outside:
            found = compiler.sample(arguments, loops, rows)
            self._outside = self._outside.joined(found.sample)
        else:
            found = self._without_traces(partial(compiler.sample, arguments, loops, rows))
        if is_both or not is_outside:
            self._sample = self._sample.joined(found.sample)
        self._made += found.made
        if self._eager or self._parts_left == 1:
            self._parts_left = 0
            return found.made, self._build(compiler)
        self._parts_left = (self._parts_left or PARTS * (2 - is_both)) - 1
        self._gap, self._gap_ends = max(1, self._made // GAPS), self._spent * (1 + 1 / GAPS)
        return found.made, 0.0

    def _without_traces(self, sample: Callable[[], FoundSample]) -> FoundSample:
        """A sample of all loops: none is made in a trace."""
        table = self.memory[TracePlace.TABLE :]
        kept = table.copy()
        table[:] = 0
        try:
            return sample()
        finally:
            table[:] = kept

    def _wait(self, seconds: float) -> None:
        """Look again after so long, or after some time."""
        self._all_spent, self._all_made = self._all_spent + self._spent, self._all_made + self._made
        self._due = 0.0 if self._eager else seconds or max(self._first, PATIENCE * self._took)
        self._gap = FEW_BETWEEN if self._eager and self._builds < FEW_BUILDS else 0
        self._spent = self._took = 0.0
        self._made = 0
        self._inside, self._left = self._counters()

    def _is_good(self) -> bool:
        """Whether the traces that there are do most of the work. Those that do little are given up."""
        if not self._traces or self._made == 0:
            return bool(self._traces)
        inside, left = (now - before for now, before in zip(self._counters(), (self._inside, self._left), strict=True))
        share = inside / self._made
        if share < LEAST_INSIDE and not self._eager:
            self._use([])
        return bool(share >= ENOUGH_INSIDE and inside >= LONG_VISIT * left)

    def _build(self, compiler: TraceCompiler) -> float:
        """Compile what is hot, if it is hot enough; else, the seconds until it may be."""
        if self._builds >= (FEW_BUILDS if self._eager else MOST_BUILDS):
            return 0.0
        if self._traces and not self._is_wrong():
            self._add(compiler)
            return 0.0
        least = 1 if self._eager else LEAST_VISITS
        graph = hot_graph(self._sample, compiler.groups, least, MOST_STATES, self._has_changed)
        if self._traces and (graph is None or len(graph.states) == MOST_STATES or graph == self._traces[0].graph):
            self._add(compiler)
            return 0.0
        if graph is None:
            return 0.0
        wait = len(graph.states) * self._cost(compiler) - self._lost
        if wait > 0 and not self._eager:
            self._pending = graph
            return wait
        self._compile(compiler, graph, [])
        return 0.0

    def _add(self, compiler: TraceCompiler) -> None:
        """Compile one more trace, of what is hot outside. Each of its states must have cost more than to compile it."""
        sample, least = self._outside, 1
        if not self._eager:
            least = max(LEAST_VISITS, int(sample.loops * self._cost(compiler) / max(self._lost, 1e-6)) + 1)
        graph = hot_graph(sample, compiler.groups, least, MOST_STATES, self._has_changed, self._traces[0].graph.anchor)
        if graph is not None:
            self._compile(compiler, graph, self._traces)

    def _is_wrong(self) -> bool:
        """Whether traces are left, or not entered, at hot states of their own more often than left at others.

        Of several, one may be left at a state that another has, and is not entered at; it becomes an entry of the next one.
        """
        entries = [key for trace in self._traces for key, _ in trace.entries]
        own = entries if len(self._traces) > 1 else self._traces[0].anchors
        found = self._outside.before[:, self._traces[0].graph.anchor]
        starts = found[self._outside.left | np.isin(found, np.array(entries, dtype=np.uint64))]
        return len(starts) > 0 and bool(np.isin(starts, np.array(own, dtype=np.uint64)).mean() > WRONG)

    def _cost(self, compiler: TraceCompiler) -> float:
        """About the seconds that compiling a hot state takes: no trace is compiled before that was lost for each."""
        return SECONDS_OF_A_STATE * compiler.parts

    def _compile(self, compiler: TraceCompiler, graph: HotGraph, others: list[CompiledTrace]) -> None:
        if not self._usual:
            self._usual = self._lost / max(1, self._all_made + self._made)
        started = time.thread_time()
        self._use([*others, compiler.compile(graph, self._patterns)])
        self._pending, self._outside, self._outside_before = None, Sample.none(), self._made_outside()
        self._builds, self._compiled = self._builds + 1, self._compiled + 1
        self._took -= time.thread_time() - started  # the trace waited until its time was lost

    def _use(self, traces: list[CompiledTrace]) -> None:
        """From now on, make loops in these."""
        table = self.memory[TracePlace.TABLE :].reshape(TABLE_SIZE, 2)
        table[:] = 0  # before the code that it leads to may be unloaded
        self._traces, self._run = traces, self._model.trace_compiler.driver if traces else None
        for trace in traces:
            for key, address in trace.entries:
                put_entry(table, key, address)
        if traces:
            self.memory[TracePlace.ANCHOR], self.memory[TracePlace.BITS] = traces[0].place
        self.memory[TracePlace.TRIES] = sum(len(trace.graph.states) for trace in traces)

    @property
    def _lost(self) -> float:
        """Seconds of the loops outside since a trace was last compiled."""
        if not self._usual:
            return self._all_spent + self._spent
        return self._usual * (self._made_outside() - self._outside_before)

    def _made_outside(self) -> int:
        return self._all_made + self._made - self._counters()[0]

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
