"""A batch of machines on a GPU: their cards go there, each runs until it stops by itself, and they come back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from punchcard.card.formats import AnyArray
from punchcard.card.layout import Pattern
from punchcard.card.packed import PackedCard
from punchcard.engines.lowered.card_state import CardState
from punchcard.engines.lowered.compiled_model import CompiledModel
from punchcard.engines.lowered.gpu.device import (
    GROUP_SIZES,
    WARP,
    Autotuner,
    Device,
    DeviceArrays,
    DeviceLimits,
    KernelVariant,
)
from punchcard.engines.lowered.gpu.kernel import FAILED, GOES_ON, MATCHED, LaunchShape, emit_machine
from punchcard.engines.lowered.gpu.memory_layout import memory_layout
from punchcard.engines.lowered.pattern_table import PatternTerm, pattern_terms
from punchcard.errors import LoweringError

RESTS = -1
"""The status of a machine that takes no part in a run."""
MOST_RECOVERED = 16
"""Loops that the CPU makes in a run, so that the code assumes less; then machines that fail are declined."""
GROUP_BYTES = 1 << 31
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
    """Cards of one compiled model; each must keep its guards (`CompiledModel.fits`). A second run goes on where one ended.

    `shape`: default chosen by the sizes.
    """

    def __init__(self, compiled_model: CompiledModel, cards: Sequence[PackedCard], device: Device,
                 shape: LaunchShape | None = None) -> None:
        self.compiled_model, self.device, self._cards, self._wanted = compiled_model, device, list(cards), shape
        if not self._cards:
            raise LoweringError("the batch is empty")
        self._plan = compiled_model.only_case
        if self._plan.settles:
            raise LoweringError("columns that were stored to change once more in the next loop, which no GPU code does yet")
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
        self.strips = memory_layout(self._plan, compiled_model.places, active, looked_at)
        self.shape = self._wanted or _shape(self.strips.size, self.device.limits)
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
            module, compiled_model = ir.Module("machines"), self.compiled_model
            kind = compiled_model.kind_of_code(self._plan)
            return module, emit_machine(
                module, self._plan, compiled_model.real, compiled_model.places, kind, self.strips, shape, patterns)

        return self.device.compile([*self.compiled_model.names, repr((self.strips, shape, patterns)).encode()], build)

    def run(self, loops: int, until: Sequence[Pattern] = (), *, progress: BatchProgress | None = None,
            interrupted: Callable[[], bool] | None = None) -> BatchProgress:
        """Make up to `loops` loops on every machine, each until a pattern is on its card. `progress`: a run to continue."""
        if tuple(until) != self._until:
            self.prepare(until)
        progress = progress or BatchProgress.begin(len(self._cards))
        while self._advance(loops, progress, interrupted):
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
        """Go on from another card in the place of one; it must keep the compiled model's guards."""
        self._bring_back()
        for name, values in self._fields.items():
            values[number] = card.fields[name]
        self._cards[number] = card
        self._state_words[:, number] = self._states.begin([card])[:, 0]
        self._arrays = None

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

    def _advance(self, loops: int, progress: BatchProgress, interrupted: Callable[[], bool] | None) -> bool:
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
            if interrupted is not None and interrupted():
                return False
        return True

    def _tables(self) -> list[AnyArray]:
        """The tables of the code; one that it does without is empty."""
        compiled_model, found = self.compiled_model, []
        for table, direct in zip(self._plan.tables, compiled_model.kind_of_code(self._plan).direct, strict=True):
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


def _shape(size: int, limits: DeviceLimits) -> LaunchShape:
    """Shared memory where it has room for a warp; groups of a size with which it holds the most machines."""
    threads = max(GROUP_SIZES, key=lambda threads: limits.at_once(threads, size))
    if limits.at_once(threads, size):
        return LaunchShape(threads, shared=True)
    if size * WARP >= GROUP_BYTES:
        raise LoweringError(f"the code needs {size} bytes for each machine: too many for a GPU")
    return LaunchShape(WARP, shared=False)


StateArray = npt.NDArray[np.uint64]


class StateWords:
    """Those that are words, then those that are numbers, entry by entry."""

    def __init__(self, compiled_model: CompiledModel) -> None:
        places, number = compiled_model.places, np.dtype(compiled_model.number)
        self._compiled_model, self._buffer = compiled_model, np.zeros(places.size, dtype=np.uint8)
        self._words = [self._buffer[at : at + 8].view(np.uint64) for at in places.words.values()]
        self._words += [self._buffer[at : at + number.itemsize].view(f"u{number.itemsize}")
                        for slot, first in places.slots.items()
                        for at in range(first, first + slot.width * number.itemsize, number.itemsize)]

    def begin(self, cards: Sequence[PackedCard]) -> StateArray:
        """From cards: states x machines."""
        found = np.zeros((len(self._words), len(cards)), dtype=np.uint64)
        for i, card in enumerate(cards):
            self._compiled_model.begin(self._buffer, card)
            found[:, i] = [word[0] for word in self._words]
        return found

    def finish(self, states: StateArray, card: PackedCard) -> None:
        """To a card."""
        for word, state in zip(self._words, states, strict=True):
            word[0] = state
        self._compiled_model.finish(self._buffer, card)
