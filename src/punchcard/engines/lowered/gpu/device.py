"""What a batch needs of a GPU. `cuda.Cuda` is one; the tests have another, which runs the same code on the processor."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from llvmlite import ir

from punchcard.card.formats import AnyArray
from punchcard.errors import LoweringError

RESERVED = 1 << 10
"""Bytes of shared memory that the system takes of every group."""
MOST_GROUPS, MOST_THREADS = 32, 2048
"""Groups and threads that one processor runs at a time."""
WARP = 32
GROUP_SIZES, GROUP_BYTES = (256, 128, 64, 32), 1 << 31


@dataclass(frozen=True)
class LaunchShape:
    """How a kernel is run: threads of a group, and whether their arrays are brought into shared memory."""

    threads: int
    shared: bool


@dataclass(frozen=True)
class DeviceLimits:
    """What a device is called, and how much it has: multiprocessors, and bytes of shared memory."""

    name: str
    processors: int
    shared_of_processor: int
    shared_of_group: int

    def at_once(self, threads: int, size: int) -> int:
        """Machines that one processor runs at a time in groups of so many, with so many bytes of shared memory for each."""
        if threads * size > self.shared_of_group:
            return 0
        return threads * min(self.shared_of_processor // (threads * size + RESERVED), MOST_GROUPS, MOST_THREADS // threads)

    def shape(self, size: int) -> LaunchShape:
        """Shared memory where it has room for a warp; groups of a size with which it holds the most machines."""
        threads = max(GROUP_SIZES, key=lambda threads: self.at_once(threads, size))
        if self.at_once(threads, size):
            return LaunchShape(threads, shared=True)
        if size * WARP >= GROUP_BYTES:
            raise LoweringError(f"the code needs {size} bytes for each machine: too many for a GPU")
        return LaunchShape(WARP, shared=False)


class Device(Protocol):
    """Memory, code and launches."""

    limits: DeviceLimits

    def compile(self, names: Sequence[bytes], build: Callable[[], tuple[ir.Module, ir.Function]]) -> object:
        """The code of a machine, for `launch`; `names` say what it depends on, so that it can be kept."""

    def allocate(self, size: int) -> int:
        """The address of so many bytes."""

    def free(self, address: int) -> None:
        """Give them back."""

    def put(self, address: int, values: AnyArray) -> None:
        """Copy an array to the device."""

    def get(self, values: AnyArray, address: int) -> None:
        """Copy from the device into an array."""

    def launch(self, code: object, groups: int, threads: int, shared: int, addresses: Sequence[int], loops: int, piece: int,
               machines: int) -> float:
        """Run groups of threads to their end; the seconds that took. `addresses` are the first arguments of the kernel."""


class DeviceArrays:
    """Arrays on a device, freed when this object is."""

    def __init__(self, device: Device) -> None:
        self._device, self._addresses = device, list[int]()
        weakref.finalize(self, _free, device, self._addresses).atexit = False

    def hold(self, values: AnyArray) -> int:
        """The address of a copy."""
        self._addresses.append(self._device.allocate(values.nbytes))
        self._device.put(self._addresses[-1], values)
        return self._addresses[-1]


def _free(device: Device, addresses: list[int]) -> None:
    for address in addresses:
        device.free(address)


FIRST_PIECE = 1 << 10
LARGEST_PIECE = 1 << 30
LAUNCH_SECONDS = 0.1
"""How long a launch should take: between two of them a run can be interrupted."""
WORTH_SECONDS = 0.5
"""When the kernels have worked for so long, it is worth compiling another code."""
AGAIN = 32
"""In one of so many launches the other codes are tried again."""
PART = 16
"""A trial has one part in so many of the loops of a launch."""


class KernelVariant:
    """Code that is compiled when it is first launched, the shared memory that it needs, and how fast it last was."""

    def __init__(self, compiled: Callable[[], object], shared: int) -> None:
        self._compiled, self.shared, self.rate = compiled, shared, 0.0

    @cached_property
    def compiled(self) -> object:
        return self._compiled()


class Autotuner:
    """Codes, the likeliest first."""

    def __init__(self, codes: Sequence[KernelVariant]) -> None:
        self._codes, self._now, self._trials = list(codes), codes[0], list(codes[1:])
        self._seconds, self._launches, self._piece = 0.0, 0, float(FIRST_PIECE)

    def next(self) -> tuple[KernelVariant, int]:
        """The code of the next launch, and the loops of every machine."""
        self._launches += 1
        best = max(self._codes, key=lambda code: code.rate)
        if self._launches % AGAIN == 0:
            self._trials = [code for code in self._codes if code is not best]
        self._trying = bool(self._trials) and self._seconds >= WORTH_SECONDS
        self._now = self._trials.pop() if self._trying else best
        return self._now, max(1, int(self._piece) // PART) if self._trying else int(self._piece)

    def took(self, seconds: float, loops: int) -> None:
        """How long the launch took, and how many loops all machines made in it."""
        self._seconds += seconds
        self._now.rate = loops / max(seconds, 1e-9)
        if not self._trying:
            wanted = LAUNCH_SECONDS / max(seconds, 1e-9)
            self._piece = min(max(self._piece * min(PART, wanted), 1.0), LARGEST_PIECE)
