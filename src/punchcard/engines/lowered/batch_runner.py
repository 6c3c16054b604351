"""The lowered engine for many cards: one call of the generated code runs some of them, and every core makes calls.

In a run, cards wait in line. A job takes some of them to a thread; a card that comes back is in line again, is served by its
ports, or has ended. What needs more code (a case that was not met before) waits until all threads are idle: no thread runs
code that is being replaced. The generated code runs outside of Python's lock, so threads use all cores.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from punchcard.card.formats import name_of
from punchcard.card.layout import Card, Layout, Pattern
from punchcard.card.packed import PackedCard
from punchcard.engines.base import EngineCache, Reason, Run, Stops
from punchcard.engines.batch import BatchPorts, BatchRunner
from punchcard.engines.controls import NO_CONTROLS, Controls
from punchcard.engines.lowered.card_rows import CardRows
from punchcard.engines.lowered.card_state import DONE, MATCHED
from punchcard.engines.lowered.compiled_model import CASES, CompiledModel, Pointers
from punchcard.engines.lowered.engine import as_packed, finder, packed_card
from punchcard.engines.lowered.pattern_table import NOTHING, pattern_table
from punchcard.errors import LoweringError
from punchcard.transformer.torch_settings import small_numbers_kept
from punchcard.transformer.weights import Model
from punchcard.workers.cores import cores

JOBS_A_THREAD = 2
"""One that is worked on, and one that waits, so that no thread does."""
SLICE_SECONDS = 0.05
"""What a job should take: long beside handing it out, short for who waits to interrupt."""
SHORTEST = 16
"""A job has at least one part in so many of the usual loops."""
FIRST_LOOPS = 1 << 10
"""Loops of a job, all cards together, of which nothing is known yet."""
MOST_CARDS = 256
"""Cards of a job: each makes enough loops at a time to be worth fetching from memory."""


class CardGroup:
    """The cards of a batch that share compiled code, by their rows in the memory.

    `numbers` says which cards of the batch they are, `left` how many loops to make. Rows in `queue` wait for a job, rows in
    `unfit` are not what the code was made for.
    """

    def __init__(self, compiled_model: CompiledModel, cards: Sequence[tuple[int, PackedCard]]) -> None:
        self.compiled_model, self.rows = compiled_model, CardRows(compiled_model, [card for _, card in cards])
        self.memory, self.numbers = self.rows.memory, [number for number, _ in cards]
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
        self.queue = deque(row for row in rows if loops and self.rows.fits(row))
        self.unfit = [row for row in rows if loops and not self.rows.fits(row)]
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
        return Job(self, rows, np.stack([rows, np.minimum(left, max(1, loops // count))], axis=1))

    def take_back(self, job: Job) -> list[int]:
        """Cards that may continue are in line again; the rows of those that stopped before their last loop."""
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


@dataclass
class Job:
    """Some cards of a group, by their rows; the table has the loops to make too, which become those made."""

    group: CardGroup
    rows: Pointers
    table: Pointers
    seconds: float = 0.0

    @property
    def made(self) -> Pointers:
        return self.table[:, 1]

    def work(self) -> None:
        started = time.perf_counter()
        self.group.call(self.table)
        self.seconds = time.perf_counter() - started


@dataclass(frozen=True)
class CardEnd:
    """Why a card makes no more loops."""

    reason: Reason
    matched: Pattern | None = None
    note: str = ""


class BatchRun:
    """The groups of a batch while they run; `ends` says, by a card's number, why it ended before its last loop.

    `stops` has the patterns of all cards.
    """

    def __init__(self, groups: Sequence[CardGroup], threads: int, loops: int, ports: BatchPorts | None,
                 stops: Stops) -> None:
        self.groups, self.threads, self.loops, self.ports, self.stops = groups, threads, loops, ports, stops
        self.ends: dict[int, CardEnd] = {}
        self._stopped = [CardEnd("stopped", pattern) for pattern in stops.ports]
        self.made = 0
        self._jobs: dict[Future[None], Job] = {}
        """Jobs that are out."""
        self._failed: list[tuple[CardGroup, int]] = []

    def run(self, controls: Controls) -> None:
        """Until no card is in line, and no job is out. At the end, also by Ctrl-C, all threads have left the cards alone."""
        with ExitStack() as locked:
            for group in sorted(self.groups, key=lambda group: id(group.compiled_model)):
                locked.enter_context(group.compiled_model.lock)
            self._run(controls)

    def _run(self, controls: Controls) -> None:
        pool = ThreadPoolExecutor(self.threads)
        try:
            for group in self.groups:
                for row in group.unfit:
                    self._decline(group, row)
            self._hand_out(pool)
            while self._jobs:
                self._take_back()
                controls.report(self.made)
                if controls.is_interrupted():
                    self._all_back()
                    waiting = [(group, row) for group in self.groups for row in group.queue]
                    for group, row in [*self._failed, *waiting]:
                        self.ends[group.numbers[row]] = CardEnd("interrupted")
                    return
                if self._failed:
                    self._all_back()
                    self._recover()
                self._hand_out(pool)
        finally:
            pool.shutdown(cancel_futures=True)

    def _hand_out(self, pool: ThreadPoolExecutor) -> None:
        """Jobs for every thread, from the longest line."""
        while (free := JOBS_A_THREAD * self.threads - len(self._jobs)) > 0:
            group = max(self.groups, key=lambda one: len(one.queue))
            if not group.queue:
                return
            job = group.job(free)
            self._jobs[pool.submit(job.work)] = job

    def _take_back(self) -> None:
        """What stopped has come to its end, is served by a port, or is broken: it waits to be recovered."""
        for future in wait(self._jobs, return_when=FIRST_COMPLETED).done:
            job = self._jobs.pop(future)
            future.result()
            self.made += int(job.made.sum())
            self._see_to(job.group, job.group.take_back(job))

    def _see_to(self, group: CardGroup, rows: Sequence[int]) -> None:
        until = self.stops.until
        ends, waiting = [CardEnd("matched", pattern) for pattern in until], list[tuple[int, int]]()
        for row, (status, pattern) in zip(rows, group.memory.reports[rows, :2].tolist(), strict=True):
            if status != MATCHED:
                self._failed.append((group, row))
            elif pattern < len(until):
                self.ends[group.numbers[row]] = ends[pattern]
            else:
                waiting.append((row, pattern - len(until)))
        if waiting:
            self._serve(group, waiting)

    def _serve(self, group: CardGroup, waiting: Sequence[tuple[int, int]]) -> None:
        """Serve cards that stopped at a port, all at once as far as that goes; those that continue are in line again."""
        for (row, first), goes_on in zip(waiting, self._serve_together(group, [row for row, _ in waiting]), strict=True):
            if goes_on is None:
                self._serve_alone(group, row, first)
            elif not goes_on:
                self.ends[group.numbers[row]] = self._stopped[first]
            elif group.left[row]:
                group.queue.append(row)

    def _serve_together(self, group: CardGroup, rows: Sequence[int]) -> Sequence[bool | None]:
        """Whether each continues; None: it has to be served alone."""
        some = [row for row in rows if group.rows.is_complete(row)]
        if self.ports is None or group.rows.stacked is None or not some:
            return [None] * len(rows)
        numbers, loops = [group.numbers[row] for row in some], (self.loops - group.left[some]).tolist()
        answers = dict(zip(some, self.ports.serve(numbers, loops, group.rows.stacked, some), strict=True))
        return [answers.get(row) for row in rows]

    def _serve_alone(self, group: CardGroup, row: int, first: int) -> None:
        """Call the ports of a card, from one on; it is in line again, unless the code does not apply to it any more."""
        assert self.ports is not None  # else nobody stops at one
        state, number = group.rows.state(row), group.numbers[row]
        own = replace(self.stops, ports=self.ports.of(number))
        stopped = own.serve(self.loops - int(group.left[row]), state.show(), first, found=True, often=False)
        state.resume(None)
        if stopped is not None:
            self.ends[number] = CardEnd("stopped", stopped)
        elif group.left[row] and not state.fits:
            self._decline(group, row)
        elif group.left[row]:
            group.queue.append(row)

    def _decline(self, group: CardGroup, row: int) -> None:
        self.ends[group.numbers[row]] = CardEnd("declined", note=group.rows.state(row).why())

    def _all_back(self) -> None:
        """No thread is in the code, and no job is out."""
        for future in [future for future in self._jobs if future.cancel()]:
            job = self._jobs.pop(future)
            job.group.queue.extendleft(reversed(job.rows.tolist()))
        while self._jobs:
            self._take_back()

    def _recover(self) -> None:
        """Find out what was in the way of the first broken card. If it can continue, the others of its group try again: what
        was in their way may be gone, and their reports are about code that may be gone.
        """
        recovered: set[int] = set()
        for group, row in self._failed:
            if id(group) in recovered or group.rows.state(row).recover():
                recovered.add(id(group))
                group.reset_pace()
                group.queue.append(row)
            else:
                self._decline(group, row)
        self._failed = []


Members: TypeAlias = list[tuple[int, PackedCard]]
"""Cards and their numbers in the batch."""


def constant_fields(layout: Layout, card: Card) -> tuple[object, ...]:
    """The number format of a packed card, and which arrays it has for the fields that no loop changes."""
    if not isinstance(card, PackedCard) or card.layout is not layout:
        return ()
    return card.dtype, *(id(card.fields[block.name]) for block in layout.blocks if block.holds and not block.changes)


class CompiledBatchRunner(BatchRunner):
    """What the batch runners of generated code share: cards by their code, and cards for which there is none."""

    def group(self, model: Model, layout: Layout | None, cards: Sequence[Card], cache: EngineCache | None,
              ) -> list[tuple[CompiledModel, Members]]:
        """The cards of each compiled model. Those for which there is no code are `refused`: by number, and why."""
        if layout is None:
            raise LoweringError("it needs the card's layout")
        find, dtype = finder(cache or EngineCache(), model, layout), name_of(model.dtype)
        self.layout, self.count = layout, len(cards)
        self.refused: dict[int, tuple[Card, str]] = {}
        found: dict[int, tuple[CompiledModel, Members]] = {}
        known: dict[tuple[object, ...], CompiledModel] = {}
        """By fields that no loop changes, which cards may share, if the code depends on nothing else."""
        for number, card in enumerate(cards):
            constant = constant_fields(layout, card)
            if isinstance(card, PackedCard) and constant in known:
                found[id(known[constant])][1].append((number, card))
                continue
            try:
                packed = packed_card(dtype, layout, card)
                compiled_model = find(packed)
            except LoweringError as why:
                self.refused[number] = card, str(why)
                continue
            found.setdefault(id(compiled_model), (compiled_model, []))[1].append((number, packed))
            if constant and not compiled_model.requirements.breakable:
                known[constant] = compiled_model
        if not found:
            raise LoweringError(self.refused[0][1])
        return list(found.values())

    def take(self, number: int, card: Card) -> None:
        if number in self.refused:
            self.refused[number] = card, self.refused[number][1]
        else:
            self.take_packed(number, as_packed(self.layout, card))

    @abstractmethod
    def take_packed(self, number: int, card: Card) -> None:
        """Continue from another card, packed if that can be, in the place of one that is not refused."""

    def stops(self, card: Card, controls: Controls, ports: BatchPorts | None) -> Stops:
        """The patterns of all cards, checked on one of them."""
        return Stops.of(card.shape, self.layout, controls.of_card(None if ports is None else ports.of(0), 0))

    def refused_run(self, number: int) -> Run:
        """The run of a card for which there is no code."""
        card, why = self.refused[number]
        return Run(card, 0, "declined", self.engine, notes=(why,), made={self.engine: 0})


class LoweredBatchRunner(CompiledBatchRunner):
    """See `prepare_batch`."""

    def __init__(self, model: Model, layout: Layout | None, cards: Sequence[Card], *, loops: int | None = None,
                 cache: EngineCache | None = None, threads: int | None = None) -> None:
        self.engine, self.threads = "lowered", threads or cores()
        started = time.perf_counter()
        self.groups = [CardGroup(*group) for group in self.group(model, layout, cards, cache)]
        self.places = {number: (group, row) for group in self.groups for row, number in enumerate(group.numbers)}
        self.compile_seconds = time.perf_counter() - started

    def take_packed(self, number: int, card: Card) -> None:
        group, row = self.places[number]
        group.rows.state(row).take(card)

    @small_numbers_kept()
    def run(
        self, loops: int, controls: Controls = NO_CONTROLS, *, ports: BatchPorts | None = None,
        among: Sequence[int] | None = None, last: bool = False,
    ) -> list[Run]:
        numbers = range(self.count) if among is None else among
        stops = self.stops(self.groups[0].rows.state(0).card, controls, ports)
        before = [group.compiled_model.compile_seconds for group in self.groups]
        for group in self.groups:
            rows = [row for number in numbers if number in self.places for of, row in [self.places[number]] if of is group]
            group.begin(rows, loops, (*stops.until, *stops.ports))
        batch_run = BatchRun(self.groups, self.threads, loops, ports, stops)
        batch_run.run(controls)
        more = sum(group.compiled_model.compile_seconds - was for group, was in zip(self.groups, before, strict=True))
        self.compile_seconds += more
        runs = {number: self.refused_run(number) for number in numbers if number in self.refused}
        for group in self.groups:
            runs |= self._ended(group, [self.places[number][1] for number in numbers if number not in self.refused
                                        and self.places[number][0] is group], loops, batch_run.ends, more, copies=not last)
        return [runs[number] for number in numbers]

    def _ended(self, group: CardGroup, rows: Sequence[int], loops: int, ends: Mapping[int, CardEnd],
               compiled: float, *, copies: bool) -> dict[int, Run]:
        """The runs of the cards in some rows, by their numbers."""
        runs, last, left = dict[int, Run](), CardEnd("loops"), group.left.tolist()
        for row, found in zip(rows, group.rows.cards(rows, copies=copies), strict=True):
            number, made = group.numbers[row], loops - left[row]
            card: Card = group.rows.state(row).alone() if found is None else found
            end = ends.get(number, last)
            runs[number] = Run(card, made, end.reason, self.engine, end.matched, (end.note,) if end.note else (), compiled,
                               {self.engine: made})
        return runs
