"""Bytes in and out of a run: where they come from and go to, and what has passed so far. No tensor here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, TypeAlias

END_OF_INPUT = -1
"""What is read once the input has ended."""
Read: TypeAlias = Callable[[], int]
"""The next byte of the input, or END_OF_INPUT."""
Write: TypeAlias = Callable[[int], None]
"""Takes a byte of the output."""
Input: TypeAlias = bytes | BinaryIO | Read
Output: TypeAlias = BinaryIO | Write


@dataclass(frozen=True)
class Traffic:
    """What a run has read and written up to a mark.

    `waiting`: the card stands at an instruction whose ports have not been served yet. `input_ended`: its end was read.
    """

    read: bytes = b""
    written: bytes = b""
    waiting: bool = False
    input_ended: bool = False


def reader(source: Input, done: int = 0) -> Read:
    """A function that gives the next byte. Of bytes, the first `done` have been read; a file or a function goes on."""
    if callable(source):
        return source
    take = _bytes(source[done:]) if isinstance(source, (bytes, bytearray)) else iter(lambda: source.read(1), b"")
    ended = False

    def read() -> int:
        nonlocal ended
        byte = b"" if ended else next(take, b"")
        ended = not byte  # a terminal could go on after its end: the program must not see that
        return byte[0] if byte else END_OF_INPUT

    return read


def _bytes(data: bytes) -> Iterator[bytes]:
    return (data[i : i + 1] for i in range(len(data)))


def writer(target: Output | None) -> Write:
    """A function that takes a byte; a file is flushed after each."""
    if target is None:
        return lambda byte: None
    if callable(target):
        return target
    file = target

    def write(byte: int) -> None:
        file.write(bytes((byte,)))
        file.flush()

    return write
