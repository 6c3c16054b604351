"""What workers cost: jobs a second, and the CPU time a job of 1, 2 and 4 workers, against the plain loop.

    python -m benchmarks.sweep_overhead [--ray] [--jobs 1000]

Jobs are runs of a small machine, about 5 ms each. Half of the plain loop is made before the workers and half after each, so
that the ratio is one of the same minutes. `CPU a job` is the user and system time of this process and its workers, by which
a computer that is busy with other work does not count. The time of starting workers and of the first jobs, which build the
machine, is not counted. The last column is the cost of a single call that does nothing.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from punchcard.sweep.campaign import MEASURE
from punchcard.sweep.chunk import run_job
from punchcard.sweep.dispatch import dispatch
from punchcard.sweep.job import SweepJob
from punchcard.sweep.plan import Builds, Changes, Sweep
from punchcard.sweep.trial import measure
from punchcard.workers.executor import workers_of

JOBS, LIMIT, CALLS = 1000, 60.0, 200
EXAMPLES = Path(__file__).parent.parent / "examples"


def jobs() -> list[SweepJob]:
    return Sweep("overhead", [Builds("multiply.subleq", folder=EXAMPLES, values={"a": 6, "b": 3}, word_bits=8,
                                     design="two-layer")],
                 [Changes("weight-noise", amount=1e-9)], seeds=JOBS, loops=20).jobs


def plain(every: list[SweepJob]) -> tuple[float, float]:
    """Seconds of the plain loop, and its CPU seconds."""
    run_job(measure, every[0], LIMIT)
    began, used = time.perf_counter(), time.process_time()
    for job in every:
        run_job(measure, job, LIMIT)
    return time.perf_counter() - began, time.process_time() - used


class Used(NamedTuple):
    """Seconds of all jobs, their CPU seconds in this process and in the workers, and seconds of an empty call."""

    wall: float
    here: float
    workers: float
    call: float


def on(workers: AbstractContextManager[Executor], count: int, every: list[SweepJob]) -> Used:
    """All jobs on so many workers."""
    with workers as executor:
        for future in [executor.submit(time.sleep, 0.5) for _ in range(count)]:
            future.result()
        dispatch(every[: 4 * count], MEASURE, lambda rows: None, executor, workers=count, limit=LIMIT)
        before = _worker_seconds(executor, count)
        began, used = time.perf_counter(), time.process_time()
        dispatch(every, MEASURE, lambda rows: None, executor, workers=count, limit=LIMIT)
        took, here = time.perf_counter() - began, time.process_time() - used
        spent = _worker_seconds(executor, count) - before
        began = time.perf_counter()
        for _ in range(CALLS):
            executor.submit(abs, 1).result()
        return Used(took, here, spent, (time.perf_counter() - began) / CALLS)


def _worker_seconds(executor: Executor, count: int) -> float:
    """CPU seconds that all workers have used so far: each is asked, since each is held until all have answered."""
    asked = [executor.submit(_own_seconds) for _ in range(count)]
    return sum(dict(future.result() for future in asked).values())


def _own_seconds() -> tuple[int, float]:
    time.sleep(0.3)
    return os.getpid(), time.process_time()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--jobs", type=int, default=JOBS)
    given = parser.parse_args()
    every = jobs()[: given.jobs]
    half, make = every[: len(every) // 2], partial(workers_of, ray=given.ray or None)
    before = plain(half)
    print("| workers | jobs a second | times the plain loop | CPU ms a job | of it dispatching | times the plain loop | "
          "empty call, ms |\n|---|---|---|---|---|---|---|")
    for count in (1, 2, 4):
        used = on(make(count), count, every)
        after = plain(half)
        wall, cpu = (one + two for one, two in zip(before, after, strict=True))
        before = after
        print(f"| plain loop | {len(every) / wall:.0f} | | {1000 * cpu / len(every):.2f} | | | |\n"
              f"| {count} | {len(every) / used.wall:.0f} | {wall / used.wall:.2f} | "
              f"{1000 * (used.here + used.workers) / len(every):.2f} | {1000 * used.here / len(every):.3f} | "
              f"{(used.here + used.workers) / cpu:.3f} | {1000 * used.call:.2f} |", flush=True)


if __name__ == "__main__":
    from benchmarks import sweep_overhead

    sweep_overhead.main()  # workers know functions by the name of their module
