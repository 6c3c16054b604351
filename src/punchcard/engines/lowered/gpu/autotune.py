"""Which of several codes for the same memory is launched, and for how many loops: what is fastest on this batch is measured.

Arrays in shared memory are never slow, but few machines have room there at a time. Global memory has room for all, and is
fast as long as neighbours read neighbours, which is the case where machines run one program side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

FIRST_PIECE = 1 << 10
LARGEST_PIECE = 1 << 30
LAUNCH_SECONDS = 0.1
"""How long a launch should take: between two of them a run can be interrupted."""
WORTH_SECONDS = 0.5
"""When the kernels have worked for so long, it is worth compiling another code."""
AGAIN = 32
"""In one of so many launches the other codes are tried again."""
PART = 16
"""A trial has one part in so many of the loops of a launch."""


class KernelVariant:
    """Code that is compiled when it is first launched, the shared memory that it needs, and how fast it last was."""

    def __init__(self, compiled: Callable[[], object], shared: int) -> None:
        self._compiled, self.shared, self.rate = compiled, shared, 0.0

    @cached_property
    def compiled(self) -> object:
        return self._compiled()


class Autotuner:
    """Codes, the likeliest first."""

    def __init__(self, codes: Sequence[KernelVariant]) -> None:
        self._codes, self._now, self._trials = list(codes), codes[0], list(codes[1:])
        self._seconds, self._launches, self._piece = 0.0, 0, float(FIRST_PIECE)

    def next(self) -> tuple[KernelVariant, int]:
        """The code of the next launch, and the loops of every machine."""
        self._launches += 1
        best = max(self._codes, key=lambda code: code.rate)
        if self._launches % AGAIN == 0:
            self._trials = [code for code in self._codes if code is not best]
        self._trying = bool(self._trials) and self._seconds >= WORTH_SECONDS
        self._now = self._trials.pop() if self._trying else best
        return self._now, max(1, int(self._piece) // PART) if self._trying else int(self._piece)

    def took(self, seconds: float, loops: int) -> None:
        """How long the launch took, and how many loops all machines made in it."""
        self._seconds += seconds
        self._now.rate = loops / max(seconds, 1e-9)
        if not self._trying:
            wanted = LAUNCH_SECONDS / max(seconds, 1e-9)
            self._piece = min(max(self._piece * min(PART, wanted), 1.0), LARGEST_PIECE)
