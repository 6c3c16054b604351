"""Standard input for machines that look for it and do not wait.

Bytes are read ahead by a thread, so that looking for one takes no time, and the key that leaves is found while the machine
is busy.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

from punchcard.machines.streams import END_OF_INPUT, NOT_YET, LiveInput

PREFIX, LEAVE, HELP = 1, b"xX", b"h?"
"""Ctrl-A, and what may follow it. Ctrl-A Ctrl-A, or Ctrl-A a, is a Ctrl-A for the machine."""
KEYS = "Ctrl-A x leaves, Ctrl-A h shows this line, Ctrl-A Ctrl-A is a Ctrl-A for the machine"
SLICE = 0.05
"""Seconds of waiting between two looks whether the run is to stop."""
READ_AHEAD = 1 << 16


class Keyboard(LiveInput):
    """Bytes of an open file, which may be a terminal, a pipe or anything else, while the block lasts.

    descriptor the file, or None: there are no bytes
    has_keys   Ctrl-A is a key of ours: x after it calls `leave`, and so does the end of the terminal; h calls `show`
    stops      whether the run is to stop, so that no read waits for a key any more
    has_left   whether the key to leave was pressed
    """

    def __init__(self, descriptor: int | None, *, has_keys: bool = False, leave: Callable[[], None] = lambda: None,
                 show: Callable[[str], None] = lambda text: None, stops: Callable[[], bool] = lambda: False) -> None:
        self._descriptor, self._has_keys, self._leave, self._show, self._stops = descriptor, has_keys, leave, show, stops
        self._bytes: deque[int] = deque()
        self._came, self._prefixed, self._ended = threading.Condition(), False, descriptor is None
        self.has_left = False

    def __enter__(self) -> Keyboard:
        self._wake, self._woken = os.pipe()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        os.write(self._woken, b"x")
        self._thread.join()
        os.close(self._wake)
        os.close(self._woken)

    def __call__(self) -> int:
        if self._bytes:
            return self._bytes.popleft()
        return END_OF_INPUT if self._ended else NOT_YET

    def wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        with self._came:
            while not (self._bytes or self._ended or self.has_left):
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._came.wait(min(left, SLICE))
                if self._stops():
                    break

    def _work(self) -> None:
        while not self._ended:
            assert self._descriptor is not None  # else it has ended
            is_full = len(self._bytes) >= READ_AHEAD
            watched = [self._wake] if is_full else [self._descriptor, self._wake]
            ready, _, _ = select.select(watched, [], [], SLICE if is_full else None)
            if self._wake in ready:
                return
            if ready:
                self._take(self._some())

    def _some(self) -> bytes:
        """What there is to read; nothing at the end, or when the terminal has gone."""
        assert self._descriptor is not None  # else it has ended
        try:
            return os.read(self._descriptor, 1 << 12)
        except OSError:
            return b""

    def _take(self, data: bytes) -> None:
        with self._came:
            for byte in data:
                self._key(byte)
            self._ended = not data
            self._came.notify()
        if self._has_keys and not data:
            self._leave()

    def _key(self, byte: int) -> None:
        if not self._has_keys or not (self._prefixed or byte == PREFIX):
            self._bytes.append(byte)
        elif not self._prefixed:
            self._prefixed = True
        else:
            self._prefixed = False
            if byte in LEAVE:
                self.has_left = True
                self._leave()
            elif byte in HELP:
                self._show(KEYS)
            elif byte in (PREFIX, ord("a")):
                self._bytes.append(PREFIX)


def standard_input() -> int | None:
    """The descriptor of standard input; None where it is closed, or not a file."""
    try:
        return sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):
        return None


def polled_input(stops: Callable[[], bool]) -> Keyboard:
    """Standard input, byte by byte."""
    return Keyboard(standard_input(), stops=stops)
