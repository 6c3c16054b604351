"""Batches of RISC-V machines on a GPU: instructions a second, and every machine's end compared with the interpreter in C.

    python benchmarks/gpu_riscv.py [--machines 67584] [--loops 50000] [--words 1024]

It needs an NVIDIA GPU and its driver, and a C compiler. Four batches: a generator of random numbers that adds them up in a
table, with a seed of its own for every machine; the same with products and with quotients of these numbers, on machines with
the M extension; and the sieve of `punchcard bench`, the same for all. Registers, memory and program counter of every machine
are compared. The exit status is 0 if all agree.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np

from punchcard.engines import Controls
from punchcard.engines.lowered.compiled_model import CompiledModel
from punchcard.engines.lowered.gpu.batch import GpuBatch
from punchcard.engines.lowered.gpu.cuda import Cuda
from punchcard.machines.riscv.in_c import RiscvInC
from punchcard.machines.riscv.languages.assembly.assembler import assemble
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.program import RiscvProgram, Segment
from punchcard.machines.riscv.workloads import SIEVE

TABLE = """
_start: la   s0, seed
        lw   s1, 0(s0)
        la   s2, table
again:  slli t0, s1, 13                # xorshift
        xor  s1, s1, t0
        srli t0, s1, 17
        xor  s1, s1, t0
        slli t0, s1, 5
        xor  s1, s1, t0
        andi t1, s1, 1020
        add  t1, t1, s2
        lw   t2, 0(t1)
        add  t2, t2, s1
        sw   t2, 0(t1)
        bltz t2, below
        addi s3, s3, 1
        j    again
below:  xori s3, s3, 1
        j    again
        .align 2
seed:   .word 1
table:  .space 1024
"""
PRODUCTS = TABLE.replace("add  t2, t2, s1", """mul  t3, s1, t2
        mulh t4, t3, s1
        mulhsu t5, t4, t3
        mulhu t6, t5, s1
        xor  t2, t3, t6
        add  t2, t2, s1""")
QUOTIENTS = TABLE.replace("add  t2, t2, s1", """divu t3, s1, t2
        rem  t4, s1, t3
        div  t5, t4, t2
        remu t6, s1, t5
        xor  t2, t3, t6
        add  t2, t2, s1""")
TITLES = ("batch", "machines", "cases", "bytes a machine", "compared instructions", "a second, kernels",
          "a second, long run", "declined", "equal to the interpreter", "begin, s")
CHUNK = 256
LONG = 20
"""How many times the compared loops the long run makes."""


def with_seed(program: RiscvProgram, seed: int) -> RiscvProgram:
    """The program with another number at its label `seed`."""
    (segment,), at = program.segments, program.symbols["seed"]
    data = segment.data[:at] + seed.to_bytes(4, "little") + segment.data[at + 4 :]
    return replace(program, segments=(Segment(segment.address, data, segment.size),))


def expected(job: tuple[Sequence[RiscvProgram], int, int]) -> list[tuple[list[int], list[int], int]]:
    """Registers, words and program counter after so many instructions, machine by machine."""
    programs, words, steps = job
    found = []
    for program in programs:
        interpreter = RiscvInC(program, words)
        interpreter.run(steps)
        found.append((list(interpreter.registers), list(interpreter.memory), interpreter.program_counter))
    return found


def measure(name: str, programs: Sequence[RiscvProgram], words: int, loops: int, device: Cuda,
            pool: ProcessPoolExecutor) -> bool:
    """One line of the table; whether all machines agree with the interpreter."""
    machine = RiscvMachine(memory=words, multiply=name in ("products", "quotients"))
    cards = [machine.pack(program) for program in programs]
    compiled_model = CompiledModel(machine.weights, machine.layout, cards[0])
    started = time.perf_counter()
    gpu = GpuBatch(compiled_model, cards, device)
    gpu.run(1, Controls(machine.halting))  # the code is compiled before anything is timed
    begun = time.perf_counter() - started
    ends = gpu.run(loops - 1, Controls(machine.halting))
    steps = machine.steps(loops, ended=False)
    jobs = [(programs[at : at + CHUNK], words, steps) for at in range(0, len(programs), CHUNK)]
    wanted = (state for states in pool.map(expected, jobs) for state in states)
    same = 0
    for i, (registers, memory, counter) in enumerate(wanted):
        found = machine.design.read(machine.sizes, machine.layout, gpu.card(i))
        same += (np.array_equal(found[0], registers) and np.array_equal(found[1], memory) and int(found[2]) == counter
                 and int(ends.loops[i]) == loops - 1)
    long = gpu.run(LONG * loops, Controls(machine.halting))
    print(f"| {name} | {len(cards):,} | {len(compiled_model.known)} | {gpu.strips.size:,} | {int(ends.loops.sum()):.3g} | "
          f"{ends.loops.sum() / ends.seconds:.3g} | {long.loops.sum() / long.seconds:.3g} | {int(ends.declined.sum())} | "
          f"{same:,} | {begun:.1f} |", flush=True)
    return same == len(cards)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=67584)
    parser.add_argument("--loops", type=int, default=50_000)
    parser.add_argument("--words", type=int, default=1024)
    options = parser.parse_args(arguments)
    table, products, quotients, sieve = (assemble(text, "program.s") for text in (TABLE, PRODUCTS, QUOTIENTS, SIEVE))
    numbers = np.random.default_rng(1)
    seeds = numbers.integers(1, 1 << 32, options.machines).tolist()
    batches = {"table": [with_seed(table, seed) for seed in seeds], "sieve": [sieve] * options.machines,
               "products": [with_seed(products, seed) for seed in seeds],
               "quotients": [with_seed(quotients, seed) for seed in seeds]}
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        list(pool.map(expected, [([sieve], options.words, 1)]))
        device = Cuda()
        print(f"{device.limits.name}, RISC-V, {options.words:,} words\n")
        print(f"| {' | '.join(TITLES)} |\n{'|---' * len(TITLES)}|")
        agreed = [measure(name, programs, options.words, options.loops, device, pool) for name, programs in batches.items()]
    return 0 if all(agreed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
