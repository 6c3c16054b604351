"""Where the real variables of a program are on its card."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RealVariable:
    """A named matrix of real numbers. It is punched into the first block of rows, and is the sum of all of them.

    A column that has just been written may wait in other rows than the ones it was punched in, so there may be several.
    """

    columns: slice
    rows: tuple[slice, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """As tensors have it: a matrix of one column is a vector, one of a single number is a number."""
        height, width = self.rows[0].stop - self.rows[0].start, self.columns.stop - self.columns.start
        return () if (height, width) == (1, 1) else (height,) if width == 1 else (height, width)
