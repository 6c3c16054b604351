"""What a run of an array program gives: the values, and how far they are from NumPy's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from punchcard.machines.fleq.isa import FleqProgram, FleqState
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.result import Report


@dataclass(frozen=True)
class ArrayReport:
    """A run on the machine beside the same function in NumPy.

    result         what the function returns, computed by the transformer;  expected  what it returns in NumPy
    difference     the largest distance between the two, relative to the range; None where NumPy was not asked
    range          every value stays within ± this;  range_from  "given", or "found": by a run in NumPy, with head room
    loops, engine  loops of the transformer, and what made them
    step_error     the largest error of an instruction, against the exact function of its operands, and its bound
    agrees         every instruction stayed within its bound, and the run took the way of the interpreter
    """

    result: Any
    expected: Any
    difference: float | None
    range: float
    range_from: str
    program: FleqProgram = field(repr=False)
    machine: FleqMachine = field(repr=False)
    report: Report[FleqState] = field(repr=False)

    @property
    def loops(self) -> int:
        return self.report.result.loops

    @property
    def steps(self) -> int:
        return self.report.result.steps

    @property
    def engine(self) -> str:
        return self.report.result.engine

    @property
    def seconds(self) -> float:
        return self.report.result.seconds

    @property
    def step_error(self) -> float | None:
        return self.report.max_step_error

    @property
    def bound(self) -> float | None:
        return self.report.bound

    @property
    def agrees(self) -> bool | None:
        return self.report.agrees

    @property
    def ok(self) -> bool:
        return self.report.ok

    def __str__(self) -> str:
        with np.printoptions(precision=8, suppress=True, linewidth=110):
            lines = [f"result      {_indented(self.result)}"]
        lines.append(f"loops       {self.loops:,} of a transformer with {len(self.machine.weights.layers)} layers, "
                     f"engine {self.engine}")
        lines.append(f"range       ±{self.range:g}, {self.range_from}")
        if self.step_error is not None and self.bound is not None:
            lines.append(f"step error  {self.step_error:.1e} of the range, its bound is {self.bound:.1e}")
        if self.difference is not None:
            lines.append(f"difference  {self.difference:.1e} of the range from NumPy")
        return "\n".join(lines)


def _indented(value: Any) -> str:
    return str(value).replace("\n", "\n" + " " * 12)


def distance(found: Any, expected: Any, limit: float) -> float:
    """The largest distance of two values, or of two tuples of them, over the range."""
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    return max(float(np.max(np.abs(np.asarray(a) - np.asarray(b)), initial=0.0)) for a, b in pairs) / limit
