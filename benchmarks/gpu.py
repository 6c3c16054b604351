"""Batches on a GPU: instructions a second in all, and every machine's final memory compared with the interpreter's.

    python benchmarks/gpu.py [--machines 67584] [--loops 50000] [--columns 64 1024] [--design two-layer] [--explore]

It needs an NVIDIA GPU and its driver. `make gpu` runs it. Two batches for each size: one program with data of its own for
every machine, and random programs, of which some halt. Then `run_batch(device="cuda")` is compared with the CPU's. The exit
status is 0 if everything agrees. With --explore other shapes of the groups are timed too.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from punchcard import build, load
from punchcard.card.packed import PackedCard
from punchcard.engines import Controls
from punchcard.engines.lowered.compiled_model import CompiledModel
from punchcard.engines.lowered.gpu.batch import GpuBatch
from punchcard.engines.lowered.gpu.cuda import Cuda
from punchcard.engines.lowered.gpu.device import GROUP_SIZES, LaunchShape
from punchcard.machines.subleq.fast import decode, run
from punchcard.machines.subleq.isa import Halt, Program, Subleq
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.machines.subleq.workloads import WORD_BITS, multiply, workloads

PROGRAMS = 64
"""Random programs of a batch; every machine has words of its own."""
CHUNK = 64
TITLES = ("batch", "machines", "memory, threads", "bytes a machine", "compared instructions", "a second, kernels",
          "a second, all", "a second, long run", "halted", "declined", "equal to the interpreter", "begin, s")
LONG = 20
"""How many times the compared loops the long run makes."""


@dataclass(frozen=True)
class Job:
    """Machines for one process of the interpreter: programs, first words and steps."""

    programs: list[Program]
    words: list[list[int]]
    steps: list[int]

    def run(self) -> list[list[int]]:
        """The words at the end, then the program counter."""
        found = []
        for program, words, steps in zip(self.programs, self.words, self.steps, strict=True):
            counter = run(decode(program), memory := list(words), WORD_BITS, steps)
            found.append([*memory, counter])
        return found


def random_program(rng: random.Random, cells: int, instructions: int, *, halts: bool) -> Program:
    """A program that halts only at its end, or never: then the last instruction before it jumps in any case."""
    code = [Subleq(rng.randrange(cells), rng.randrange(cells), rng.randrange(instructions - 1))
            for _ in range(instructions - 1)]
    if not halts:
        code[-1] = replace(code[-1], a=code[-1].b)
    return Program.create([*code, Halt()], [0] * cells)


class Batch:
    """Machines of one size, with their programs and first words."""

    def __init__(self, name: str, columns: int, machines: int, design: str) -> None:
        rng, numbers = random.Random(1), np.random.default_rng(1)
        workload = next(iter(workloads(design, columns)))
        assert not isinstance(workload, str), workload
        self.name = f"{name}, {columns:,} columns"
        self.machine = SubleqMachine(**workload.options)
        cells = self.machine.sizes.memory
        if name == "multiply":
            programs = [multiply()]
            words = np.zeros((machines, cells), dtype=np.int64)
            words[:, : len(programs[0].memory)] = programs[0].memory
            words[:, :2] = numbers.integers(1, 1 << 15, (machines, 2))
        else:
            programs = [random_program(rng, cells, self.machine.sizes.instructions, halts=i % 8 == 0)
                        for i in range(PROGRAMS)]
            words = numbers.integers(-(1 << 15), 1 << 15, (machines, cells))
        self.programs = [programs[i % len(programs)] for i in range(machines)]
        self.words: list[list[int]] = words.tolist()
        first = [self.machine.pack(one) for one in programs]
        self.cards = [self._card(first[i % len(first)], words[i]) for i in range(machines)]

    def _card(self, first: PackedCard, words: Sequence[int]) -> PackedCard:
        card = first.snapshot()
        self.machine.layout.put_numbers(card, "memory", {"memory": words}, signed=True)
        return card

    def expected(self, pool: ProcessPoolExecutor, steps: list[int]) -> list[list[int]]:
        """What the interpreter has after so many steps of each machine."""
        parts = [slice(at, at + CHUNK) for at in range(0, len(steps), CHUNK)]
        jobs = [Job(self.programs[part], self.words[part], steps[part]) for part in parts]
        return [state for states in pool.map(Job.run, jobs) for state in states]


def measure(batch: Batch, device: Cuda, pool: ProcessPoolExecutor, loops: int) -> bool:
    """One line of the table; whether all machines agree with the interpreter."""
    machine = batch.machine
    compiled_model = CompiledModel(machine.weights, machine.layout, batch.cards[0])
    if not all(compiled_model.fits(machine.layout, card) for card in batch.cards):
        raise SystemExit("a card does not fit the code")
    started = time.perf_counter()
    gpu = GpuBatch(compiled_model, batch.cards, device)
    gpu.run(1, Controls(machine.halting))  # the code is compiled before anything is timed
    begun = time.perf_counter() - started
    started = time.perf_counter()
    ends = gpu.run(loops - 1, Controls(machine.halting))
    gpu.card(0)  # brings everything back
    wall = time.perf_counter() - started
    made = ends.loops + 1
    steps = [machine.steps(int(count), ended=bool(matched >= 0)) for count, matched in zip(made, ends.matched, strict=True)]
    expected = batch.expected(pool, steps)
    states = machine.read_all([gpu.card(i) for i in range(len(batch.cards))])
    same = sum([*state.memory, state.program_counter] == wanted for state, wanted in zip(states, expected, strict=True))
    long = gpu.run(LONG * loops, Controls(machine.halting))
    print(f"| {batch.name} | {len(batch.cards):,} | {'shared' if gpu.shape.shared else 'global'}, {gpu.shape.threads} | "
          f"{gpu.strips.size:,} | {int(ends.loops.sum()):.3g} | {ends.loops.sum() / ends.seconds:.3g} | "
          f"{ends.loops.sum() / wall:.3g} | {long.loops.sum() / long.seconds:.3g} | {int((ends.matched >= 0).sum()):,} | "
          f"{int(ends.declined.sum())} | {same:,} | {begun:.1f} |", flush=True)
    return same == len(batch.cards)


def explore(batch: Batch, device: Cuda, loops: int) -> None:
    """Other shapes, timed."""
    machine = batch.machine
    compiled_model = CompiledModel(machine.weights, machine.layout, batch.cards[0])
    for shared in (True, False):
        for threads in GROUP_SIZES:
            gpu = GpuBatch(compiled_model, batch.cards[:1], device, LaunchShape(threads, shared=False))
            gpu.prepare(machine.halting)
            if shared and gpu.strips.size * threads > device.limits.shared_of_group:
                continue
            gpu = GpuBatch(compiled_model, batch.cards, device, LaunchShape(threads, shared))
            gpu.run(1, Controls(machine.halting))
            ends = gpu.run(loops, Controls(machine.halting))
            print(f"    {batch.name}: {'shared' if shared else 'global'}, {threads} threads: "
                  f"{ends.loops.sum() / ends.seconds:.3g}", flush=True)


def calls_agree() -> bool:
    """Whether `run_batch` gives on the GPU what it gives on the CPU: random programs, and an image that prints."""
    rng = random.Random(2)
    small = SubleqMachine(memory=24, instructions=37, design="paper")
    programs = [random_program(rng, 24, 37, halts=i % 2 == 0) for i in range(1000)]
    image = load(Path(__file__).parent.parent / "examples" / "von_neumann" / "hello.asq")
    agreed = []
    for machine, given in ((small, programs), (build(image, memory=256), [image] * 100)):
        results = [machine.run_batch(given, max_steps=2000, device=device) for device in ("cuda", "cpu")]
        ends = [[(one.state, one.steps, one.reason, one.output) for one in batch.results] for batch in results]
        agreed.append(ends[0] == ends[1])
        print(f"run_batch of {len(given):,} on {machine!r}: {results[0].engine} and {results[1].engine} "
              f"{'agree' if agreed[-1] else 'DIFFER'}{''.join(f'; {note}' for note in results[0].notes)}", flush=True)
    return all(agreed)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=67584)
    parser.add_argument("--loops", type=int, default=50_000)
    parser.add_argument("--columns", type=int, nargs="+", default=[64, 1024])
    parser.add_argument("--design", default="two-layer")
    parser.add_argument("--explore", action="store_true")
    options = parser.parse_args(arguments)
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        list(pool.map(Job.run, [Job([], [], [])]))
        device = Cuda()
        print(f"{device.limits.name}, SUBLEQ, design {options.design}, {WORD_BITS}-bit words\n")
        print(f"| {' | '.join(TITLES)} |\n{'|---' * len(TITLES)}|")
        agreed = []
        for columns in options.columns:
            for name in ("multiply", "random"):
                batch = Batch(name, columns, options.machines, options.design)
                if options.explore:
                    explore(batch, device, options.loops)
                agreed.append(measure(batch, device, pool, options.loops))
        agreed.append(calls_agree())
    return 0 if all(agreed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
