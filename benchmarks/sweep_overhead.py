"""What a worker costs: jobs a second and milliseconds a job for 1, 2 and 4 workers, against the plain loop.

    python benchmarks/sweep_overhead.py [--ray]

Jobs are runs of a small machine, about 5 ms each. The time of starting workers and of the first job, which builds the
machine, is not counted. The last column is the cost of a single call that does nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from pathlib import Path

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


def plain(every: list[SweepJob]) -> float:
    """Seconds of the plain loop."""
    run_job(measure, every[0], LIMIT)
    began = time.perf_counter()
    for job in every:
        run_job(measure, job, LIMIT)
    return time.perf_counter() - began


def on(workers: AbstractContextManager[Executor], count: int, every: list[SweepJob]) -> tuple[float, float]:
    """Seconds of all jobs on so many workers, and of one empty call."""
    with workers as executor:
        for future in [executor.submit(time.sleep, 0.5) for _ in range(count)]:
            future.result()
        dispatch(every[: 4 * count], MEASURE, lambda rows: None, executor, workers=count, limit=LIMIT)
        began = time.perf_counter()
        dispatch(every, MEASURE, lambda rows: None, executor, workers=count, limit=LIMIT)
        took = time.perf_counter() - began
        began = time.perf_counter()
        for _ in range(CALLS):
            executor.submit(abs, 1).result()
        return took, (time.perf_counter() - began) / CALLS


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ray", action="store_true")
    ray = parser.parse_args().ray
    every = jobs()
    alone = plain(every)
    print(f"plain loop: {JOBS / alone:.0f} jobs a second, {1000 * alone / JOBS:.2f} ms a job")
    make: Callable[[int], AbstractContextManager[Executor]] = lambda count: workers_of(count, ray or None)  # noqa: E731
    for count in (1, 2, 4):
        took, call = on(make(count), count, every)
        print(f"{count} {'actors of Ray' if ray else 'processes'}: {JOBS / took:.0f} jobs a second, {alone / took:.2f} "
              f"times the plain loop; {1000 * call:.2f} ms for an empty call")
