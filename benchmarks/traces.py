"""Loops a second with traces, without, and in the interpreter in C: ratios inside one run, on one core, set-up excluded.

    python benchmarks/traces.py                         every row; --only subleq,riscv for some, --seconds 1 for longer runs
    python benchmarks/traces.py --random 8              random programs: what traces cost where nothing is hot

Every figure is CPU time of this process. A row is warmed up first: its traces are compiled then, which the last column has.
Cards with and without traces are compared after the last loop, and with the interpreter.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from punchcard.card.packed import PackedCard
from punchcard.engines import Controls, EngineCache, prepare
from punchcard.machines.assembler import Symbol
from punchcard.machines.base import AnyMachine
from punchcard.machines.riscv.languages.assembly.assembler import assemble as riscv
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.workloads import SIEVE
from punchcard.machines.subleq.isa import Halt, Program, Subleq
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.machines.subleq.text import assemble as subleq
from punchcard.machines.subleq.workloads import multiply
from punchcard.machines.von_neumann.languages.asq.assembler import assemble as asq
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.machines.von_neumann.workloads import COUNT

HOT_SECONDS = 0.05
"""Loops before a trace, in these measurements."""
DIVISORS = """
.data
n        2
d        0
rest     0
minus_n  0
minus_d  0
sum      0
one      1
zero     0
minus    -1
limit    400
.code
again:  subleq n, n
        subleq minus, n
next:   subleq minus, n
        subleq d, d
        subleq minus, d
        subleq minus_n, minus_n
        subleq n, minus_n
try:    subleq minus, d
        subleq rest, rest
        subleq minus_n, rest
take:   subleq d, rest, none
        subleq zero, zero, take
none:   subleq one, sum
        subleq minus_d, minus_d
        subleq d, minus_d
        subleq minus_n, minus_d, done
        subleq zero, zero, try
done:   subleq rest, rest
        subleq n, rest
        subleq limit, rest, next
        subleq zero, zero, again
        halt
"""
"""Divides numbers by all smaller ones, with loops in loops, for ever."""
XORSHIFT = """
        li   a0, 12345
        la   a2, cells
again:  slli t0, a0, 13
        xor  a0, a0, t0
        srli t0, a0, 17
        xor  a0, a0, t0
        slli t0, a0, 5
        xor  a0, a0, t0
        andi t1, a0, 28
        add  t1, t1, a2
        lw   t2, 0(t1)
        add  t2, t2, a0
        sw   t2, 0(t1)
        j    again
        .data
cells:  .word 0, 0, 0, 0, 0, 0, 0, 0
"""
SORT = """
        .equ count, 32
begin:  la   s0, cells
        li   s1, count
        li   t0, 0
fill:   slli t1, t0, 2
        add  t1, t1, s0
        mul  t2, t0, s2
        addi t2, t2, 77
        andi t2, t2, 255
        sw   t2, 0(t1)
        addi t0, t0, 1
        bltu t0, s1, fill
        addi s2, s2, 13
outer:  addi s1, s1, -1
        beqz s1, begin
        mv   t0, s0
        mv   t3, s1
inner:  lw   t1, 0(t0)
        lw   t2, 4(t0)
        bleu t1, t2, on
        sw   t2, 0(t0)
        sw   t1, 4(t0)
on:     addi t0, t0, 4
        addi t3, t3, -1
        bnez t3, inner
        j    outer
        .data
cells:  .space 132
"""
"""Bubble sort of numbers that differ each time. `mul` is replaced by `add` on machines without products."""


@dataclass(frozen=True)
class Row:
    """A program that never ends, and the machine that runs it."""

    name: str
    machine: Callable[[], AnyMachine]
    program: Any


def rows() -> Iterator[Row]:
    for design in ("two-layer", "paper"):
        for n in (64, 1024, 16384, 65536):
            for name, program in (("multiply", multiply()), ("divisors", subleq(DIVISORS))):
                memory = max(len(program.memory), (n - 3) * 2 // 5)
                sizes: dict[str, Any] = {"memory": memory, "instructions": n - 3 - memory, "design": design,
                                         "precision": "float32"}
                yield Row(f"subleq {design} n={n} {name}", lambda sizes=sizes: SubleqMachine(**sizes),  # type: ignore[misc]
                          program)
    yield Row("image count", lambda: VonNeumannMachine(word_bits=16, memory=1024), asq(COUNT))
    plain = SORT.replace("mul  t2, t0, s2", "add  t2, t0, s2")
    kinds: dict[str, dict[str, Any]] = {"riscv": {}, "riscv products": {"multiply": True},
                                        "riscv two-layer": {"design": "two-layer"}, "riscv traps": {"privileged": True}}
    for kind, options in kinds.items():
        for name, text in (("xorshift", XORSHIFT), ("sieve", SIEVE), ("sort", SORT if "products" in kind else plain)):
            yield Row(f"{kind} {name}", lambda options=options: RiscvMachine(memory=1024, **options),  # type: ignore[misc]
                      riscv(text, f"{name}.s"))


class Runs:
    """Runs of one card with or without traces, one after the other; CPU seconds of each, without compiling."""

    def __init__(self, machine: AnyMachine, program: Any, traces: float | None) -> None:
        self.machine, self.controls = machine, Controls(traces=traces)
        self.runner = prepare("lowered", machine.weights, machine.layout, machine.pack(program), cache=EngineCache())
        self.loops, self.compiling = 0, 0.0

    def make(self, loops: int) -> float:
        started, before = time.process_time(), self.runner.compile_seconds
        ran = self.runner.run(loops, self.controls)
        assert ran.loops == loops, ran.reason
        self.loops, self.traces = self.loops + loops, ran.traces
        self.compiling += self.runner.compile_seconds - before
        return time.process_time() - started

    def rate(self, seconds: float) -> tuple[float, int]:
        """CPU seconds a loop, of a run of about so long."""
        loops = 1 << 16
        while (took := self.make(loops)) < seconds:
            loops = int(loops * min(16, max(2.0, 1.2 * seconds / max(took, 1e-4))))
        return took / loops, loops


def warm(runs: Runs, seconds: float) -> None:
    """Run until traces are compiled and good, or for so many CPU seconds."""
    started, quiet = time.process_time(), 0
    while quiet < 3 and time.process_time() - started < seconds:
        runs.make(1 << 22)
        quiet = quiet + 1 if runs.traces is not None and runs.traces.loops and not runs.traces.compiled else 0


def measure(row: Row, seconds: float, patience: float) -> str:
    machine = row.machine()
    plain, traced = (Runs(machine, row.program, traces) for traces in (None, HOT_SECONDS))
    warm(traced, patience)
    fast, loops = traced.rate(seconds)
    slow, _ = plain.rate(seconds)
    report = traced.traces
    assert report is not None
    interpreter = machine.in_c(row.program)
    native = None
    if interpreter is not None:
        started = time.process_time()
        interpreter.run(machine.steps(traced.loops, ended=False))
        native = (time.process_time() - started) / traced.loops
        found = machine.read(traced.runner.raw_card)
        assert all(getattr(found, name) == getattr(interpreter.state, name) for name in ("memory", "program_counter"))
    others = Runs(machine, row.program, None)
    others.make(1 << 20)
    again = Runs(machine, row.program, 0.0)
    again.make(1 << 20)
    assert same(again.runner.raw_card, others.runner.raw_card)
    times = "" if native is None else f"{native / fast:6.2f} x C  {native / slow:6.2f} x C"
    return (f"{row.name:<36} {1e9 * fast:7.2f} ns {1e9 * slow:7.2f} ns  {slow / fast:6.1f}  {times}  "
            f"{report.loops / max(1, loops):4.0%} in traces, {report.states} states, {traced.compiling:.1f} s")


def same(one: Any, other: Any) -> bool:
    assert isinstance(one, PackedCard)
    return all(np.array_equal(field, other.fields[name]) for name, field in one.fields.items())


def random_program(rng: random.Random, cells: int, instructions: int) -> Program:
    """Instructions that jump anywhere: what comes back depends on the data, and little is hot for long."""
    code = [Subleq(rng.randrange(cells), rng.randrange(cells), rng.randrange(instructions)) for _ in range(instructions)]
    return Program((*code, Halt()), tuple(rng.randrange(-1 << 15, 1 << 15) for _ in range(cells)),
                   tuple(Symbol(f"c{i}", i) for i in range(cells)))


def measure_random(count: int, seconds: float) -> None:
    """Whole runs, with sampling and compiling, against runs without traces."""
    machine = SubleqMachine(word_bits=16, memory=400, instructions=601, design="two-layer", precision="float32")
    totals = [0.0, 0.0]
    for seed in range(count):
        rng = random.Random(seed)
        program = random_program(rng, 400, 600)
        took = []
        _, loops = Runs(machine, program, None).rate(seconds)
        for traces in (None, 0.25):
            took.append(Runs(machine, program, traces).make(loops))
        totals = [total + own for total, own in zip(totals, took, strict=True)]
        print(f"random {seed}: {loops:,} loops, {took[0]:.2f} s, with traces {took[1]:.2f} s: {took[1] / took[0]:.3f}")
    print(f"all: {totals[1] / totals[0]:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose names have one of these, with commas between them")
    parser.add_argument("--seconds", type=float, default=0.3, help="CPU seconds of a timed run")
    parser.add_argument("--patience", type=float, default=20.0, help="CPU seconds of a warm-up at most")
    parser.add_argument("--random", type=int, default=0, help="measure so many random programs instead")
    given = parser.parse_args()
    if given.random:
        measure_random(given.random, given.seconds)
        return
    print(f"{'a loop':<36} {'traces':>10} {'without':>10}  {'ratio':>6}  {'traces':>10}  {'without':>10}")
    for row in rows():
        if not given.only or any(part in row.name for part in given.only.split(",")):
            print(measure(row, given.seconds, given.patience), flush=True)


if __name__ == "__main__":
    main()
