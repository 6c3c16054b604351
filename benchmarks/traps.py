"""What traps cost a program that takes none: instructions a second on machines with them, and without.

Machines with traps have control registers, interrupts and atomic instructions besides.

    python benchmarks/traps.py [--bits 16] [--loops 2000000] [--runs 5]

The same programs run on four machines, RV32I and RV32IM without traps and with them, in turns; the most of several runs
counts. Times are of the CPU. `mix` adds, rotates and combines words as SHA-256 does, with loads and stores of a message;
`sieve` crosses out multiples of numbers, byte by byte. Neither calls a host, and neither ends.
"""

from __future__ import annotations

import argparse
import time

import punchcard
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.program import RiscvProgram

BASE = 0x80000000
MIX = """
start: la s0, message
 li s1, 0x6a09e667
 li s2, 0xbb67ae85
round: li a0, 0
again: add a1, s0, a0
 lw a2, 0(a1)
 lw a3, 4(a1)
 srli a4, s1, 6
 slli a5, s1, 26
 or a4, a4, a5
 srli a6, s1, 11
 slli a7, s1, 21
 or a6, a6, a7
 xor a4, a4, a6
 and t0, s1, s2
 not t1, s1
 and t1, t1, a3
 xor t0, t0, t1
 add t2, a4, t0
 add t2, t2, a2
 mv s2, s1
 add s1, t2, a3
 sw s1, 0(a1)
 addi a0, a0, 4
 slti t3, a0, 256
 bnez t3, again
 j round
 .align 2
message: .space 264
"""
SIEVE = """
start: la s0, flags
 li s1, 4096
restart: li a0, 2
next: add a1, s0, a0
 lbu a2, 0(a1)
 bnez a2, skip
 add a3, a0, a0
cross: bgeu a3, s1, skip
 add a4, s0, a3
 li a5, 1
 sb a5, 0(a4)
 add a3, a3, a0
 j cross
skip: addi a0, a0, 1
 bltu a0, s1, next
 li a0, 0
clear: add a1, s0, a0
 sb zero, 0(a1)
 addi a0, a0, 1
 bltu a0, s1, clear
 j restart
flags: .space 4096
"""
PROGRAMS = {"mix": MIX, "sieve": SIEVE}


def speed(machine: RiscvMachine, program: RiscvProgram, loops: int) -> float:
    """Loops in a CPU second, code compiled before; the beginning of a run is measured apart and taken away."""
    def seconds(count: int) -> float:
        started = time.process_time()
        machine.run(program, engine="lowered", max_steps=count)
        return time.process_time() - started

    return (loops - 1000) / (seconds(loops) - seconds(1000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bits", type=int, default=16, help="the memory has 2^BITS words")
    parser.add_argument("--loops", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    machines = {(multiply, traps): RiscvMachine(memory=1 << given.bits, base=BASE, multiply=multiply, privileged=traps)
                for multiply in (False, True) for traps in (False, True)}
    print("million instructions a second    without traps   with traps   ratio")
    for name, text in PROGRAMS.items():
        program = punchcard.assemble(text, "riscv", base=BASE)
        for machine in machines.values():
            machine.run(program, engine="lowered", max_steps=20_000)
        found = dict.fromkeys(machines, 0.0)
        for _ in range(given.runs):
            for key, machine in machines.items():
                found[key] = max(found[key], speed(machine, program, given.loops) / 1e6)
        for multiply in (False, True):
            plain, traps = found[multiply, False], found[multiply, True]
            print(f"{name:6} {'RV32IM' if multiply else 'RV32I':25}{plain:13.1f}{traps:13.1f}{traps / plain:8.2f}")


if __name__ == "__main__":
    main()
