"""What a program is called with, as Linux puts it on a stack: argc, argv, an empty environment, and the texts."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate

from punchcard.errors import ProgramError, shortened
from punchcard.machines.riscv.isa import WORD_BYTES

STACK_ALIGNMENT = 16
BESIDE = 5
"""Words beside the addresses of the arguments: argc, and the ends of argv, environment and auxiliary vector."""


def aligned(size: int) -> int:
    """Bytes, or an address, rounded up to where a stack pointer may be."""
    return -(-size // STACK_ALIGNMENT) * STACK_ALIGNMENT


def encoded(argument: str) -> bytes:
    """An argument as bytes that end with 0; a name of a file that is not UTF-8 keeps its bytes."""
    try:
        found = argument.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ProgramError(f"the argument {shortened(argument)} is not text: it has half of a character") from None
    if b"\0" in found:
        raise ProgramError(f"the argument {shortened(argument)} has a character 0, which ends a text of C")
    return found + b"\0"


def size_of(arguments: Sequence[str]) -> int:
    """The bytes that arguments take; 0 where there is none, not even a name."""
    size = sum(map(len, map(encoded, arguments))) + WORD_BYTES * (len(arguments) + BESIDE)
    return aligned(size) if arguments else 0


def block_at(address: int, arguments: Sequence[str]) -> bytes:
    """What is at an address, the first stack pointer of a program that is called with these."""
    texts = [encoded(argument) for argument in arguments]
    if not texts:
        return b""
    places = list(accumulate(map(len, texts), initial=address + WORD_BYTES * (len(texts) + BESIDE)))[:-1]
    numbers = [len(texts), *places, *[0] * (BESIDE - 1)]
    return struct.pack(f"<{len(numbers)}I", *numbers) + b"".join(texts)
