"""Machine code: LLVM compiles a module for this processor, and compiled objects are kept on disk.

An object is kept under a name made of everything that it depends on: the weights, the layout, the facts taken from the
card, the processor and the versions. Files are written whole under another name and then renamed, so that processes may
share the folder; a file that is damaged is compiled anew.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite
from llvmlite import binding, ir

from punchcard.errors import StorageError
from punchcard.files import write_whole

MOST_BYTES = 1 << 28
"""The folder is kept below this size; the files that were used least recently go first."""


@dataclass(frozen=True)
class LoadedCode:
    """A loaded object, what was noted with it, and whether it had to be compiled."""

    engine: binding.ExecutionEngine
    notes: dict[str, Any]
    fresh: bool

    def address(self, name: str) -> int:
        return int(self.engine.get_function_address(name))


@lru_cache(maxsize=1)
def compiler() -> bytes:
    """The compiler itself: code of another version is not used."""
    sources = sorted(Path(__file__).parent.parent.rglob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).digest()


@lru_cache(maxsize=1)
def processor() -> tuple[str, str]:
    """The name and the features of this machine's processor."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = binding.get_host_cpu_features()
    return binding.get_host_cpu_name(), features.flatten() if features else ""


def folder() -> Path:
    """Where objects are kept: `PUNCHCARD_CACHE`, or punchcard in the user's cache folder."""
    named = os.environ.get("PUNCHCARD_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "punchcard"


def name_of(*parts: bytes) -> str:
    """A name for code that depends on these parts."""
    digest = hashlib.sha256()
    for part in (compiler(), llvmlite.__version__.encode(), *(x.encode() for x in processor()), *parts):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def obtain(name: str, build: Callable[[], tuple[ir.Module, dict[str, Any]]]) -> LoadedCode:
    """The object of this name: from disk, or built, compiled and kept."""
    machine = _target_machine()

    def compiled() -> tuple[dict[str, Any], bytes]:
        module, notes = build()
        return notes, _compiled(machine, module)

    notes, code, fresh = kept(name, compiled)
    return LoadedCode(_load(machine, code), notes, fresh)


def kept(name: str, make: Callable[[], tuple[dict[str, Any], bytes]]) -> tuple[dict[str, Any], bytes, bool]:
    """Notes and code of this name, and whether they are new: from disk, or made and kept."""
    path = folder() / f"{name}.code"
    found = _read(path)
    if found is not None:
        return *found, False
    notes, code = make()
    _write(path, notes, code)
    return notes, code, True


def _compiled(machine: binding.TargetMachine, module: ir.Module) -> bytes:
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    parsed = binding.parse_assembly(str(module))
    parsed.verify()
    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.slp_vectorization = True
    options.loop_vectorization = False
    passes = binding.create_pass_builder(machine, options)
    passes.getModulePassManager().run(parsed, passes)
    code: bytes = machine.emit_object(parsed)
    return code


def _target_machine() -> binding.TargetMachine:
    cpu, features = processor()
    target = binding.Target.from_default_triple()
    return target.create_target_machine(cpu=cpu, features=features, opt=3, jit=True)


def _load(machine: binding.TargetMachine, code: bytes) -> binding.ExecutionEngine:
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def _read(path: Path) -> tuple[dict[str, Any], bytes] | None:
    try:
        data = path.read_bytes()
        checksum, rest = data[:32], data[32:]
        if hashlib.sha256(rest).digest() != checksum:
            return None
        size = int.from_bytes(rest[:8], "little")
        notes = json.loads(rest[8 : 8 + size])
    except (OSError, ValueError):
        return None
    with suppress(OSError):  # somebody else's file: as good, and not ours to mark as used
        os.utime(path)
    return notes, rest[8 + size :]


def _write(path: Path, notes: dict[str, Any], code: bytes) -> None:
    """Keep an object; a folder that cannot be written to only costs time."""
    header = json.dumps(notes).encode()
    rest = len(header).to_bytes(8, "little") + header + code
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, hashlib.sha256(rest).digest() + rest, durable=False)
        _trim(path.parent)
    except (OSError, StorageError):
        return


def _trim(where: Path) -> None:
    files = []
    for file in where.glob("*.code"):
        try:
            status = file.stat()
        except OSError:
            continue
        files.append((status.st_mtime, status.st_size, file))
    total = sum(size for _, size, _ in files)
    for _, size, file in sorted(files):
        if total <= MOST_BYTES:
            break
        file.unlink(missing_ok=True)
        total -= size
