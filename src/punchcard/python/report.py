"""What a run of a Python function gives: its value, and how it compares with the plain function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from punchcard.errors import shortened
from punchcard.machines.base import Machine
from punchcard.machines.result import Report

if TYPE_CHECKING:
    from punchcard.machines.fleq.isa import FleqProgram


@dataclass(frozen=True, kw_only=True)
class ProgramReport:
    """A run beside the plain function.

    result      what the function returned, computed by the transformer;  expected  what it returns in Python or NumPy
    agrees      whether the machine's interpreter gives the same, within the bound of each instruction
    """

    result: Any
    expected: Any
    machine: Machine[Any, Any] = field(repr=False)
    report: Report[Any] = field(repr=False)

    @property
    def agrees(self) -> bool | None:
        return self.report.agrees

    @property
    def ok(self) -> bool:
        return self.report.ok

    @property
    def steps(self) -> int:
        return self.report.result.steps

    @property
    def loops(self) -> int:
        return self.report.result.loops

    @property
    def engine(self) -> str:
        return self.report.result.engine

    @property
    def seconds(self) -> float:
        return self.report.result.seconds

    @property
    def _transformer(self) -> str:
        return f"a transformer with {len(self.machine.weights.layers)} layers, engine {self.engine}"


@dataclass(frozen=True, kw_only=True)
class IntegerReport(ProgramReport):
    """A run of a function of integers.

    output           the bytes that it wrote;  python_output  those that Python writes, or None if it was only parsed
    words            words of the program
    """

    output: bytes
    python_output: bytes | None
    words: int

    @property
    def same_as_python(self) -> bool | None:
        """Whether value and output are Python's; words wrap, so that large numbers may differ."""
        if self.python_output is None:
            return None
        return (self.result, self.output) == (self.expected, self.python_output)

    def __str__(self) -> str:
        """The report in a few lines."""
        lines = [f"result      {self.result!r}"]
        if self.output:
            lines.append(f"output      {shortened(self.output.decode(errors='replace'))}")
        lines.append(f"steps       {self.steps:,} instructions of {self._transformer}")
        lines.append(f"program     {self.words:,} words of {self.machine.options['word_bits']} bits")
        if self.agrees is not None:
            lines.append(f"agrees      {'yes' if self.agrees else 'NO'}: with the interpreter of the machine")
        if self.same_as_python is not None:
            expected = "" if self.same_as_python else f", which gives {shortened(self.expected)}"
            lines.append(f"same        {'yes' if self.same_as_python else 'NO'}: as CPython{expected}")
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class ArrayReport(ProgramReport):
    """A run of a function of arrays.

    difference     the largest distance from NumPy's result, relative to the range, or None if the function was only parsed
    range          every value stays within ± this;  range_from  "given", or "found": by a run in NumPy, with head room
    step_error     the largest error of an instruction, against the exact function of its operands, and its bound
    """

    difference: float | None
    range: float
    range_from: str
    program: FleqProgram = field(repr=False)

    @property
    def step_error(self) -> float | None:
        return self.report.max_step_error

    @property
    def bound(self) -> float | None:
        return self.report.bound

    def __str__(self) -> str:
        with np.printoptions(precision=8, suppress=True, linewidth=110):
            lines = ["result      " + str(self.result).replace("\n", "\n" + " " * 12)]
        lines.append(f"loops       {self.loops:,} of {self._transformer}")
        lines.append(f"range       ±{self.range:g}, {self.range_from}")
        if self.step_error is not None and self.bound is not None:
            lines.append(f"step error  {self.step_error:.1e} of the range, its bound is {self.bound:.1e}")
        if self.difference is not None:
            lines.append(f"difference  {self.difference:.1e} of the range from NumPy")
        return "\n".join(lines)


def distance(found: Any, expected: Any, limit: float) -> float:
    """The largest distance of two values, or of two tuples of them, over the range."""
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    return max(float(np.max(np.abs(np.asarray(a) - np.asarray(b)), initial=0.0)) for a, b in pairs) / limit
