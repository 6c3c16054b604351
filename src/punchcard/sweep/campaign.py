"""A sweep from its jobs to its results: what is already in the folder is not made again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

from punchcard import __version__
from punchcard.errors import SweepError
from punchcard.folders import alone_in
from punchcard.sweep.chunk import run_job
from punchcard.sweep.dispatch import SweepProgress, dispatch
from punchcard.sweep.job import SweepJob
from punchcard.sweep.plan import Sweep
from punchcard.sweep.plan_check import check_sweep
from punchcard.sweep.results import Results, row_of
from punchcard.sweep.trial import measure
from punchcard.workers.executor import worker_count, workers_of

MEASURE = "punchcard.sweep.trial:measure"
SAMPLE_SECONDS = 10.0


def run_sweep(
    sweep: Sweep, folder: str | Path, *, executor: Executor | None = None, workers: int | None = None,
    ray: str | bool | None = None, resume: bool = False, progress: Callable[[SweepProgress], None] | None = None,
) -> Results:
    """Make all jobs of a sweep that the folder does not have yet.

    executor   any executor of `concurrent.futures`; the caller's, who ends it. Default: processes of this computer
    workers    how many workers, default: one a core
    ray        True: start a Ray here; an address: join that one
    resume     complete a folder that has results of this sweep
    progress   called with a `SweepProgress` after each part

    Returns the `Results`.
    """
    if executor is not None and ray:
        raise SweepError(f"ray={ray!r}: an executor is given already")
    check_sweep(sweep)
    jobs = sweep.jobs
    about = {"name": sweep.name, "jobs": len(jobs), "key": sweep.key, "punchcard": __version__, "seeds": sweep.seeds,
             "loops": sweep.loops, "engines": list(sweep.engines)}
    results = Results.begin(folder, about, resume=resume)

    def keep(rows: Sequence[tuple[SweepJob, dict[str, Any]]]) -> None:
        results.add([row_of(job, row) for job, row in rows])

    with alone_in(results.folder):
        made = results.keys()
        left = [job for job in jobs if job.key not in made]
        if not left:
            return results
        with workers_of(workers, ray, executor) as chosen:
            count = worker_count(workers, chosen)
            dispatch(left, MEASURE, keep, chosen, workers=count, limit=sweep.limit, done=len(jobs) - len(left),
                     progress=progress)
    return results


class Estimate(NamedTuple):
    """How many jobs there are, how many are left, and about how many CPU seconds those take.

    `refusals` are the reasons for which jobs of the sample were refused.
    """

    jobs: int
    left: int
    seconds: float
    sampled: int
    refusals: tuple[str, ...]


def estimate(sweep: Sweep, folder: str | Path | None = None) -> Estimate:
    """Make two jobs of some machines, for at most about ten seconds, and say how long the others take by that."""
    check_sweep(sweep)
    made = Results(folder).keys() if folder is not None and os.path.exists(Path(folder) / "sweep.json") else set[str]()
    left = [job for job in sweep.jobs if job.key not in made]
    groups: dict[str, list[SweepJob]] = {}
    for job in left:
        groups.setdefault(job.group, []).append(job)
    began, building, running, sampled = time.process_time(), 0.0, 0.0, 0
    refusals: dict[str, None] = {}
    chosen = list(groups.values())
    for some in chosen[:: max(1, len(chosen) // 16)]:
        times = []
        for job in (some[0], some[-1]):
            start = time.process_time()
            row = run_job(measure, job, sweep.limit)
            if row["status"] == "refused":
                refusals[row["message"]] = None
            times.append(time.process_time() - start)
        sampled += 1
        running += times[1]
        building += max(0.0, times[0] - times[1])
        if time.process_time() - began > SAMPLE_SECONDS:
            break
    per = max(1, sampled)
    seconds = len(left) * running / per + len(groups) * building / per
    return Estimate(len(sweep.jobs), len(left), seconds, sampled, tuple(refusals))
