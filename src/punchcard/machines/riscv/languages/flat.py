"""Flat binaries: bytes as they are in the memory from its base on. Execution begins with the first."""

from __future__ import annotations

from punchcard.errors import ProgramError
from punchcard.machines.riscv.isa import MASK, WORD_BYTES
from punchcard.machines.riscv.languages.options import ELF_MAGIC
from punchcard.machines.riscv.program import RiscvProgram, Segment
from punchcard.machines.source import where


def load(data: bytes, source: str = "", *, base: int = 0) -> RiscvProgram:
    """The program in the bytes of a file."""
    if data.startswith(ELF_MAGIC):
        raise ProgramError(f"{where(source)}this is an ELF file, not a flat binary: give it the extension .elf")
    if not data:
        raise ProgramError(f"{where(source)}the file is empty: a flat binary has at least one instruction")
    if base % WORD_BYTES or not 0 <= base <= MASK:
        raise ProgramError(f"{where(source)}base={base}: it must be a multiple of {WORD_BYTES}, 0 to {MASK:#x}")
    return RiscvProgram((Segment(base, data),), base, base, source=source)


def write(program: RiscvProgram) -> bytes:
    """A program as bytes from its base on. Nothing says where to begin, so it must begin at the base."""
    if program.entry != program.base:
        raise ProgramError(f"{program.where}the program begins at {program.entry:#x}, and a flat binary at its first byte, "
                           f"{program.base:#x}: write an ELF file (.elf) or Intel hex (.hex)")
    content = bytearray(program.end - program.base)
    for segment in program.segments:
        start = segment.address - program.base
        content[start : start + len(segment.data)] = segment.data
    return bytes(content)
