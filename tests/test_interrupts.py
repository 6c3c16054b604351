"""Ctrl-C ends a command within half a second, also where no run asks whether to stop."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from punchcard.cli.terminal import PATIENCE, interruptible
from punchcard.learning.planning import plan


@contextmanager
def stopping(*, keeps: bool = False) -> Iterator[Callable[[], bool]]:
    """A block in which Ctrl-C is pressed at once."""
    with interruptible(keeps=keeps) as (interrupted, _):
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        yield interrupted


def busy(seconds: float) -> None:
    """Work in Python and NumPy, in which nobody asks anything; most of the time it waits."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        np.ones(100).sum()
        time.sleep(0.001)


def test_work_that_never_asks_ends_at_once() -> None:
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), stopping(keeps=True):
        busy(20)
    assert time.monotonic() - begun < 5  # 0.5 s where nothing else runs


def test_numpy_is_interrupted_before_the_transformer_runs() -> None:
    x = np.linspace(-1, 1, 10)[:, None]
    with pytest.raises(KeyboardInterrupt), stopping(keeps=True):
        plan(x, x, epochs=300_000, rate=1e-6)


def test_a_run_that_asks_ends_by_itself() -> None:
    with stopping() as interrupted:
        while not interrupted():
            busy(0.01)
        busy(3 * PATIENCE)  # what it does to end is not disturbed


def test_a_slow_loop_is_waited_for_where_something_is_kept() -> None:
    with stopping(keeps=True) as interrupted:
        assert not interrupted()
        busy(3 * PATIENCE)
        assert interrupted()


def test_a_slow_loop_is_not_waited_for_where_nothing_is_kept() -> None:
    def run() -> None:
        with stopping() as interrupted:
            assert not interrupted()
            busy(20)

    with pytest.raises(KeyboardInterrupt):
        run()


def test_nothing_is_left_behind() -> None:
    before = threading.active_count()
    with interruptible(keeps=False) as (interrupted, _):
        assert not interrupted()
    assert threading.active_count() == before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
