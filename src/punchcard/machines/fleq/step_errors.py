"""A FLEQ run measured: each instruction's error against the exact function, and the end against the interpreter's run.

Two errors are kept apart. The step error compares each result with the exact function of the operands that were on the
card; it must stay within the bound of the function's block. The final error compares the last memory with the
interpreter's whole run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from punchcard.card.layout import Card
from punchcard.errors import StorageError
from punchcard.machines.comparison import Comparison
from punchcard.machines.fleq import oracle
from punchcard.machines.fleq.guard import Guard
from punchcard.machines.fleq.isa import Array, Call, FleqProgram, FleqState, Step
from punchcard.machines.result import Report, Result

if TYPE_CHECKING:
    from punchcard.machines.fleq.machine import FleqMachine


FAR = {"float64": 1e-6, "float32": 1e-2}
"""What a function returns is refused if it is farther than this from what NumPy computes, relative to the range."""


@dataclass(frozen=True)
class Audit:
    """What the comparison of single instructions has found so far, relative to the machine's range."""

    max_step_error: float = 0.0
    bound: float = 0.0
    worst: str = ""
    why: str = ""

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Audit:
        """What `kept` gave, from a file: every field is checked."""
        if kept.keys() != asdict(cls()).keys():
            raise StorageError(f"an audit with {', '.join(kept) or 'nothing'}: it has {', '.join(asdict(cls()))}")
        for name, value in kept.items():
            if name in ("max_step_error", "bound"):
                if not isinstance(value, float) or not 0 <= value < math.inf:
                    raise StorageError(f"{name} of an audit is {repr(value)[:60]}: it must be a finite number, 0 or more")
            elif not isinstance(value, str):
                raise StorageError(f"{name} of an audit is {repr(value)[:60]}: it must be text")
        return cls(**kept)


class StepErrors(Comparison):
    """Compares every loop's result with the exact function of what the loop began with."""

    watches = True
    guards = True

    def __init__(self, machine: FleqMachine, program: FleqProgram, card: Card, audit: Audit) -> None:
        """`card` is where the run begins, `audit` what was found before."""
        self._machine, self._program, self.audit = machine, program, audit
        self._guard = Guard(machine.design, program, card)

    def watch(self, loop: int, card: Card) -> None:
        self._guard.watch(loop, card)
        number = self._guard.before.program_counter
        instruction = self._program.instructions[number]
        if isinstance(instruction, Step) and isinstance(instruction.action, Call):
            self._compare(instruction.action, number)

    def _compare(self, call: Call, number: int) -> None:
        before, after, pointers = self._guard.before.memory, self._guard.state.memory, self._guard.pointers
        expected = np.zeros((after.shape[0], call.c_shape.columns))
        expected[: call.c_shape.rows] = self._exact(call)
        found = after[:, pointers["c"] : pointers["c"] + call.c_shape.columns]
        error = float(np.max(np.abs(found - expected))) / self._machine.range
        bound = self._machine.bound(call.function) / self._machine.range
        audit = replace(self.audit, bound=max(self.audit.bound, bound))
        if not error <= bound and not audit.why:  # an error that is not a number is one as well
            audit = replace(audit, why=f"instruction {number}, {call.function}, is off by {error:.1e}, its bound is "
                                       f"{bound:.1e}")
        kept = np.delete(np.arange(self._program.columns), np.s_[pointers["c"] : pointers["c"] + call.c_shape.columns])
        if not np.array_equal(before[:, kept], after[:, kept]) and not audit.why:
            audit = replace(audit, why=f"instruction {number}, {call.function}, changed a column that it does not write")
        if error > audit.max_step_error or not audit.worst:
            audit = replace(audit, max_step_error=error, worst=f"instruction {number}, {call.function}")
        self.audit = audit

    def _exact(self, call: Call) -> Array:
        """What the function gives. Beyond its domain by the block's own error it may give nothing: then that of the end."""
        function, operands = self._program.functions[call.function], self._guard.operands(call)
        with np.errstate(invalid="ignore"):
            found = np.asarray(function.reference(*operands))
        if function.domain is not None and not np.isfinite(found).all():
            found = np.asarray(function.reference(np.clip(operands[0], *function.domain), *operands[1:]))
        return found

    def report(self, result: Result[FleqState]) -> Report[FleqState]:
        expected = oracle.run(self._program, result.steps, check_range=False)
        found = result.state.memory[: self._program.rows, : self._program.columns]
        largest = np.max(np.abs(found - expected.memory[:, : self._program.columns]), initial=0.0)
        why, audit = self.audit.why, self.audit
        if (expected.program_counter, expected.halted) != (result.state.program_counter, result.halted):
            why = why or (f"instruction {result.state.program_counter} is next, the interpreter is at "
                          f"{expected.program_counter}")
        if result.halted and not why:
            why = self._from_numpy(result) or why
        return Report(result, not why, (why,) if why else (), audit.max_step_error, float(largest) / self._machine.range,
                      audit.bound, audit.worst, self._machine.range)

    def _from_numpy(self, result: Result[FleqState]) -> str:
        """That what the program returns is far from what NumPy computes; nothing where it is near, or was not asked."""
        distances = [each.difference(result.memory) for each in self._program.results]
        away = max((distance for distance in distances if distance is not None), default=0.0) / self._machine.range
        far = FAR[self._machine.precision.name]
        return f"the result is {away:.1e} of the range away from NumPy's, more than {far:g}" if away > far else ""

    def saved_state(self) -> dict[str, Any]:
        return asdict(self.audit)
