"""NVIDIA's driver, called through ctypes: it compiles PTX and launches kernels. No toolkit is needed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import byref, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from functools import lru_cache

from llvmlite import binding, ir

from punchcard.card.formats import AnyArray
from punchcard.code_cache import Notes
from punchcard.engines.lowered.codegen.objects import load_or_make, name_of
from punchcard.engines.lowered.gpu.device import DeviceLimits
from punchcard.engines.lowered.gpu.kernel import emit_kernel
from punchcard.errors import LoweringError

LIBRARIES = ("libcuda.so.1", "nvcuda.dll")
PROCESSORS, MAJOR, MINOR, SHARED_OF_PROCESSOR, SHARED_OF_GROUP = 16, 75, 76, 81, 97
"""Numbers of a device's attributes."""
DYNAMIC_SHARED = 8
"""Number of a kernel's attribute: the shared memory that a launch may ask for."""
ERROR_LOG, ERROR_LOG_BYTES = 5, 6
LOG_BYTES = 1 << 12


class Cuda:
    """One GPU; see `Device`. Other users of the device in this process, such as torch, share its context."""

    def __init__(self) -> None:
        self._library = _library()
        self._call("cuInit", 0)
        device, context = c_int(), c_void_p()
        self._call("cuDeviceGet", byref(device), 0)
        self._device = device.value
        self._call("cuDevicePrimaryCtxRetain", byref(context), self._device)
        self._context = context
        self._call("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, len(name), self._device)
        self.capability = 10 * self._attribute(MAJOR) + self._attribute(MINOR)
        if self.capability < OLDEST:
            raise LoweringError(f"{name.value.decode()} has compute capability {self.capability / 10}: it must be "
                                f"{OLDEST / 10} or more")
        self.limits = DeviceLimits(name.value.decode(), *map(self._attribute, (
            PROCESSORS, SHARED_OF_PROCESSOR, SHARED_OF_GROUP)))
        self._events = [c_void_p(), c_void_p()]
        for event in self._events:
            self._call("cuEventCreate", byref(event), 0)

    def compile(self, names: Sequence[bytes], build: Callable[[], tuple[ir.Module, ir.Function]]) -> c_void_p:
        def make() -> tuple[Notes, bytes]:
            module, machine = build()
            emit_kernel(module, machine)
            return {}, ptx(module, self.capability).encode()

        _, text, _, _ = load_or_make(name_of(b"ptx", str(self.capability).encode(), *names), make)
        return self._load(text)

    def _load(self, text: bytes) -> c_void_p:
        module, function, log = c_void_p(), c_void_p(), ctypes.create_string_buffer(LOG_BYTES)
        options = (c_int * 2)(ERROR_LOG, ERROR_LOG_BYTES)
        values = (c_void_p * 2)(ctypes.cast(log, c_void_p), c_void_p(LOG_BYTES))
        try:
            self._call("cuModuleLoadDataEx", byref(module), c_char_p(text), 2, options, values)
        except LoweringError as why:
            raise LoweringError(f"{why}: {' '.join(log.value.decode(errors='replace').split())}") from None
        self._call("cuModuleGetFunction", byref(function), module, c_char_p(b"run"))
        return function

    def allocate(self, size: int) -> int:
        free, total, address = c_size_t(), c_size_t(), c_uint64()
        self._call("cuMemGetInfo_v2", byref(free), byref(total))
        if size > free.value:
            raise LoweringError(f"the batch needs {size / 2**30:.1f} GiB on the GPU, of which {free.value / 2**30:.1f} GiB "
                                "are free: run fewer machines at a time")
        self._call("cuMemAlloc_v2", byref(address), c_size_t(max(size, 1)))
        return int(address.value)

    def free(self, address: int) -> None:
        self._call("cuMemFree_v2", c_uint64(address))

    def put(self, address: int, values: AnyArray) -> None:
        self._call("cuMemcpyHtoD_v2", c_uint64(address), c_void_p(values.ctypes.data), c_size_t(values.nbytes))

    def get(self, values: AnyArray, address: int) -> None:
        self._call("cuMemcpyDtoH_v2", c_void_p(values.ctypes.data), c_uint64(address), c_size_t(values.nbytes))

    def launch(self, code: object, groups: int, threads: int, shared: int, addresses: Sequence[int], loops: int, piece: int,
               machines: int) -> float:
        given = [*map(c_uint64, addresses), c_int64(loops), c_int32(piece), c_int32(machines)]
        arguments = (c_void_p * len(given))(*(ctypes.addressof(one) for one in given))
        begin, end = self._events
        self._call("cuFuncSetAttribute", code, DYNAMIC_SHARED, shared)
        self._call("cuEventRecord", begin, None)
        self._call("cuLaunchKernel", code, groups, 1, 1, threads, 1, 1, shared, None, arguments, None)
        self._call("cuEventRecord", end, None)
        self._call("cuEventSynchronize", end)
        took = c_float()
        self._call("cuEventElapsedTime", byref(took), begin, end)
        return took.value / 1000

    def _attribute(self, number: int) -> int:
        value = c_int()
        self._call("cuDeviceGetAttribute", byref(value), number, self._device)
        return value.value

    def _call(self, name: str, *given: object) -> None:
        """Call the driver; what goes wrong is an error that names it."""
        code = int(getattr(self._library, name)(*given))
        if code:
            text = c_char_p()
            self._library.cuGetErrorString(code, byref(text))
            message = text.value.decode() if text.value else f"error {code}"
            raise LoweringError(f"the GPU's driver reports an error at {name}: {message}")


def _library() -> ctypes.CDLL:
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise LoweringError(f"there is no NVIDIA driver on this machine ({LIBRARIES[0]} was not found)")


TRIPLE = "nvptx64-nvidia-cuda"
OLDEST, NEWEST = 70, 90
"""Compute capabilities, times ten: code for the newest runs on later ones."""


@lru_cache(maxsize=1)
def _target() -> binding.Target:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding.Target.from_triple(TRIPLE)


def ptx(module: ir.Module, capability: int = NEWEST) -> str:
    """The PTX of a module, optimised and verified."""
    machine = _target().create_target_machine(cpu=f"sm_{min(capability, NEWEST)}", opt=3)
    module.triple = TRIPLE
    module.data_layout = str(machine.target_data)
    parsed = binding.parse_assembly(str(module))
    parsed.verify()
    passes = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(parsed, passes)
    text: str = machine.emit_assembly(parsed)
    return text
