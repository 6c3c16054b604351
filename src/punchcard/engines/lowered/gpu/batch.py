"""A batch of machines on a GPU: their cards go there, each runs until it stops by itself, and they come back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from punchcard.card.formats import AnyArray
from punchcard.card.layout import Card, Layout, Pattern
from punchcard.card.packed import PackedCard
from punchcard.engines.base import EngineCache, Reason, Run, Stops
from punchcard.engines.batch import BatchPorts
from punchcard.engines.controls import NO_CONTROLS, Controls
from punchcard.engines.lowered.batch_runner import CompiledBatchRunner
from punchcard.engines.lowered.card_state import CardState
from punchcard.engines.lowered.compiled_model import CompiledModel
from punchcard.engines.lowered.gpu.cuda import Cuda
from punchcard.engines.lowered.gpu.device import Autotuner, Device, DeviceArrays, KernelVariant, LaunchShape
from punchcard.engines.lowered.gpu.kernel import FAILED, GOES_ON, MATCHED, UNKNOWN_CASE, emit_machine
from punchcard.engines.lowered.gpu.memory_layout import memory_layout
from punchcard.engines.lowered.pattern_table import PatternTerm, pattern_table, pattern_terms
from punchcard.errors import LoweringError
from punchcard.transformer.torch_settings import small_numbers_kept
from punchcard.transformer.weights import Model

RESTS, STOPPED = -1, -2
"""The status of a machine that takes no part in a run, and of one whose port stopped the run."""
DECLINED = "the checks of a loop fail on the GPU"
UNDECLARED = "the card holds something that its layout does not declare, or what never changes had changed"
MOST_RECOVERED = 16
"""Loops that the CPU makes in a run, so that the code assumes less; then machines that fail are declined."""
MOST_SCOUTS, SCOUTED_LOOPS = 8, 1 << 16
"""How many machines are followed on the CPU to find cases, and for how many loops."""
Numbers = npt.NDArray[np.int64]


@dataclass
class BatchProgress:
    """How far a run is, machine by machine: loops made, and the status that the kernel gives.

    `seconds` is the time of the kernels alone. The CPU made `recovered` of the loops.
    """

    loops: Numbers
    status: npt.NDArray[np.int32]
    seconds: float = 0.0
    recovered: int = 0

    @classmethod
    def begin(cls, machines: int, among: Sequence[int] | None = None) -> BatchProgress:
        status = np.full(machines, GOES_ON if among is None else RESTS, dtype=np.int32)
        if among is not None:
            status[list(among)] = GOES_ON
        return cls(np.zeros(machines, dtype=np.int64), status)

    @property
    def matched(self) -> Numbers:
        """The number of the pattern that is on a card, or -1."""
        return np.where(self.status >= MATCHED, self.status.astype(np.int64) - MATCHED, -1)

    @property
    def declined(self) -> npt.NDArray[np.bool_]:
        """Which machines cannot make their next loop here."""
        return np.equal(self.status, FAILED)


class GpuBatch:
    """Cards of one compiled model; each must keep its guards (`CompiledModel.fits`). A second run continues where one ended.

    `shape`: default chosen by the sizes.
    """

    def __init__(self, compiled_model: CompiledModel, cards: Sequence[PackedCard], device: Device,
                 shape: LaunchShape | None = None) -> None:
        self.compiled_model, self.device, self._cards, self._wanted = compiled_model, device, list(cards), shape
        if not self._cards:
            raise LoweringError("the batch is empty")
        if compiled_model.passive.settles:
            raise LoweringError("columns that were stored to change once more in the next loop, which no GPU code does yet")
        if compiled_model.follows:
            raise LoweringError("numbers follow from the rows that decide what a loop does, which no GPU code does yet")
        self._parts = compiled_model.parts()
        self._states = StateWords(compiled_model)
        self._fields: dict[str, AnyArray] = {}
        self._state_words = self._states.begin(self._cards)
        self._arrays: DeviceArrays | None = None
        self._here = True
        """Whether what is here is as new as what is on the device."""
        self._until: tuple[Pattern, ...] | None = None

    def prepare(self, until: Sequence[Pattern]) -> None:
        """Get ready to stop at these patterns."""
        compiled_model, patterns = self.compiled_model, [pattern_terms(self.compiled_model, one) for one in until]
        looked_at = [seen.field for pattern in patterns for seen in pattern if seen.field is not None]
        active = [(group.start, group.stop) for group in compiled_model.columns.groups]
        self._bring_back()
        self._arrays, self._until = None, tuple(until)
        self._scout([0])
        self.strips = memory_layout(self._parts.all, compiled_model.places, active, looked_at)
        self.shape = self._wanted or self.device.limits.shape(self.strips.size)
        for strip in self.strips.all:
            if strip.block not in self._fields:
                self._fields[strip.block] = np.stack([card.fields[strip.block] for card in self._cards])
        shapes = [self.shape]
        if self.shape.shared and self._wanted is None:
            shapes.append(LaunchShape(self.shape.threads, shared=False))
        group = self.strips.size * self.shape.threads
        self._autotuner = Autotuner([KernelVariant(partial(self._compiled, shape, patterns), group * shape.shared)
                                     for shape in shapes])

    def _compiled(self, shape: LaunchShape, patterns: Sequence[Sequence[PatternTerm]]) -> object:
        def build() -> tuple[ir.Module, ir.Function]:
            module, kind = ir.Module("machines"), self.compiled_model.kind_of_code(self._parts)
            return module, emit_machine(module, self._parts, kind, self.strips, shape, patterns)

        made_for = repr((sorted(self._parts.cases), self.strips, shape, patterns)).encode()
        return self.device.compile([*self.compiled_model.names, made_for], build)

    def run(self, loops: int, controls: Controls = NO_CONTROLS, *, begin: BatchProgress | None = None) -> BatchProgress:
        """Make up to `loops` loops on every machine, each until a pattern of `controls.until` is on its card.

        `begin`: the run to continue, which is changed. The controls are asked between two launches.
        """
        if controls.patterns != self._until:
            self.prepare(controls.patterns)
        progress = begin or BatchProgress.begin(len(self._cards))
        while self._advance(loops, progress, controls):
            if self._learn(progress):
                continue
            failed = np.flatnonzero(progress.declined)
            if not len(failed) or progress.recovered == MOST_RECOVERED or not self._recover(int(failed[0]), progress):
                break
            progress.status[failed] = GOES_ON
        return progress

    def card(self, number: int) -> PackedCard:
        """The card of a machine as it is now."""
        self._bring_back()
        card = self._cards[number].copy()
        for name, values in self._fields.items():
            card.fields[name][:] = values[number]
        self._states.finish(self._state_words[:, number], card)
        return card

    def take(self, number: int, card: PackedCard) -> None:
        """Continue from another card in the place of one; it must keep the compiled model's guards."""
        self._bring_back()
        for name, values in self._fields.items():
            values[number] = card.fields[name]
        self._cards[number] = card
        self._state_words[:, number] = self._states.begin([card])[:, 0]
        self._arrays = None

    def _learn(self, progress: BatchProgress) -> bool:
        """Make code for the cases that machines wait for; whether there are any. A case without code is declined."""
        waiting = np.flatnonzero(progress.status == UNKNOWN_CASE)
        if not len(waiting):
            return False
        self._bring_back()
        keys = self._state_words[-1, waiting]
        _, first = np.unique(keys, return_index=True)
        self._scout(waiting[first[:MOST_SCOUTS]].tolist())
        self._plan_cases(keys.tolist())
        has_code = np.isin(keys, np.array(list(self._parts.cases), dtype=np.uint64))
        progress.status[waiting] = np.where(has_code, GOES_ON, FAILED)
        self.prepare(self._until or ())
        return True

    def _scout(self, numbers: Sequence[int]) -> None:
        """Find cases that machines are about to meet: the CPU makes some loops on copies of their cards.

        A kernel that lacks a case stops, and to compile one takes seconds, so that few should lack one.
        """
        if self._parts.choose is None:
            return
        for number in numbers:
            scout = CardState(self.compiled_model, self.card(number))
            scout.patterns = pattern_table(self.compiled_model, self._until or ())
            scout.advance(SCOUTED_LOOPS)
        self._plan_cases(self.compiled_model.known)

    def _plan_cases(self, keys: Iterable[int]) -> None:
        """The plans of these cases, where they can be lowered."""
        parts, model = self._parts, self.compiled_model
        read = parts.read()
        for key in sorted({int(key) for key in keys} - parts.cases.keys() - model.refused.keys()):
            try:
                parts.cases[key] = model.plan_case(key, {}, read, parts.tables)
            except LoweringError as why:
                model.refused[key] = str(why)

    def _recover(self, number: int, progress: BatchProgress) -> bool:
        """Let the CPU make the loop that failed: it finds the assumption that was false."""
        live = CardState(self.compiled_model, self.card(number))
        if live.advance(1)[0] == 0:
            return False
        self.take(number, live.show().copy())
        self.prepare(self._until or ())
        progress.loops[number] += 1
        progress.recovered += 1
        return True

    def _advance(self, loops: int, progress: BatchProgress, controls: Controls) -> bool:
        """Launch until every machine has stopped; False if interrupted."""
        made, status, threads = progress.loops, progress.status, self.shape.threads
        data, states = self._bring()
        run = DeviceArrays(self.device)
        tables = run.hold(np.array([run.hold(table) for table in self._tables()] or [0], dtype=np.int64))
        loops_at, status_at = run.hold(made), run.hold(status)
        groups = run.hold(np.zeros(-(-len(made) // threads), dtype=np.int32))
        while len(live := np.unique(np.flatnonzero((status == GOES_ON) & (made < loops)) // threads)):
            self._here = False
            self.device.put(groups, live.astype(np.int32))
            code, piece = self._autotuner.next()
            took = self.device.launch(code.compiled, len(live), threads, code.shared,
                                      (groups, data, states, tables, loops_at, status_at), loops, piece, len(made))
            before = int(made.sum())
            self.device.get(made, loops_at)
            self.device.get(status, status_at)
            self._autotuner.took(took, int(made.sum()) - before)
            progress.seconds += took
            controls.report(int(made.sum()))
            if controls.is_interrupted():
                return False
        return True

    def _tables(self) -> list[AnyArray]:
        """The tables of the code; one that it does without is empty."""
        compiled_model, found = self.compiled_model, []
        for table, direct in zip(self._parts.tables, compiled_model.kind_of_code(self._parts).direct, strict=True):
            if direct is None:
                compiled_model.entry(table, 0)
            found.append(compiled_model.filled[table] if direct is None else np.zeros(0, dtype=np.int32))
        return found

    def _bring(self) -> tuple[int, int]:
        """What is here to the device, unless it is there; the addresses."""
        if self._arrays is None:
            data = self.strips.empty(-(-len(self._cards) // self.shape.threads), self.shape.threads)
            for strip in self.strips.all:
                self.strips.put(data, strip, self._fields[strip.block])
            self._arrays = DeviceArrays(self.device)
            self._addresses = self._arrays.hold(data), self._arrays.hold(self._state_words)
        return self._addresses

    def _bring_back(self) -> None:
        """What is on the device to here, unless it is here."""
        if self._here:
            return
        data = self.strips.empty(-(-len(self._cards) // self.shape.threads), self.shape.threads)
        self.device.get(data, self._addresses[0])
        self.device.get(self._state_words, self._addresses[1])
        for strip in self.strips.all:
            if strip.at < self.strips.kept:
                self.strips.get(data, strip, self._fields[strip.block])
        self._here = True


class StateWords:
    """The states of machines between launches, 64 bits for each: those that are words, then numbers, entry by entry.

    Behind them is the case that a machine waits for.
    """

    def __init__(self, compiled_model: CompiledModel) -> None:
        places, number = compiled_model.places, np.dtype(compiled_model.number)
        self._compiled_model, self._buffer = compiled_model, np.zeros(places.size, dtype=np.uint8)
        self._words = [compiled_model.state_word(self._buffer, word) for word in places.words]
        self._words += [self._buffer[at : at + number.itemsize].view(f"u{number.itemsize}")
                        for slot, first in places.slots.items()
                        for at in range(first, first + slot.width * number.itemsize, number.itemsize)]

    def begin(self, cards: Sequence[PackedCard]) -> AnyArray:
        """From cards: states x machines."""
        found = np.zeros((len(self._words) + 1, len(cards)), dtype=np.uint64)
        for i, card in enumerate(cards):
            self._compiled_model.begin(self._buffer, card, everything=True)
            found[:-1, i] = [word[0] for word in self._words]
        return found

    def finish(self, states: AnyArray, card: PackedCard) -> None:
        """To a card."""
        for word, state in zip(self._words, states[:-1], strict=True):
            word[0] = state
        self._compiled_model.finish(self._buffer, card, everything=True)


class GpuBatchRunner(CompiledBatchRunner):
    """See `prepare_batch`. Ports are served by the CPU, for which all cards come back: better many at a time than often."""

    def __init__(self, model: Model, layout: Layout | None, cards: Sequence[Card], *, loops: int | None = None,
                 cache: EngineCache | None = None, threads: int | None = None, device: Device | None = None) -> None:
        started = time.perf_counter()
        self.engine, self.device = "gpu", device or Cuda()
        found = self.group(model, layout, [_on_cpu(card) for card in cards], cache)
        self.batches = [(GpuBatch(compiled_model, [card for _, card in members], self.device),
                         [number for number, _ in members]) for compiled_model, members in found]
        self.places = {number: (which, row) for which, (_, numbers) in enumerate(self.batches)
                       for row, number in enumerate(numbers)}
        self.compile_seconds = time.perf_counter() - started

    def take_packed(self, number: int, card: Card) -> None:
        which, row = self.places[number]
        batch = self.batches[which][0]
        if isinstance(card, PackedCard) and batch.compiled_model.fits(self.layout, card):
            batch.take(row, card)
        else:
            self.refused[number] = card, UNDECLARED

    @small_numbers_kept()
    def run(
        self, loops: int, controls: Controls = NO_CONTROLS, *, ports: BatchPorts | None = None,
        among: Sequence[int] | None = None, last: bool = False,
    ) -> list[Run]:
        numbers = range(self.count) if among is None else among
        stops = self.stops(self.batches[0][0].card(0), controls, ports)
        wanted, far, before = set(numbers) - self.refused.keys(), [], 0
        for batch, members in self.batches:
            rows = [row for row, number in enumerate(members) if number in wanted]
            now = BatchProgress.begin(len(members), rows)
            self._run(batch, members, now, loops, stops, ports, controls.of_card(None, before))
            before += int(now.loops.sum())
            if now.recovered:
                self.notes = tuple(dict.fromkeys((*self.notes, f"gpu: the CPU made {now.recovered} loops, after which the "
                                                              "code assumed less")))
            far.append(now)
        return [self._ended(number, far, loops, stops) for number in numbers]

    def _run(self, batch: GpuBatch, members: Sequence[int], now: BatchProgress, loops: int, stops: Stops,
             ports: BatchPorts | None, controls: Controls) -> None:
        """One batch to its end; machines that wait at a port are served together."""
        controls = replace(controls, until=(*stops.until, *stops.ports))
        while True:
            batch.run(loops, controls, begin=now)
            waiting = np.flatnonzero(now.status >= MATCHED + len(stops.until)).tolist()
            for row in waiting:
                card = batch.card(row)
                assert ports is not None  # nobody waits without ports
                own = replace(stops, ports=ports.of(members[row]))
                now.status[row] = GOES_ON if own.serve(int(now.loops[row]), card) is None else STOPPED
                batch.take(row, card)
            if not waiting or controls.is_interrupted():
                return

    def _ended(self, number: int, far: Sequence[BatchProgress], loops: int, stops: Stops) -> Run:
        """The run of a card."""
        if number in self.refused:
            return self.refused_run(number)
        which, row = self.places[number]
        made, status = int(far[which].loops[row]), int(far[which].status[row])
        reason: Reason = "loops" if made >= loops else "interrupted"
        if status >= MATCHED:
            reason = "matched"
        elif status in (FAILED, STOPPED):
            reason = "declined" if status == FAILED else "stopped"
        matched = stops.until[status - MATCHED] if status >= MATCHED else None
        return Run(self.batches[which][0].card(row), made, reason, self.engine, matched,
                   (DECLINED,) if status == FAILED else (), made={self.engine: made})


def _on_cpu(card: Card) -> Card:
    """A card that lies on a GPU as a tensor is packed on the CPU."""
    found: Card = card if isinstance(card, PackedCard) or not hasattr(card, "cpu") else card.cpu()
    return found
