"""A terminal as the console of a machine: raw, with a key to leave, and as it was when all is over, whatever happens.

Keys are read ahead by a thread, so that looking for one takes no time, and Ctrl-A x is found while the machine is busy.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from punchcard.cli.terminal import handling
from punchcard.engines.base import CompileCount
from punchcard.machines.streams import END_OF_INPUT, NOT_YET, LiveInput

PREFIX, LEAVE, HELP = 1, b"xX", b"h?"
"""Ctrl-A, and what may follow it. Ctrl-A Ctrl-A, or Ctrl-A a, is a Ctrl-A for the machine."""
KEYS = "Ctrl-A x leaves, Ctrl-A h shows this line, Ctrl-A Ctrl-A is a Ctrl-A for the machine"
SLICE = 0.05
"""Seconds of waiting between two looks whether the run is to stop."""
READ_AHEAD = 1 << 16
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
LOOK_EVERY, PATIENCE, REMARK_EVERY = 0.2, 3, 10.0
"""Of a note about compiling: seconds between two looks, looks before the first, seconds between remarks to no terminal."""
INPUT, LOCAL, CONTROLS = 0, 3, 6
"""Places in what `termios.tcgetattr` gives."""


class Keyboard(LiveInput):
    """Bytes of an open file, which may be a terminal, a pipe or anything else, while the block lasts.

    has_keys   Ctrl-A is a key of ours: x after it calls `leave`, and so does the end of the terminal; h calls `show`
    stops      whether the run is to stop, so that nobody waits for a key any more
    """

    def __init__(self, descriptor: int, *, has_keys: bool = False, leave: Callable[[], None] = lambda: None,
                 show: Callable[[str], None] = lambda text: None, stops: Callable[[], bool] = lambda: False) -> None:
        self._descriptor, self._has_keys, self._leave, self._show, self._stops = descriptor, has_keys, leave, show, stops
        self._bytes: deque[int] = deque()
        self._came, self._prefixed, self._ended = threading.Condition(), False, False
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
            is_full = len(self._bytes) >= READ_AHEAD
            watched = [self._wake] if is_full else [self._descriptor, self._wake]
            ready, _, _ = select.select(watched, [], [], SLICE if is_full else None)
            if self._wake in ready:
                return
            if ready:
                self._take(self._some())

    def _some(self) -> bytes:
        """What there is to read; nothing at the end, or when the terminal has gone."""
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
            self._go()

    def _key(self, byte: int) -> None:
        if not self._has_keys or not (self._prefixed or byte == PREFIX):
            self._bytes.append(byte)
        elif not self._prefixed:
            self._prefixed = True
        else:
            self._prefixed = False
            if byte in LEAVE:
                self._go()
            elif byte in HELP:
                self._show(KEYS)
            elif byte in (PREFIX, ord("a")):
                self._bytes.append(PREFIX)

    def _go(self) -> None:
        self.has_left = True
        self._leave()


class RawTerminal:
    """A terminal that gives every key as it is pressed, until `restore`. Its output is as before."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._before: list[Any] | None = termios.tcgetattr(descriptor)

    def begin(self) -> None:
        """Make it raw; also again, after the process was stopped and goes on."""
        if self._before is None:
            return
        mode = termios.tcgetattr(self._descriptor)
        mode[INPUT] &= ~(termios.BRKINT | termios.ICRNL | termios.INLCR | termios.IGNCR | termios.INPCK | termios.ISTRIP
                         | termios.IXON)
        mode[LOCAL] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        mode[CONTROLS] = [*mode[CONTROLS]]
        mode[CONTROLS][termios.VMIN], mode[CONTROLS][termios.VTIME] = 1, 0
        self._set(mode)

    def restore(self) -> None:
        """Make it what it was; a terminal that has gone stays so."""
        if self._before is not None:
            self._set(self._before)

    def _set(self, mode: list[Any]) -> None:
        with suppress(termios.error, OSError, ValueError):
            termios.tcsetattr(self._descriptor, termios.TCSANOW, mode)


@contextmanager
def raw_terminal(descriptor: int) -> Iterator[None]:
    """Make a terminal raw inside the block. Every signal that ends the process restores it first."""
    terminal, previous = RawTerminal(descriptor), {number: signal.getsignal(number) for number in ENDS}

    def end(number: int, frame: FrameType | None) -> None:
        terminal.restore()
        before = previous[signal.Signals(number)]
        if callable(before):
            before(number, frame)
        else:
            signal.signal(number, signal.SIG_DFL if before is None else before)
            signal.raise_signal(number)

    handled = [number for number in ENDS if previous[number] != signal.SIG_IGN]
    with handling(end, *handled), handling(lambda number, frame: terminal.begin(), signal.SIGCONT):
        try:
            terminal.begin()
            yield
        finally:
            terminal.restore()


class CompileNote:
    """Says on a terminal that code is being compiled, where the cursor is, and takes that away again."""

    def __init__(self, count: CompileCount) -> None:
        self._count, self._over, self._is_shown = count, threading.Event(), False
        self._is_terminal = sys.stderr.isatty()

    def __enter__(self) -> None:
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()
        self._erase()

    def _work(self) -> None:
        pieces, busy, remarked = self._count.pieces, 0, time.monotonic()
        while not self._over.wait(LOOK_EVERY):
            is_busy, pieces = self._count.is_compiling or self._count.pieces > pieces, self._count.pieces
            busy = busy + 1 if is_busy else 0
            if not busy:
                self._erase()
            elif busy >= PATIENCE and self._is_terminal:
                self._is_shown = True
                self._put(f"\x1b7\x1b[?7l\x1b[7m compiling: {pieces} pieces of code so far \x1b[0m\x1b[?7h\x1b8")
            elif not self._is_terminal and time.monotonic() - remarked > REMARK_EVERY:
                remarked = time.monotonic()
                self._put(f"punchcard: compiling: {pieces} pieces of code so far\n")

    def _erase(self) -> None:
        if self._is_shown:
            self._is_shown = False
            self._put("\x1b[K")

    def _put(self, text: str) -> None:
        with suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()
