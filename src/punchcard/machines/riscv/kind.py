"""The RISC-V machine as it is known before one is built."""

from __future__ import annotations

from punchcard.machines.kind import Kind, Language, Option, Timing
from punchcard.machines.riscv.languages import c, disassembler, elf, flat, intel_hex, preprocessed
from punchcard.machines.riscv.program import RiscvProgram
from punchcard.machines.source import parse_integer

DESIGNS = ("three-layer", "two-layer")

RISCV = Kind(
    "riscv", "RV32I: C programs, with system calls", RiscvProgram,
    languages=(
        Language("RISC-V assembly", (".s",), preprocessed.assemble, takes=("base", "folder")),
        Language("RISC-V executable", (".elf",), elf.load, takes=("base", "privileged"), binary=True, magic=elf.MAGIC),
        Language("C", (".c",), c.assemble, options=c.OPTIONS, takes=("base", "folder", "memory")),
        Language("Intel hex", (".hex", ".ihex"), intel_hex.assemble, takes=("base",)),
        Language("flat binary", (".bin",), flat.load, takes=("base",), binary=True),
    ),
    disassemble=disassembler.disassemble,
    writers={".elf": elf.write, ".hex": intel_hex.write, ".bin": flat.write},
    options=(
        Option("memory", "memory words of the machine", least=1),
        Option("base", "address of the memory's first word"),
        Option("multiply", "add the M extension (mul, div, ...) even if the program does not use it", type=bool),
        Option("privileged", "add traps, interrupts, control registers and atomic instructions", type=bool),
    ),
    designs=DESIGNS,
    parse_value=parse_integer,
    timing=Timing("RISC-V, one thread: a sieve of primes; python translates blocks of the program first",
                  "punchcard.machines.riscv.workloads:workloads", columns=(163, 4131, 65571), designs=DESIGNS,
                  quick="three-layer"),
    refused=c.REFUSED,
    arguments=True,
    machine="punchcard.machines.riscv.machine:RiscvMachine",
    variation="punchcard.machines.riscv.variation:RiscvVariation",
)
