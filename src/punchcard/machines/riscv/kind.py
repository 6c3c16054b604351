"""The RISC-V machine as it is known before one is built."""

from __future__ import annotations

from functools import partial

from punchcard.lazy import call_name
from punchcard.machines.kind import Kind, Language, Option, Timing
from punchcard.machines.riscv.languages.options import C_OPTIONS, ELF_MAGIC, REFUSED
from punchcard.machines.source import parse_integer

DESIGNS = ("three-layer", "two-layer")
MOST_BITS = 24
"""Of the number of a word: the largest memory has 2^24."""

RISCV = Kind(
    "riscv", "RV32I: C programs, with system calls", "punchcard.machines.riscv.program:RiscvProgram",
    languages=(
        Language("RISC-V assembly", (".s",), partial(call_name, "punchcard.machines.riscv.languages.preprocessed:assemble"),
                 takes=("base", "folder")),
        Language("RISC-V executable", (".elf",), partial(call_name, "punchcard.machines.riscv.languages.elf:load"),
                 takes=("base", "privileged"), binary=True, magic=ELF_MAGIC),
        Language("C", (".c",), partial(call_name, "punchcard.machines.riscv.languages.c:assemble"), options=C_OPTIONS,
                 takes=("base", "folder", "memory")),
        Language("Intel hex", (".hex", ".ihex"), partial(call_name, "punchcard.machines.riscv.languages.intel_hex:assemble"),
                 takes=("base",)),
        Language("flat binary", (".bin",), partial(call_name, "punchcard.machines.riscv.languages.flat:load"),
                 takes=("base",), binary=True),
    ),
    disassemble=partial(call_name, "punchcard.machines.riscv.languages.disassembler:disassemble"),
    writers={".elf": partial(call_name, "punchcard.machines.riscv.languages.elf:write"),
             ".hex": partial(call_name, "punchcard.machines.riscv.languages.intel_hex:write"),
             ".bin": partial(call_name, "punchcard.machines.riscv.languages.flat:write")},
    options=(
        Option("memory", "memory words of the machine", least=1, most=1 << MOST_BITS),
        Option("base", "address of the memory's first word"),
        Option("multiply", "add the M extension (mul, div, ...) even if the program does not use it", type=bool),
        Option("privileged", "add traps, interrupts, control registers and atomic instructions", type=bool),
    ),
    designs=DESIGNS,
    parse_value=parse_integer,
    timing=Timing("RISC-V, one thread: a sieve of primes; python translates blocks of the program first",
                  "punchcard.machines.riscv.workloads:workloads", columns=(163, 4131, 65571), designs=DESIGNS,
                  quick="three-layer"),
    refused=REFUSED,
    arguments=True,
    machine="punchcard.machines.riscv.machine:RiscvMachine",
    variation="punchcard.machines.riscv.variation:RiscvVariation",
)
