"""Bytes in and out of a run: where they come from and go to, and what has passed so far. No tensor here."""

from __future__ import annotations

import io
import os
import stat
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO, TypeAlias

from punchcard.budget import KEPT, limit, require

HOLD_SECONDS = 0.05
"""How long a byte may wait for others before it is handed to a file: a person sees no delay."""
HOLD_BYTES = 1 << 13
END_OF_INPUT, NOT_YET = -1, -2
"""What is read once the input has ended; and, by machines that look for input and do not wait, while none has come."""
Read: TypeAlias = Callable[[], int]
"""The next byte of the input, or END_OF_INPUT. One that does not wait for a byte may give NOT_YET."""
Write: TypeAlias = Callable[[int], None]
"""Takes a byte of the output."""
Input: TypeAlias = bytes | BinaryIO | Read
Output: TypeAlias = BinaryIO | Write


@dataclass(frozen=True)
class Traffic:
    """What a run has read and written up to a mark.

    `waiting`: the ports of the card's instruction have not been served yet. `input_ended`: its end was read.
    `kept`: numbers that the host must remember, which the card does not have.
    """

    read: bytes = b""
    written: bytes = b""
    waiting: bool = False
    input_ended: bool = False
    kept: tuple[int, ...] = ()


NO_TRAFFIC = Traffic()


class KeptBytes:
    """Bytes that have passed, kept for the result, the comparison and checkpoints, as far as the memory budget goes.

    `forgets`: the bytes are not kept, so a program may write for ever.
    """

    def __init__(self, begun: bytes, what: str, *, forgets: bool = False) -> None:
        self._bytes, self._what, self._forgets = bytearray(begun), what, forgets

    def __bytes__(self) -> bytes:
        return bytes(self._bytes)

    @cached_property
    def _most(self) -> int:
        return limit() // KEPT

    def add(self, more: bytes) -> None:
        """Take what has passed; what would be too much to keep ends the run."""
        if self._forgets:
            return
        self._bytes += more
        if len(self._bytes) > self._most:
            require(len(self._bytes) * KEPT, f"keeping the {len(self._bytes):,} bytes that the program has {self._what}",
                    instead="stop the run earlier with --max-steps, keep nothing with --no-check")


def reader(source: Input, done: int = 0) -> Read:
    """A function that gives the next byte. Of bytes, the first `done` have been read; a file or a function continues."""
    if callable(source):
        return source
    return FileReader(io.BytesIO(source[done:]) if isinstance(source, (bytes, bytearray)) else source)


class FileReader:
    """Reads a file byte by byte. Of bytes in memory, and of a regular file, the next ones can be had without waiting.

    `position`: how many were read.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._ended, self.position = file, False, 0

    def __call__(self) -> int:
        byte = b"" if self._ended else self._file.read(1)
        self._ended = not byte  # a terminal could continue after its end: the program must not see that
        self.position += len(byte)
        return byte[0] if byte else END_OF_INPUT

    @cached_property
    def _peek(self) -> Callable[[int], bytes] | None:
        file = self._file
        if type(file) is io.BytesIO:
            return lambda most: bytes(file.getbuffer()[file.tell() : file.tell() + most])
        if not isinstance(file, io.BufferedReader):
            return None
        try:
            return file.peek if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
        except (OSError, ValueError):
            return None

    def ahead(self, most: int) -> tuple[bytes, bool] | None:
        """Up to so many of the next bytes, and whether the input ends there; None if one may have to wait for them."""
        if self._ended or self._peek is None:
            return (b"", True) if self._ended else None
        found = self._peek(most)[:most] if most else b""
        return found, most > 0 and not found

    def take(self, count: int, ends: int) -> bytes:
        """Read so many of these bytes, and so many times the end."""
        found = self._file.read(count) if count else b""
        self.position, self._ended = self.position + len(found), self._ended or ends > 0
        return found


class LiveInput(ABC):
    """An input that a person may still be typing. Reading it never waits: it gives NOT_YET while nothing has come."""

    @abstractmethod
    def __call__(self) -> int:
        """The next byte, END_OF_INPUT or NOT_YET."""

    @abstractmethod
    def wait(self, seconds: float) -> None:
        """Return when a byte has come, when the run is to stop, or after so many seconds."""


class TimedInput:
    """A reader that counts the seconds spent waiting for a byte; `before` is called ahead of each."""

    def __init__(self, read: Read, before: Callable[[], None]) -> None:
        self.untimed, self._before, self.seconds = read, before, 0.0

    def __call__(self) -> int:
        self._before()
        started = time.perf_counter()
        try:
            return self.untimed()
        finally:
            self.seconds += time.perf_counter() - started

    def wait(self, live: LiveInput, seconds: float) -> None:
        """Wait for a byte of a live input, some seconds at most."""
        self._before()
        started = time.perf_counter()
        live.wait(seconds)
        self.seconds += time.perf_counter() - started


class Writer:
    """Takes bytes; `flush` passes on those that wait, `flush_if_due` does so when they have waited long enough.

    `errors` is a second stream, for machines whose programs have one; by default it goes nowhere. `forgets`: the result
    need not have the bytes.
    """

    def __init__(self, take: Write, flush: Callable[[], None] = lambda: None,
                 flush_if_due: Callable[[], None] = lambda: None, errors: BinaryIO | None = None, *,
                 forgets: bool = False) -> None:
        self._take, self.flush, self.flush_if_due, self._errors = take, flush, flush_if_due, errors
        self.forgets = forgets

    def __call__(self, byte: int) -> None:
        self._take(byte)

    def seen_by(self, take: Write) -> Writer:
        """A writer whose bytes go to `take` first, which hands them on to this one."""
        return Writer(take, self.flush, self.flush_if_due, self._errors, forgets=self.forgets)

    def complain(self, message: bytes) -> None:
        """Bytes for the second stream, after all that was written to the first."""
        if self._errors is not None:
            self.flush()
            self._errors.write(message)
            self._errors.flush()


class _Buffer:
    """Bytes on their way to a file. The first goes at once, later ones within `HOLD_SECONDS`, or `HOLD_BYTES`, together."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._held, self._due = file, bytearray(), 0.0

    def take(self, byte: int) -> None:
        self._held.append(byte)
        if len(self._held) >= HOLD_BYTES or time.monotonic() >= self._due:
            self.flush()

    def flush_if_due(self) -> None:
        if self._held and time.monotonic() >= self._due:
            self.flush()

    def flush(self) -> None:
        if self._held:
            held, self._held = bytes(self._held), bytearray()  # what could not be written is not tried again
            self._file.write(held)
            self._file.flush()
            self._due = time.monotonic() + HOLD_SECONDS


def writer(target: Output | None, errors: BinaryIO | None = None, *, forgets: bool = False) -> Writer:
    """A writer to a function, which takes each byte at once, or to a file, which may be some bytes behind."""
    if isinstance(target, Writer):
        return target
    if target is None:
        return Writer(lambda byte: None, errors=errors, forgets=forgets)
    if callable(target):
        return Writer(target, errors=errors, forgets=forgets)
    buffer = _Buffer(target)
    return Writer(buffer.take, buffer.flush, buffer.flush_if_due, errors, forgets=forgets)
