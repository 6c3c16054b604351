"""A batch of machines on a GPU: their cards go there, each runs until it stops by itself, and they come back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from punchcard.card.layout import Pattern
from punchcard.card.packed import PackedCard
from punchcard.engines.lowered.computer import Computer
from punchcard.engines.lowered.gpu.device import GROUP_SIZES, WARP, Abilities, Device
from punchcard.engines.lowered.gpu.kernel import FAILED, GOES_ON, MATCHED, Shape, emit_machine
from punchcard.engines.lowered.gpu.patterns import seen_by
from punchcard.engines.lowered.gpu.strips import strips_of
from punchcard.engines.lowered.live import LiveCard
from punchcard.errors import LoweringError

FIRST_PIECE = 1 << 10
LARGEST_PIECE = 1 << 30
LAUNCH_SECONDS = 0.1
"""Between two questions whether the run is interrupted."""
MOST_MENDED = 16
"""Loops that the CPU makes for a machine, so that the code may take less for granted; then those that fail are declined."""
GROUP_BYTES = 1 << 31


@dataclass(frozen=True)
class Ends:
    """How a run of a batch ended, machine by machine: loops made, and the number of the pattern that stands, or -1.

    A machine that was declined cannot make its next loop on the GPU. `seconds` is the time of the kernels alone.
    """

    loops: npt.NDArray[np.int64]
    matched: npt.NDArray[np.int64]
    declined: npt.NDArray[np.bool_]
    seconds: float


class GpuBatch:
    """Cards of one computer; all of them must keep its facts (`Computer.fits`). A second run goes on where one ended."""

    def __init__(self, computer: Computer, cards: Sequence[PackedCard], device: Device, *, shape: Shape | None = None,
                 granule: int | None = None) -> None:
        self.computer, self.device, self._cards = computer, device, list(cards)
        if not self._cards:
            raise LoweringError("the batch is empty")
        self._plan = computer.only_case
        if self._plan.settles:
            raise LoweringError("columns that were stored to change once more in the next loop")
        self._wanted, self._granule = shape, granule
        self.fields: dict[str, npt.NDArray[Any]] = {}
        """Of all machines the arrays that a loop needs: machines x columns. Busy columns are what they were."""
        self._states = _States(computer)
        self.states = self._states.begin(self._cards)
        self.prepare(())

    def prepare(self, until: Sequence[Pattern]) -> None:
        """Get the code that stops at these patterns."""
        computer, patterns = self.computer, seen_by(self.computer, until)
        looked_at = [seen.field for pattern in patterns for seen in pattern if seen.field is not None]
        busy = [(group.start, group.stop) for group in computer.columns.groups]
        self.strips = strips_of(self._plan, computer.places, busy, looked_at, self._granule)
        self.shape = self._wanted or _shape(self.strips.size, self.device.abilities)
        for strip in self.strips.all:
            if strip.block not in self.fields:
                self.fields[strip.block] = np.stack([card.fields[strip.block] for card in self._cards])

        def build() -> tuple[ir.Module, ir.Function]:
            module = ir.Module("machines")
            kind = computer.kind_of_code(self._plan)
            return module, emit_machine(module, self._plan, computer.real, computer.places, kind, self.strips, self.shape,
                                        patterns)

        names = [*computer.names, repr((self.strips, self.shape, patterns)).encode()]
        self._code, self._until = self.device.compile(names, build), tuple(until)

    def run(self, loops: int, until: Sequence[Pattern] = (), interrupted: Callable[[], bool] | None = None) -> Ends:
        """Make up to `loops` loops more on every machine, each until a pattern stands on its card."""
        if tuple(until) != self._until:
            self.prepare(until)
        made, status = np.zeros(len(self._cards), dtype=np.int64), np.full(len(self._cards), GOES_ON, dtype=np.int32)
        seconds, mended = 0.0, 0
        while True:
            seconds += self._advance(loops, made, status, interrupted)
            failed = np.flatnonzero(status == FAILED)
            if not len(failed) or mended == MOST_MENDED:
                break
            mended += 1
            if not self._mend(int(failed[0]), made):
                break
            status[failed] = GOES_ON
        return Ends(made, np.where(status >= MATCHED, status - MATCHED, -1).astype(np.int64), status == FAILED, seconds)

    def card(self, number: int) -> PackedCard:
        """The card of a machine as it is now."""
        card = self._cards[number].copy()
        for name, values in self.fields.items():
            card.fields[name][:] = values[number]
        self._states.finish(self.states[:, number], card)
        return card

    def take(self, number: int, card: PackedCard) -> None:
        """Go on from another card in the place of one."""
        for name, values in self.fields.items():
            values[number] = card.fields[name]
        self._cards[number] = card
        self.states[:, number] = self._states.begin([card])[:, 0]

    def _mend(self, number: int, made: npt.NDArray[np.int64]) -> bool:
        """Have the CPU make the loop that failed: it finds out what the code may not take for granted."""
        live = LiveCard(self.computer, self.card(number))
        if live.advance(1)[0] == 0:
            return False
        self.take(number, live.show().copy())
        made[number] += 1
        self.prepare(self._until)
        return True

    def _advance(self, loops: int, made: npt.NDArray[np.int64], status: npt.NDArray[np.int32],
                 interrupted: Callable[[], bool] | None) -> float:
        """Launch until every machine has stopped; the seconds of the kernels."""
        device, threads, machines = self.device, self.shape.threads, len(self._cards)
        groups = -(-machines // threads)
        data = np.zeros((groups, self.strips.size // self.strips.granule, threads, self.strips.granule), dtype=np.uint8)
        for strip in self.strips.all:
            self.strips.put(data, strip, self.fields[strip.block])
        tables, held = self._tables()
        arrays = [data, self.states, tables, made, status]
        rooms: list[int] = []
        seconds, piece = 0.0, FIRST_PIECE
        shared = self.strips.size * threads if self.shape.shared else 0
        try:
            for array in (np.zeros(groups, dtype=np.int32), *arrays):
                rooms.append(device.allocate(array.nbytes))
                device.put(rooms[-1], array)
            while len(live := _live(made, status, loops, threads)):
                device.put(rooms[0], live)
                took = device.launch(self._code, len(live), threads, shared, rooms, loops, piece, machines)
                seconds += took
                piece = int(min(max(piece * min(16.0, LAUNCH_SECONDS / max(took, 1e-6)), 1), LARGEST_PIECE))
                device.get(made, rooms[4])
                device.get(status, rooms[5])
                if interrupted is not None and interrupted():
                    break
            device.get(data, rooms[1])
            device.get(self.states, rooms[2])
        finally:
            for room in (*rooms, *held):
                device.free(room)
        for strip in self.strips.all:
            if strip.at < self.strips.kept:
                self.strips.get(data, strip, self.fields[strip.block])
        return seconds

    def _tables(self) -> tuple[npt.NDArray[np.int64], list[int]]:
        """The tables that the code reads, on the device: their addresses, which are also what to give back."""
        computer, addresses, held = self.computer, [], []
        for table, direct in zip(self._plan.tables, computer.kind_of_code(self._plan).direct, strict=True):
            if direct is None:
                computer.entry(table, 0)
                held.append(self.device.allocate(computer.filled[table].nbytes))
                self.device.put(held[-1], computer.filled[table])
            addresses.append(0 if direct is not None else held[-1])
        return np.array(addresses or [0], dtype=np.int64), held


def _live(made: npt.NDArray[np.int64], status: npt.NDArray[np.int32], loops: int, threads: int) -> npt.NDArray[np.int32]:
    """The groups in which a machine goes on."""
    going = np.flatnonzero((status == GOES_ON) & (made < loops))
    return np.unique(going // threads).astype(np.int32)


def _shape(size: int, abilities: Abilities) -> Shape:
    """Shared memory where it has room for a warp; groups of a size with which it holds the most machines."""
    threads = max(GROUP_SIZES, key=lambda threads: abilities.at_once(threads, size))
    if abilities.at_once(threads, size):
        return Shape(threads, True)
    if size * WARP >= GROUP_BYTES:
        raise LoweringError(f"the code needs {size} bytes for each machine: too many for a GPU")
    return Shape(WARP, False)


class _States:
    """The states of a machine, 64 bits for each: those that are words, then those that are numbers, entry by entry."""

    def __init__(self, computer: Computer) -> None:
        places, number = computer.places, np.dtype(computer.number)
        self._computer, self._buffer = computer, np.zeros(places.size, dtype=np.uint8)
        self._words = [self._buffer[at : at + 8].view(np.uint64) for at in places.words.values()]
        self._words += [self._buffer[at : at + number.itemsize].view(f"u{number.itemsize}")
                        for slot, first in places.slots.items()
                        for at in range(first, first + slot.width * number.itemsize, number.itemsize)]

    def begin(self, cards: Sequence[PackedCard]) -> npt.NDArray[np.uint64]:
        """From cards: states x machines."""
        found = np.zeros((len(self._words), len(cards)), dtype=np.uint64)
        for i, card in enumerate(cards):
            self._computer.begin(self._buffer, card)
            found[:, i] = [word[0] for word in self._words]
        return found

    def finish(self, states: npt.NDArray[np.uint64], card: PackedCard) -> None:
        """To a card."""
        for word, state in zip(self._words, states, strict=True):
            word[0] = state
        self._computer.finish(self._buffer, card)
