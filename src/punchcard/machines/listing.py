"""A program as people read it: its source, and which instruction is at which line. No tensor here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_LINE_END = re.compile(r"\r\n|\r|\n")


class ListedInstruction(NamedTuple):
    """An instruction: its program counter, its line in the source (from 1, or None if unknown), and its text."""

    number: int
    line: int | None
    text: str


class Listing(NamedTuple):
    """The lines of a program and its instructions, in the order of their numbers."""

    lines: Sequence[str]
    instructions: Sequence[ListedInstruction] = ()


def lines_of(text: str) -> list[str]:
    """The lines of a source, as languages and compilers count them: a form feed, say, ends none."""
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]
