"""What the languages of the von Neumann machine can be asked for: all that is needed before a program is read."""

from __future__ import annotations

from typing import Literal, TypeAlias

Cells: TypeAlias = Literal["byte", "word"]
EndOfInput: TypeAlias = Literal["0", "-1", "unchanged"]
CELLS: tuple[Cells, ...] = ("byte", "word")
ENDS_OF_INPUT: tuple[EndOfInput, ...] = ("0", "-1", "unchanged")
MAX_CELLS = 1 << 18  # of a program
IMAGE_EXTENSIONS = (".dec", ".sq", ".slq")
