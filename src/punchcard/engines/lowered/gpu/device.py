"""What a batch needs of a GPU. `cuda.Cuda` is one; the tests have another, which runs the same code on the processor."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from llvmlite import ir

from punchcard.card.formats import AnyArray

RESERVED = 1 << 10
"""Bytes of shared memory that the system takes of every group."""
MOST_GROUPS, MOST_THREADS = 32, 2048
"""Groups and threads that one processor runs at a time."""
WARP = 32
GROUP_SIZES = (256, 128, 64, 32)


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
