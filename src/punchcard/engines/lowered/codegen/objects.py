"""Machine code: LLVM compiles a module for this processor, and compiled objects are kept on disk (`code_cache`).

An object is kept under a name made of everything that it depends on: the weights, the layout, the facts taken from the
card, the processor and the versions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import llvmlite
from llvmlite import binding, ir
from llvmlite.binding.newpassmanagers import NewPassManager

import punchcard.code_cache as code_cache
from punchcard import transformer, words
from punchcard.code_cache import Notes
from punchcard.garbage import no_garbage_collection


@dataclass(frozen=True)
class LoadedCode:
    """A loaded object, what was noted with it, whether it had to be compiled, and why the one on disk was not used."""

    engine: binding.ExecutionEngine
    notes: Notes
    fresh: bool
    doubt: str | None = None

    def address(self, name: str) -> int:
        return int(self.engine.get_function_address(name))


@lru_cache(maxsize=1)
def compiler() -> bytes:
    """The compiler itself: code of another version is not used."""
    rooms = Path(__file__).parent.parent, Path(transformer.__file__).parent, Path(words.__file__).parent
    sources = sorted(source for room in rooms for source in room.rglob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).digest()


@lru_cache(maxsize=1)
def processor() -> tuple[str, str]:
    """The name and the features of this machine's processor."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = binding.get_host_cpu_features()
    return binding.get_host_cpu_name(), features.flatten() if features else ""


def name_of(*parts: bytes) -> str:
    """A name for code that depends on these parts."""
    digest = hashlib.sha256()
    for part in (compiler(), llvmlite.__version__.encode(), *(x.encode() for x in processor()), *parts):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def load_or_compile(name: str, build: Callable[[], tuple[ir.Module, Notes]], *, vectorize: bool = True,
                    library: Mapping[str, bytes] | None = None, inline: bool = True) -> LoadedCode:
    """The object of this name: from disk, or built, compiled and kept. `vectorize`: look for vectors in scalar code.

    `library`: functions that the module calls, and the modules that have them (see `optimised`). They are inlined, or not.
    """
    machine = _target_machine()

    def compiled() -> tuple[Notes, bytes]:
        with no_garbage_collection():  # in millions of small objects: looking for it took a tenth of the time
            module, notes = build()
            parsed = _parsed(machine, module)
            del module  # it is garbage in cycles: the first collection finds it before it is old
        for function, its_module in (library or {}).items():
            parsed.link_in(binding.parse_bitcode(its_module))
            called = parsed.get_function(function)
            called.linkage = "internal"
            called.add_function_attribute("alwaysinline" if inline else "noinline")
        level = 2 if library is not None else 1 if vectorize else 3  # what is inlined is optimised already
        _optimise(machine, parsed, vectorize, level)
        code: bytes = machine.emit_object(parsed)
        return notes, code

    notes, code, fresh, doubt = load_or_make(name, compiled)
    return LoadedCode(_load(machine, code), notes, fresh, doubt)


def load_or_make(
    name: str, make: Callable[[], tuple[Notes, bytes]],
) -> tuple[Notes, bytes, bool, str | None]:
    """From disk, or made and kept: notes and code, whether they are new, and why what is on disk was not used."""
    found = code_cache.find(name)
    if isinstance(found, tuple):
        return *found, False, None
    notes, code = make()
    code_cache.keep(name, notes, code)
    return notes, code, True, found


def optimised(module: ir.Module) -> bytes:
    """A module that others take functions from, as LLVM's bitcode."""
    machine = _target_machine()
    parsed = _parsed(machine, module)
    _optimise(machine, parsed, vectorize=False)
    code: bytes = parsed.as_bitcode()
    return code


def _parsed(machine: binding.TargetMachine, module: ir.Module) -> binding.ModuleRef:
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    parsed = binding.parse_assembly(str(module))
    parsed.verify()
    return parsed


def _optimise(machine: binding.TargetMachine, parsed: binding.ModuleRef, vectorize: bool, level: int = 3) -> None:
    options = binding.create_pipeline_tuning_options(speed_level=level)
    options.slp_vectorization = vectorize
    options.loop_vectorization = False
    builder = binding.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    passes.run(parsed, builder)
    NewPassManager._dispose(passes)  # llvmlite 0.50 never does, and so loses 100 KB and more with each module
    passes.detach()


def _target_machine() -> binding.TargetMachine:
    cpu, features = processor()
    target = binding.Target.from_default_triple()
    return target.create_target_machine(cpu=cpu, features=features, opt=3, jit=True)


def _load(machine: binding.TargetMachine, code: bytes) -> binding.ExecutionEngine:
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine
