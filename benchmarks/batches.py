"""What a batch costs around its loops: CPU microseconds a program for packing, preparing, serving and reading.

    python benchmarks/batches.py --programs 4000

The programs are short: loops take less than a microsecond. They are a SUBLEQ product, and a RISC-V program that writes a
byte and ends, which are two system calls. The first batch of a machine compiles code and is not measured.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import punchcard as pc
from punchcard.machines.base import AnyMachine

SUBLEQ = """
.data
a 3
b 4
product 0
one 1
zero 0
.code
again:  subleq one, b, end
        subleq a, product, again
        subleq zero, zero, again
end:    halt
"""
RISCV = """
        .text
        .globl _start
_start: la   a1, text
        li   a0, 1
        li   a2, 1
        li   a7, 64
        ecall
        lw   a0, value
        andi a0, a0, 63
        li   a7, 93
        ecall
        .data
value:  .word 7
text:   .byte 65
"""


def programs(name: str, text: str, count: int) -> tuple[AnyMachine, list[Any]]:
    """A machine, and that many programs of it, each with values of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_text(text)
        program = pc.load(str(file))
    if name.endswith(".subleq"):
        return pc.build(program, design="two-layer"), [program.with_values({"a": a % 1000}) for a in range(count)]
    return pc.build(program, memory=1024), [program] * count


def measure(machine: AnyMachine, given: Sequence[Any], rounds: int) -> float:
    """CPU microseconds a program: the least of some rounds."""
    machine.run_batch(given[:4], engine="lowered", threads=1)
    best = float("inf")
    for _ in range(rounds):
        before = time.process_time()
        batch = machine.run_batch(given, engine="lowered", threads=1)
        best = min(best, time.process_time() - before)
        assert batch.halted
        states = [result.memory for result in batch]
        assert len(states) == len(given)
    return best / len(given) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    for name, text in (("product.subleq", SUBLEQ), ("byte.s", RISCV)):
        machine, some = programs(name, text, given.programs)
        found = measure(machine, some, given.rounds)
        print(f"{name:<16} {given.programs:,} programs: {found:8.1f} CPU microseconds a program")


if __name__ == "__main__":
    main()
