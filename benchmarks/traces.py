"""Loops a second with traces, without, and in the interpreter in C: ratios inside one run, on one core, set-up excluded.

    python benchmarks/traces.py                         every row; --only subleq,riscv for some, --seconds 1 for longer runs
    python benchmarks/traces.py --random 8              random programs, and long ones: what traces cost where nothing is hot
    python benchmarks/traces.py --short                 runs of examples from beginning to end, with traces and without

Every figure is CPU time of this process. A row is warmed up first: its traces are compiled then, which the last column has.
Then traces, the usual code and the interpreter have their turns, and the best of each counts. The card with traces is
compared with the interpreter's after the last loop, and with the usual code's where everything is hot from the first loop.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

import punchcard as pc
from punchcard.card.packed import PackedCard
from punchcard.engines import Controls, EngineCache, prepare
from punchcard.machines.assembler import Symbol
from punchcard.machines.base import AnyMachine
from punchcard.machines.riscv.languages.assembly.assembler import assemble as riscv
from punchcard.machines.riscv.workloads import SIEVE
from punchcard.machines.subleq.isa import Halt, Program, Subleq
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.machines.subleq.text import assemble as subleq
from punchcard.machines.subleq.workloads import multiply
from punchcard.machines.von_neumann.languages.asq.assembler import assemble as asq
from punchcard.machines.von_neumann.workloads import COUNT

try:
    from benchmarks import trace_programs as programs
except ImportError:  # as a script, from this folder
    import trace_programs as programs  # type: ignore[import-not-found,no-redef]

HOT_SECONDS = 0.05
"""Loops before a trace, in these measurements."""
TURNS = 3
GOOD = 0.99
"""The share of loops in traces after which nobody waits for better ones."""
DEFAULT_HOT = Controls().traces
EXAMPLES = Path(__file__).parent.parent / "examples"
SHORT = ("multiply.subleq", "primes.subleq", "von_neumann/hello.asq", "von_neumann/primes.asq", "riscv/hello.c",
         "riscv/collatz.c", "riscv/primes.c", "riscv/life.c")
@dataclass(frozen=True)
class Row:
    """A program that never ends, and sizes of the machine that runs it."""

    name: str
    program: Callable[[], Any]
    sizes: dict[str, Any] = field(default_factory=dict)


def rows() -> Iterator[Row]:
    loops = {"multiply": multiply(), "divisors": subleq(programs.DIVISORS), "sort": subleq(programs.SUBLEQ_SORT)}
    for design in ("two-layer", "paper"):
        for n in (64, 1024, 16384, 65536):
            for name, program in loops.items():
                memory = max(len(program.memory), (n - 3) * 2 // 5)
                sizes: dict[str, Any] = {"memory": memory, "instructions": n - 3 - memory, "design": design,
                                         "precision": "float32"}
                yield Row(f"subleq {design} n={n} {name}", partial(_same, program), sizes)
    yield Row("image count", partial(asq, COUNT), {"word_bits": 16, "memory": 1024})
    for name in programs.IMAGES:
        yield Row(f"image {name}", partial(programs.image, name))
    plain = programs.SORT.replace("mul  t2, t0, s2", "add  t2, t0, s2")
    kinds: dict[str, dict[str, Any]] = {"riscv": {}, "riscv products": {"multiply": True},
                                        "riscv two-layer": {"design": "two-layer"}, "riscv traps": {"privileged": True}}
    for kind, options in kinds.items():
        for name, text in (("xorshift", programs.XORSHIFT), ("sieve", SIEVE),
                           ("sort", programs.SORT if "products" in kind else plain)):
            yield Row(f"{kind} {name}", partial(riscv, text, f"{name}.s"), {"memory": 1024, **options})
    for name, text in (("digits", programs.DIGITS), ("gcd", programs.GCD)):
        yield Row(f"riscv products {name}", partial(riscv, text, f"{name}.s"), {"memory": 1024, **kinds["riscv products"]})
    for name in programs.c_programs():
        yield Row(f"riscv {name}", partial(programs.c_program, name, "rv32i"))


def _same(program: Any) -> Any:
    return program


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

    def loops_of(self, seconds: float) -> int:
        """How many loops take about so many CPU seconds."""
        loops = 1 << 16
        while (took := self.make(loops)) < seconds / 2:
            loops = int(loops * min(16, max(2.0, seconds / max(took, 1e-4))))
        return loops


def warm(runs: Runs, seconds: float) -> None:
    """Run until traces are compiled and most loops are made in them, or for so many CPU seconds."""
    started, quiet, compiled = time.process_time(), 0, 0
    while quiet < 8 and time.process_time() - started < seconds:
        runs.make(1 << 24)
        assert runs.traces is not None
        compiled += runs.traces.compiled
        is_good = compiled and not runs.traces.seconds and runs.traces.loops > GOOD * (1 << 24)
        quiet = quiet + 1 if is_good else 0


def measure(row: Row, seconds: float, patience: float) -> str:
    program = row.program()
    machine = pc.build(program, **row.sizes)
    plain, traced = (Runs(machine, program, traces) for traces in (None, HOT_SECONDS))
    warm(traced, patience)
    counts = traced.loops_of(seconds / TURNS), plain.loops_of(seconds / TURNS)
    fast, slow, native, inside, states = list[float](), list[float](), list[float](), 0, 0
    for turn in range(TURNS):
        fast.append(traced.make(counts[0]) / counts[0])
        assert traced.traces is not None
        inside, states = inside + traced.traces.loops, traced.traces.states
        slow.append(plain.make(counts[1]) / counts[1])
        interpreter, loops = machine.in_c(program), counts[0] if turn < TURNS - 1 else traced.loops
        if interpreter is not None:
            started = time.process_time()
            interpreter.run(machine.steps(loops, ended=False))
            native.append((time.process_time() - started) / loops)
    if interpreter is not None:
        found = machine.read(traced.runner.raw_card)
        assert all(getattr(found, name) == getattr(interpreter.state, name) for name in ("memory", "program_counter"))
    others, again = (Runs(machine, program, traces) for traces in (None, 0.0))
    for runs in (others, again):
        runs.make(1 << 16)
    assert same(again.runner.raw_card, others.runner.raw_card)
    times = f"{min(native) / min(fast):6.2f} x C  {min(native) / min(slow):6.2f} x C" if native else ""
    return (f"{row.name:<36} {1e9 * min(fast):7.2f} ns {1e9 * min(slow):7.2f} ns  {min(slow) / min(fast):6.1f}  {times}  "
            f"{inside / (TURNS * counts[0]):4.0%} in traces, {states} states, {traced.compiling:.1f} s")


def same(one: Any, other: Any) -> bool:
    assert isinstance(one, PackedCard)
    return all(np.array_equal(field, other.fields[name]) for name, field in one.fields.items())


def random_program(rng: random.Random, cells: int, instructions: int) -> Program:
    """Instructions that jump anywhere: what comes back depends on the data, and little is hot for long."""
    code = [Subleq(rng.randrange(cells), rng.randrange(cells), rng.randrange(instructions)) for _ in range(instructions)]
    return Program((*code, Halt()), tuple(rng.randrange(-1 << 15, 1 << 15) for _ in range(cells)),
                   tuple(Symbol(f"c{i}", i) for i in range(cells)))


def long_program(rng: random.Random, cells: int, instructions: int) -> Program:
    """A cycle so long that no instruction of it is hot: each goes on with the next, the last one with the first."""
    code = [Subleq(rng.randrange(cells), rng.randrange(cells), i + 1) for i in range(instructions - 1)]
    code.append(Subleq(cells, cells, 0))
    return Program((*code, Halt()), (*(rng.randrange(-1 << 15, 1 << 15) for _ in range(cells)), 0),
                   tuple(Symbol(f"c{i}", i) for i in range(cells + 1)))


def measure_random(name: str, make: Callable[[random.Random, int, int], Program], instructions: int, count: int,
                   seconds: float) -> None:
    """Whole runs, with sampling and compiling, against runs without traces; the better of two each."""
    machine = SubleqMachine(word_bits=16, memory=401, instructions=instructions + 1, design="two-layer", precision="float32")
    totals = [0.0, 0.0]
    for seed in range(count):
        rng = random.Random(seed)
        program = make(rng, 400, instructions)
        loops = Runs(machine, program, None).loops_of(seconds)
        took = [inf, inf]
        for _ in range(2):
            for way, traces in enumerate((None, DEFAULT_HOT)):
                runs = Runs(machine, program, traces)
                took[way] = min(took[way], runs.make(loops))
        totals = [total + own for total, own in zip(totals, took, strict=True)]
        inside = runs.traces.loops / loops if runs.traces is not None else 0
        print(f"{name} {seed}: {loops:,} loops, {took[0]:.2f} s, with traces {took[1]:.2f} s: {took[1] / took[0]:.3f}, "
              f"{inside:.0%} in traces")
    print(f"all: {totals[1] / totals[0]:.3f}")


def measure_short(seconds: float) -> None:
    """Examples from beginning to end on a machine that has run them before: the best run with traces and without."""
    for name in SHORT:
        program = pc.load(EXAMPLES / name)
        machine, took, loops = pc.build(program), {None: inf, DEFAULT_HOT: inf}, 0
        machine.run(program, engine="lowered")
        started = time.process_time()
        while time.process_time() - started < seconds:
            for traces, best in took.items():
                before = time.process_time()
                loops = machine.run(program, engine="lowered", controls=Controls(traces=traces)).loops
                took[traces] = min(best, time.process_time() - before)
        print(f"{name:<36} {loops:>10,} loops {1e3 * took[None]:8.2f} ms, with traces {1e3 * took[DEFAULT_HOT]:8.2f} ms: "
              f"{took[DEFAULT_HOT] / took[None]:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose names have one of these, with commas between them")
    parser.add_argument("--seconds", type=float, default=0.3, help="CPU seconds of a timed run")
    parser.add_argument("--patience", type=float, default=60.0, help="CPU seconds of a warm-up at most")
    parser.add_argument("--random", type=int, default=0, help="measure so many random programs instead")
    parser.add_argument("--short", action="store_true", help="measure short runs instead")
    given = parser.parse_args()
    if given.random or given.short:
        if given.random:
            measure_random("random", random_program, 600, given.random, given.seconds)
            measure_random("long", long_program, 30_000, given.random, given.seconds)
        if given.short:
            measure_short(given.seconds)
        return
    print(f"{'a loop':<36} {'traces':>10} {'without':>10}  {'ratio':>6}  {'traces':>10}  {'without':>10}")
    for row in rows():
        if not given.only or any(part in row.name for part in given.only.split(",")):
            print(measure(row, given.seconds, given.patience), flush=True)


if __name__ == "__main__":
    main()
