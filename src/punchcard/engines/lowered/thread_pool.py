"""Threads that do the jobs of a batch. The generated code runs outside of Python's lock, so they use all cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue

from punchcard.engines.lowered.card_group import Job


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ThreadPool:
    """Runs jobs on threads and returns them when they are finished."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.pending = 0
        """Jobs that were submitted and are not finished."""
        self._todo: SimpleQueue[Job | None] = SimpleQueue()
        self._done: SimpleQueue[Job] = SimpleQueue()

    def submit(self, job: Job) -> None:
        self._todo.put(job)
        self.pending += 1

    def next_finished(self) -> Job:
        """Wait for a job to come back."""
        job = self._done.get()
        self.pending -= 1
        return job

    def cancel_waiting(self) -> list[Job]:
        """Take back the jobs that no thread has begun. Those that are running still finish."""
        jobs: list[Job] = []
        while True:
            try:
                job = self._todo.get_nowait()
            except Empty:
                return jobs
            if job is not None:
                jobs.append(job)
                self.pending -= 1

    @contextmanager
    def started(self) -> Iterator[None]:
        """The threads live inside the block; at its end, also by Ctrl-C, all have left the cards alone."""
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(self.threads)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.cancel_waiting()
            for _ in threads:
                self._todo.put(None)
            for thread in threads:
                thread.join()

    def _work(self) -> None:
        while (job := self._todo.get()) is not None:
            job.work()
            self._done.put(job)
