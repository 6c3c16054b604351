"""Machines side by side, as something to time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from punchcard.card.packed import PackedCard
from punchcard.engines import Controls, Run, prepare_batch
from punchcard.errors import PunchcardError

if TYPE_CHECKING:
    from punchcard.benchmark.measurements import TimedProgram

BATCHED = "lowered"
"""The engine that runs machines side by side; others run them one after the other."""


def batch_name(machines: int) -> str:
    """What that engine with so many machines is called."""
    return f"{BATCHED} x {machines:,}"


class BatchRuns:
    """Machines side by side as a contender: steps are those of all together. Every run goes on where the last one ended."""

    def __init__(self, machines: int, bench: TimedProgram) -> None:
        self.bench, self.machines = bench, machines
        self.name = batch_name(machines)
        machine, card = bench.machine, PackedCard.of(bench.machine.layout, bench.card)
        self.batch = prepare_batch(BATCHED, machine.weights, machine.layout, [card] * machines, cache=machine.engine_cache)
        self.notes = list(self.batch.notes)
        self.loops = 0
        self.last: list[Run] = []

    @property
    def compile_seconds(self) -> float:
        return self.batch.compile_seconds

    def make(self, steps: int) -> float:
        loops = -(-steps // self.machines)
        compiled, started = self.batch.compile_seconds, time.perf_counter()
        self.last = self.batch.run(loops, Controls(until=self.bench.machine.halting))
        took = time.perf_counter() - started - (self.batch.compile_seconds - compiled)
        self.loops += loops
        short = next((ran for ran in self.last if (ran.loops, ran.reason) != (loops, "loops")), None)
        if short is not None:
            raise PunchcardError(f"{self.bench.title}: {self.name} ended after {short.loops} of {loops} loops"
                                 f"{''.join(f': {note}' for note in short.notes)}")
        return took * steps / (loops * self.machines)

    def check(self) -> None:
        """Compare all cards with the interpreter."""
        if not self.bench.agree(self.loops, [ran.raw_card for ran in self.last]):
            raise PunchcardError(f"{self.bench.title}: {self.name} does not give what {self.bench.rival} gives after "
                                 f"{self.loops} loops")

    def compare(self, times: float) -> None:
        """Note how much of the threads is used; `times` is the ratio to one machine alone."""
        threads = min(self.batch.threads, self.machines)
        self.notes.append(f"{times / threads:.2f} times ({threads} thread{'s' * (threads != 1)} x one machine alone)")
