"""Ctrl-C is answered: by the run, which ends after its loop, or else by an exception.

A run asks between two loops whether to stop. While it is prepared, or while NumPy computes, it does not ask. Then a request
that is not answered in time becomes what a second Ctrl-C is, an exception at once. A run that writes a file at its end, and
has begun to ask, is waited for.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 0.3
"""Seconds that a request may go unanswered."""
LOOK_EVERY = 0.1


@contextmanager
def watch_interrupts(asked: Callable[[], bool], *, keeps: bool) -> Iterator[Callable[[], bool]]:
    """The question `asked` for a run, watched: a request that the run does not ask for in time ends the block."""
    ended, main = threading.Event(), threading.main_thread().ident
    listens = stopping = False

    def interrupted() -> bool:
        nonlocal listens, stopping
        listens = True
        stopping = stopping or asked()
        return stopping

    def watch() -> None:
        while not ended.wait(LOOK_EVERY):
            if asked() and not ended.wait(PATIENCE):
                if not stopping and not (keeps and listens) and main is not None:
                    signal.pthread_kill(main, signal.SIGINT)
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield interrupted
    finally:
        ended.set()
        watcher.join()
