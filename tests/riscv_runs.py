"""RISC-V programs on the quick interpreter, and the compilers that tests may use where they are installed."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from punchcard.machines.in_c import compiler
from punchcard.machines.riscv.calls import Calls
from punchcard.machines.riscv.fast import QuickRiscv
from punchcard.machines.riscv.in_c import RiscvInC
from punchcard.machines.riscv.languages import toolchain
from punchcard.machines.riscv.program import RiscvProgram
from punchcard.machines.streams import reader

MEMORY = 1 << 16
PROGRAMS = Path(__file__).parent / "riscv_programs"

GCC = any(map(shutil.which, toolchain.GCC))
CLANG = bool(shutil.which("clang") and shutil.which(toolchain.LINKER))
needs_gcc = pytest.mark.skipif(not GCC, reason="there is no gcc for RISC-V")
needs_clang = pytest.mark.skipif(not CLANG, reason="there is no clang with lld")
needs_native = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
COMPILERS = (pytest.param("gcc", marks=needs_gcc), pytest.param("clang", marks=needs_clang))


class Ran(NamedTuple):
    output: bytes
    status: int | None
    steps: int
    errors: bytes


def interpret(
    program: RiscvProgram, given: bytes = b"", *, memory: int = MEMORY, max_steps: int = 50_000_000,
    by: type[QuickRiscv] | type[RiscvInC] = QuickRiscv,
) -> Ran:
    """A program run to its end."""
    written, errors = bytearray(), bytearray()
    calls = Calls.of(program, memory, reader(given), written.append, complain=errors.extend)
    ran = by(program, memory, calls)
    ran.run(max_steps)
    assert ran.fault is None, ran.fault
    return Ran(bytes(written), calls.status, ran.steps, bytes(errors))


def interpret_in_c(program: RiscvProgram, given: bytes = b"") -> Ran:
    """The same with the interpreter in C, for long programs; it needs a C compiler for this computer."""
    return interpret(program, given, memory=4 * MEMORY, by=RiscvInC, max_steps=1 << 40)


@cache
def native(source: Path, given: bytes, folder: Path) -> tuple[bytes, int]:
    """Output and status of a C file on this computer."""
    program = folder / source.stem
    command = [*(compiler() or ()), "-O1", "-w", "-fwrapv", str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    ran = subprocess.run([program], input=given, capture_output=True, check=False)
    return ran.stdout, ran.returncode
