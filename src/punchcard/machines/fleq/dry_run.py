"""A run of the plain interpreter before the machine's, to learn how large values get: the range is a size of the machine."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from punchcard.errors import ConvergenceError
from punchcard.machines.fleq.isa import Array, FleqProgram
from punchcard.machines.fleq.oracle import FleqInterpreter

MARGIN = 1e-6
"""A computed value may be this much larger, relatively, on the machine."""


@dataclass(frozen=True)
class DryRun:
    """The memory by name at the end, the largest value at any time, and the instructions that were executed."""

    memory: dict[str, Array]
    largest: float
    steps: int


def dry_run(program: FleqProgram, max_steps: int = 100_000) -> DryRun:
    """Run a program on the interpreter, whatever its range."""
    interpreter = FleqInterpreter(program, check_range=False)
    given = largest = float(np.abs(interpreter.memory).max())
    while not interpreter.halted and interpreter.steps < max_steps:
        interpreter.step()
        largest = max(largest, float(np.abs(interpreter.memory).max()))
        if not math.isfinite(largest):
            raise ConvergenceError(f"values grow without bound: beyond 1e300 after {interpreter.steps} instructions")
    if largest > given:
        largest *= 1 + MARGIN
    return DryRun(program.named(interpreter.memory), largest, interpreter.steps)


def range_above(largest: float) -> float:
    """The least power of two that holds values up to `largest`.

    The range is a size of the machine, and so reaches its weights. On a grid this coarse, programs that differ in their data
    share a machine.
    """
    return 2.0 ** math.ceil(math.log2(largest))
