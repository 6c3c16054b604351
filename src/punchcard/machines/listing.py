"""A program as people read it: its source, and which instruction stands at which line. No tensor here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Listed(NamedTuple):
    """An instruction: the program counter that stands at it, its line in the source (from 1; None: unknown), its text."""

    number: int
    line: int | None
    text: str


class Listing(NamedTuple):
    """The lines of a program and its instructions, in the order of their numbers."""

    lines: Sequence[str]
    instructions: Sequence[Listed] = ()
