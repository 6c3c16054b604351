"""A device for tests of batches: the code of a GPU's thread, compiled for this processor, one thread after the other."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from punchcard.engines.lowered.codegen.objects import LoadedCode, load_or_compile, name_of
from punchcard.engines.lowered.gpu.device import DeviceLimits

_AT = ctypes.c_void_p
MACHINE = ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_int32, _AT, _AT, _AT, _AT, _AT, _AT, ctypes.c_int64,
                           ctypes.c_int32, ctypes.c_int32)


class HostDevice:
    """See `Device`. `launches` has the groups of every launch."""

    def __init__(self, shared: int = 1 << 16) -> None:
        self.limits = DeviceLimits("this processor", 1, shared, shared)
        self.launches: list[list[int]] = []
        self._rooms: dict[int, npt.NDArray[np.uint8]] = {}

    @property
    def held(self) -> int:
        """Pieces of memory that were not given back."""
        return len(self._rooms)

    def compile(self, names: Sequence[bytes], build: Callable[[], tuple[ir.Module, ir.Function]]) -> LoadedCode:
        return load_or_compile(name_of(b"host device", *names), lambda: (build()[0], {}))

    def allocate(self, size: int) -> int:
        room = np.full(max(size, 8), 0xA5, dtype=np.uint8)
        self._rooms[room.ctypes.data] = room
        return int(room.ctypes.data)

    def free(self, address: int) -> None:
        del self._rooms[address]

    def put(self, address: int, values: npt.NDArray[Any]) -> None:
        self._rooms[address][: values.nbytes] = np.ascontiguousarray(values).view(np.uint8).reshape(-1)

    def get(self, values: npt.NDArray[Any], address: int) -> None:
        assert values.flags.c_contiguous
        values.reshape(-1).view(np.uint8)[:] = self._rooms[address][: values.nbytes]

    def launch(self, code: object, groups: int, threads: int, shared: int, addresses: Sequence[int], loops: int,
               piece: int, machines: int) -> float:
        assert isinstance(code, LoadedCode)
        machine, started = MACHINE(code.address("machine")), time.perf_counter()
        live = self._rooms[addresses[0]].view(np.int32)[:groups].tolist()
        self.launches.append(live)
        for group in live:
            arrays = np.full(max(shared, 8), 0x5A, dtype=np.uint8)
            for thread in range(threads):
                machine(group, thread, arrays.ctypes.data, *addresses[1:], loops, piece, machines)
        return time.perf_counter() - started
