"""Some jobs made by one worker in one call. Whatever a job does, it gives a row: what went wrong is in its status.

    ok         it was measured, right or wrong
    declined   the engine declines these weights
    refused    what the job asks for cannot be built or run
    error      another exception
    timeout    it took more than the seconds that it may
    memory     it wanted more memory than there is
    died       its worker ended, each time that it was tried
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from punchcard.errors import PunchcardError, printable
from punchcard.lazy import import_name

Job = TypeVar("Job")
MOST_TEXT = 500


class TooLong(Exception):
    """A job took more than its seconds."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TooLong` after so many seconds, where this process can ask for it: in its main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run_chunk(work: str, jobs: Sequence[Any], limit: float) -> list[dict[str, Any]]:
    """What the function "module:name" gives for each job, with `status`, `wall` and `worker`."""
    function, worker = import_name(work), f"{socket.gethostname()}:{os.getpid()}"
    return [{"worker": worker, **run_job(function, job, limit)} for job in jobs]


def run_job(function: Callable[[Job], dict[str, Any]], job: Job, limit: float) -> dict[str, Any]:
    began = time.perf_counter()
    try:
        with time_limit(limit):
            row = {"status": "ok", **function(job)}
    except TooLong:
        row = failed_row("timeout", f"more than {limit:g} seconds")
    except MemoryError as error:
        row = failed_row("memory", str(error) or "no memory is left")
    except PunchcardError as error:
        row = failed_row("refused", str(error))
    except Exception as error:
        short = "can't allocate memory" in str(error) or "Cannot allocate memory" in str(error)
        row = failed_row("memory" if short else "error", f"{type(error).__name__}: {error}")
    return {**row, "wall": time.perf_counter() - began}


def failed_row(status: str, message: str) -> dict[str, Any]:
    """The row of a job that was not measured."""
    return {"status": status, "message": printable(message)[:MOST_TEXT]}
