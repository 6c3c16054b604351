"""Languages of the RISC-V machine: what its programs are written in, or built into."""

from __future__ import annotations

from punchcard.machines.kind import Language
from punchcard.machines.riscv.languages import c, elf, flat, intel_hex
from punchcard.machines.riscv.languages.assembly import assembler

LANGUAGES: tuple[Language, ...] = (
    Language("RISC-V assembly", (".s",), assembler.assemble, takes=("base",)),
    Language("RISC-V executable", (".elf",), elf.load, takes=("base",), binary=True, magic=elf.MAGIC),
    Language("C", (".c",), c.assemble, options=c.OPTIONS, takes=("base", "folder")),
    Language("Intel hex", (".hex", ".ihex"), intel_hex.assemble, takes=("base",)),
    Language("flat binary", (".bin",), flat.load, takes=("base",), binary=True),
)
"""The first is what a program is disassembled to. An executable is known by its first bytes, whatever it is called. `base`
is the first address of the machine's memory."""
