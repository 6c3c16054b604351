"""Executors for parallel work: processes of this computer, or a Ray cluster."""

from __future__ import annotations

from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext

from punchcard.budget import limit
from punchcard.workers.cores import cores
from punchcard.workers.lanes import LaneExecutor, ProcessLane

OVERHEAD = 2 << 30
"""Bytes of a worker beside what its job may use: the interpreter and its libraries."""


def workers_of(
    workers: int | None, ray: str | bool | None, executor: Executor | None = None, *, gpu: bool = False
) -> AbstractContextManager[Executor]:
    """So many processes (default: one a core), or the actors of a Ray: True starts one here, an address joins one.

    An executor that is given is used as it is, and not ended. Workers have the memory budget of who starts them.

    gpu   actors have a GPU each (default: one for each GPU); processes of this computer share what is there
    """
    if executor is not None:
        return nullcontext(executor)
    budget = limit()  # a worker, or a thread, would not know what was chosen here
    if ray is not None and ray is not False:
        from punchcard.workers.ray_lane import ray_executor

        return ray_executor("" if ray is True else ray, workers, memory=0 if gpu else budget + OVERHEAD, budget=budget,
                            gpu=gpu)
    return LaneExecutor(worker_count(workers), lambda: ProcessLane(budget + OVERHEAD, budget))


def worker_count(workers: int | None, executor: Executor | None = None) -> int:
    """How many calls are made at a time: by the lanes of an executor, or as asked for, or one a core."""
    lanes: int | None = getattr(executor, "lanes", None)
    found = workers if lanes is None else lanes
    return cores() if found is None else found
