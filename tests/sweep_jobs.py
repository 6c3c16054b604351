"""Jobs that go wrong, for the tests of sweeps: they are made by workers, which import this file."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WORK = "tests.sweep_jobs:work"
LIMIT = 3.0
"""Seconds of a job."""


@dataclass(frozen=True)
class SmallJob:
    """A job that ends as its name says; `marks` is a folder in which it notes that it was begun."""

    number: int
    what: str = "fine"
    marks: str = ""
    seconds: float = 0.0

    @property
    def key(self) -> str:
        return f"{self.number:06}"

    @property
    def group(self) -> str:
        return "all"


def work(job: SmallJob) -> dict[str, Any]:
    """Make a job."""
    if job.marks:
        (Path(job.marks) / f"{job.number}-{time.monotonic_ns()}").touch()
    time.sleep(job.seconds)
    if job.what == "raises":
        raise ZeroDivisionError("one over nothing")
    if job.what == "hangs":
        time.sleep(1000)
    if job.what == "stuck":  # where Python hears no signal
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        time.sleep(1000)
    if job.what == "eats":
        return {"value": len(bytearray(1 << 34))}
    if job.what == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"value": job.number**2}


def expected(job: SmallJob) -> tuple[str, int | None]:
    """Status and value of a job's row."""
    if job.what == "fine":
        return "ok", job.number**2
    return {"raises": "error", "hangs": "timeout", "stuck": "timeout", "eats": "memory", "dies": "died"}[job.what], None
