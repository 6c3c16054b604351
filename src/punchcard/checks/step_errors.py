"""A FLEQ run measured: each instruction's error against the exact function, and the end against the interpreter's run.

Two errors are kept apart. The step error compares each result with the exact function of the operands that were on the
card; it must stay within the bound of the function's block. The final error compares the last memory with the
interpreter's whole run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor

from punchcard.engines import Watch
from punchcard.machines.checkpoint import Audit
from punchcard.machines.fleq import oracle
from punchcard.machines.fleq.isa import Call, FleqProgram, Step
from punchcard.machines.fleq.machine import FleqMachine, FleqResult
from punchcard.machines.running import Mark


@dataclass(frozen=True)
class FleqReport:
    """A run and its errors, all relative to the machine's range, and why it does not agree. Not checked: None."""

    result: FleqResult
    max_step_error: float | None
    max_error: float | None
    bound: float | None
    worst: str
    agrees: bool | None
    why: str = ""

    @property
    def ok(self) -> bool:
        return self.result.halted and self.agrees is not False


class Auditor:
    """Compares every loop's result with the exact function of what the loop began with."""

    def __init__(self, machine: FleqMachine, program: FleqProgram, card: Tensor, audit: Audit | None = None) -> None:
        """`card` is where the run begins, `audit` what was found before."""
        self.machine, self.program = machine, program
        self.guard = machine.guard(program, card)
        self.audit = audit or Audit()

    def watch(self, loop: int, card: Tensor) -> None:
        """Check and compare one loop."""
        self.guard.watch(loop, card)
        number = self.guard.before.program_counter
        instruction = self.program.instructions[number]
        if isinstance(instruction, Step) and isinstance(instruction.action, Call):
            self._compare(instruction.action, number)

    def _compare(self, call: Call, number: int) -> None:
        before, after, pointers = self.guard.before.memory, self.guard.state.memory, self.guard.pointers
        operands = [
            before[: shape.rows, pointers[name] : pointers[name] + shape.columns]
            for name, shape in (("a", call.a_shape), ("b", call.b_shape)) if shape is not None
        ]
        expected = np.zeros((after.shape[0], call.c_shape.columns))
        expected[: call.c_shape.rows] = self.program.functions[call.function].reference(*operands)
        found = after[:, pointers["c"] : pointers["c"] + call.c_shape.columns]
        error = float(np.max(np.abs(found - expected))) / self.machine.range
        bound = self.machine.bound(call.function) / self.machine.range
        audit = replace(self.audit, bound=max(self.audit.bound, bound))
        if error > bound and not audit.why:
            audit = replace(audit, why=f"instruction {number}, {call.function}, is off by {error:.1e}, its bound is "
                                       f"{bound:.1e}")
        kept = np.delete(np.arange(self.program.columns), np.s_[pointers["c"] : pointers["c"] + call.c_shape.columns])
        if not np.array_equal(before[:, kept], after[:, kept]) and not audit.why:
            audit = replace(audit, why=f"instruction {number}, {call.function}, changed a column that it does not write")
        if error > audit.max_step_error or not audit.worst:
            audit = replace(audit, max_step_error=error, worst=f"instruction {number}, {call.function}")
        self.audit = audit


def audited_run(
    machine: FleqMachine,
    program: FleqProgram,
    *,
    watch: Watch | None = None,
    begin: Mark | None = None,
    auditor: Auditor | None = None,
    **how: Any,
) -> FleqReport:
    """Run a program with every instruction compared, and the end compared with the interpreter.

    A run that goes on from the mark `begin` has an auditor that knows what was found before. `how` is for `machine.run`.
    """
    begin = begin or Mark(machine.punch(program))
    auditor = auditor or Auditor(machine, program, begin.card)

    def both(loop: int, card: Tensor) -> None:
        auditor.watch(loop, card)
        if watch is not None:
            watch(loop, card)

    result = machine.run(program, begin=begin, watch=both, guarded=False, **how)
    expected = oracle.run(program, result.steps, check_range=False)
    found = result.state.memory[: program.rows, : program.columns]
    error = float(np.max(np.abs(found - expected.state.memory[:, : program.columns]), initial=0.0)) / machine.range
    audit = auditor.audit
    why = audit.why
    if (expected.state.program_counter, expected.halted) != (result.state.program_counter, result.halted):
        why = why or (f"instruction {result.state.program_counter} is next, the interpreter is at "
                      f"{expected.state.program_counter}")
    return FleqReport(result, audit.max_step_error, error, audit.bound, audit.worst, not why, why)
