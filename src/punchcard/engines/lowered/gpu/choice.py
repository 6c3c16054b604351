"""Which of several codes for the same memory is launched, and for how many loops: what is fastest on this batch is measured.

Arrays in shared memory are never slow, but few machines have room there at a time. Global memory has room for all, and is
fast as long as neighbours read neighbours, which is the case where machines run one program side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

FIRST_PIECE = 1 << 10
LARGEST_PIECE = 1 << 30
LAUNCH_SECONDS = 0.1
"""How long a launch should take: between two of them a run can be interrupted."""
TRIALS = 2
"""Launches of each code at the beginning."""
AGAIN = 32
"""In one of so many launches another code is tried again, for a part of the loops."""
PART = 16


class Choice:
    """Codes with the shared memory that they need, and how fast each was when it was last launched."""

    def __init__(self, codes: Sequence[tuple[Any, int]]) -> None:
        self._codes, self._rates = list(codes), [0.0] * len(codes)
        self._number = self._now = 0
        self._piece = float(FIRST_PIECE)

    def next(self) -> tuple[tuple[Any, int], int]:
        """The code of the next launch, and the loops of every machine."""
        number, count = self._number, len(self._codes)
        best = max(range(count), key=self._rates.__getitem__)
        self._now, self._part = best, 1
        if number < TRIALS * count:
            self._now = number % count
        elif count > 1 and number % AGAIN == 0:
            self._now, self._part = (best + 1 + number // AGAIN % (count - 1)) % count, PART
        self._number += 1
        return self._codes[self._now], max(1, int(self._piece) // self._part)

    def took(self, seconds: float, loops: int) -> None:
        """How long the launch took, and how many loops all machines made in it."""
        self._rates[self._now] = loops / max(seconds, 1e-9)
        if self._part == 1 and self._number >= TRIALS * len(self._codes):
            wanted = LAUNCH_SECONDS / max(seconds, 1e-9)
            self._piece = min(max(self._piece * min(16.0, wanted), 1.0), LARGEST_PIECE)
