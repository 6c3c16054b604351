"""A terminal as the console of a machine: raw, and as it was when all is over, whatever happens; and a note on compiling."""

from __future__ import annotations

import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, BinaryIO, Self

from punchcard.cli.terminal import handling
from punchcard.engines.base import CompileCount
from punchcard.formatting import plural

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
LOOK_EVERY, PATIENCE, REMARK_EVERY = 0.2, 3, 10.0
"""Of a note about compiling: seconds between two looks, looks before the first, seconds between remarks to no terminal."""
INPUT, LOCAL, CONTROLS = 0, 3, 6
"""Places in what `termios.tcgetattr` gives."""


class RawTerminal:
    """A terminal that gives every key as it is pressed, until `restore`. Its output is as before."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._before = descriptor, termios.tcgetattr(descriptor)

    def begin(self) -> None:
        """Make it raw; also again, after the process was stopped and continues."""
        mode: list[Any] = [*self._before]
        mode[INPUT] &= ~(termios.BRKINT | termios.ICRNL | termios.INLCR | termios.IGNCR | termios.INPCK | termios.ISTRIP
                         | termios.IXON)
        mode[LOCAL] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        mode[CONTROLS] = [*mode[CONTROLS]]
        mode[CONTROLS][termios.VMIN], mode[CONTROLS][termios.VTIME] = 1, 0
        self._set(mode)

    def restore(self) -> None:
        """Make it what it was; a terminal that has gone stays so."""
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


class Screen:
    """A terminal that bytes are written to. When it goes away, `stop` is called, and bytes go nowhere.

    `before` is called ahead of what is written.
    """

    def __init__(self, file: BinaryIO, stop: Callable[[], None], before: Callable[[], None]) -> None:
        self._file, self._stop, self._before, self._is_gone = file, stop, before, False
        self._last = b"\n"

    def write(self, data: bytes) -> int:
        self._before()
        self._attempt(lambda: self._file.write(data))
        self._last = data[-1:] or self._last
        return len(data)

    def flush(self) -> None:
        self._attempt(self._file.flush)

    def end_line(self) -> None:
        """Begin a new line, unless the cursor is at the beginning of one."""
        if self._last != b"\n":
            self.write(b"\r\n")
            self.flush()

    def _attempt(self, call: Callable[[], object]) -> None:
        if self._is_gone:
            return
        try:
            call()
        except OSError:
            self._is_gone = True
            self._stop()


class CompileNote:
    """Says on a terminal that code is being compiled, where the cursor is, and takes that away again."""

    def __init__(self, count: CompileCount) -> None:
        self._count, self._over, self._lock = count, threading.Event(), threading.Lock()
        self._is_terminal, self._shown = sys.stderr.isatty(), ""

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()
        self.clear()

    def _work(self) -> None:
        pieces, busy, remarked = self._count.pieces, 0, time.monotonic()
        while not self._over.wait(LOOK_EVERY):
            is_busy, pieces = self._count.is_compiling or self._count.pieces > pieces, self._count.pieces
            busy = busy + 1 if is_busy else 0
            text = f"compiling: {plural(pieces, 'piece')} of code so far"
            if not busy:
                self.clear()
            elif busy >= PATIENCE and self._is_terminal:
                self._show(text)
            elif not self._is_terminal and time.monotonic() - remarked > REMARK_EVERY:
                remarked = time.monotonic()
                self._put(f"punchcard: {text}\n")

    def _show(self, text: str) -> None:
        """In reverse, without moving the cursor or beginning a new line."""
        with self._lock:
            if text != self._shown:
                self._put(f"\x1b7\x1b[?7l\x1b[7m {text} \x1b[0m\x1b[?7h\x1b8")
                self._shown = text

    def clear(self) -> None:
        """Take the note away, before something else is written there."""
        with self._lock:
            if self._shown:
                self._put("\x1b[K")
                self._shown = ""

    def _put(self, text: str) -> None:
        with suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()
