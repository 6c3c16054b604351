"""What workers cost: jobs a second, and the CPU time a job of 1, 2 and 4 workers, against the plain loop.

    python -m benchmarks.sweep_overhead [--ray] [--jobs 1000]

Jobs are runs of a small machine, about 5 ms each. They are made in rounds. A round makes the same jobs three times, by the
same processes: in the plain loop on one worker, in plain loops on all workers side by side, and by `dispatch`. So what
differs between the last two is dispatching alone. A plain loop in this process would be no measure: on a busy Linux the
scheduler gives each session its share, and workers have sessions of their own. `CPU` is the user and system time of this
process and its workers. The time of starting workers and of the first jobs, which build the machine, is not counted. The
last column is the cost of a single call that does nothing.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from punchcard.sweep.campaign import MEASURE
from punchcard.sweep.chunk import run_job
from punchcard.sweep.dispatch import dispatch
from punchcard.sweep.job import SweepJob
from punchcard.sweep.plan import Builds, Changes, Sweep
from punchcard.sweep.trial import measure
from punchcard.workers.executor import workers_of

JOBS, ROUNDS, LIMIT, CALLS = 1000, 5, 60.0, 200
EXAMPLES = Path(__file__).parent.parent / "examples"


def jobs(count: int) -> list[SweepJob]:
    return Sweep("overhead", [Builds("multiply.subleq", folder=EXAMPLES, values={"a": 6, "b": 3}, word_bits=8,
                                     design="two-layer")],
                 [Changes("weight-noise", amount=1e-9)], seeds=count, loops=20).jobs


def plain(every: list[SweepJob]) -> None:
    """The plain loop."""
    for job in every:
        run_job(measure, job, LIMIT)


class Used(NamedTuple):
    """Seconds of some jobs, and the CPU seconds of this process and of the workers."""

    wall: float
    here: float
    workers: float


class Round(NamedTuple):
    """The same jobs in the plain loop on one worker, in plain loops on all of them, and dispatched."""

    one: Used
    side_by_side: Used
    dispatched: Used


class Workers:
    """So many workers, all of them started and warm."""

    def __init__(self, executor: Executor, count: int) -> None:
        self.executor, self.count = executor, count
        self._spent()
        self._plain_on_all([jobs(2)] * count)

    def round(self, every: list[SweepJob]) -> Round:
        return Round(self._used(lambda: self.executor.submit(plain, every).result()),
                     self._used(lambda: self._plain_on_all([every[place :: self.count] for place in range(self.count)])),
                     self._used(lambda: dispatch(every, MEASURE, lambda rows: None, self.executor, workers=self.count,
                                                 limit=LIMIT)))

    def empty_call(self) -> float:
        """Seconds of a call that does nothing."""
        began = time.perf_counter()
        for _ in range(CALLS):
            self.executor.submit(abs, 1).result()
        return (time.perf_counter() - began) / CALLS

    def _plain_on_all(self, parts: list[list[SweepJob]]) -> None:
        for future in [self.executor.submit(plain, part) for part in parts]:
            future.result()

    def _used(self, work: Callable[[], object]) -> Used:
        before, began, used = self._spent(), time.perf_counter(), time.process_time()
        work()
        wall, here = time.perf_counter() - began, time.process_time() - used
        return Used(wall, here, self._spent() - before)

    def _spent(self) -> float:
        """CPU seconds that all workers have used so far."""
        found: dict[int, float] = {}
        while len(found) < self.count:  # a worker that is slow to answer may leave its call to another
            asked = [self.executor.submit(_own_seconds) for _ in range(self.count)]
            found |= dict(future.result() for future in asked)
        return sum(found.values())


def _own_seconds() -> tuple[int, float]:
    time.sleep(0.05)
    return os.getpid(), time.process_time()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--jobs", type=int, default=JOBS)
    given = parser.parse_args()
    size, make = max(1, given.jobs // ROUNDS), partial(workers_of, ray=given.ray or None)
    every = jobs(size * ROUNDS)
    print("| workers | jobs a second, plain loop | dispatched | times | CPU ms a job, plain loops side by side | "
          "dispatched | times (rounds) | of it in this process | empty call, ms |\n|---|---|---|---|---|---|---|---|---|")
    for count in (1, 2, 4):
        with make(count) as executor:
            workers = Workers(executor, count)
            rounds = [workers.round(every[first : first + size]) for first in range(0, len(every), size)]
            call = workers.empty_call()
        rates = [len(every) / sum(each[kind].wall for each in rounds) for kind in (0, 2)]
        costs = [1000 * sum(each[kind].here + each[kind].workers for each in rounds) / len(every) for kind in (1, 2)]
        ratios = sorted(sum(each.dispatched[1:]) / sum(each.side_by_side[1:]) for each in rounds)
        here = 1000 * sum(each.dispatched.here for each in rounds) / len(every)
        print(f"| {count} | {rates[0]:.0f} | {rates[1]:.0f} | {rates[1] / rates[0]:.2f} | {costs[0]:.2f} | {costs[1]:.2f} | "
              f"{median(ratios):.3f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) | {here:.3f} | {1000 * call:.2f} |", flush=True)


if __name__ == "__main__":
    from benchmarks import sweep_overhead

    sweep_overhead.main()  # workers know functions by the name of their module
