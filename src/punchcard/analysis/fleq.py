"""A FLEQ run measured: each instruction's error against the exact function, and the end against the interpreter's run.

Two errors are kept apart. The step error compares each result with the exact function of the operands that were on
the card; it must stay within the bound of the function's block. The final error compares the last memory with the
interpreter's whole run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from punchcard.engines import Watch
from punchcard.errors import ProgramError
from punchcard.isa.fleq import Array, Call, FleqProgram, Step, Variable
from punchcard.isa.functions import Shape
from punchcard.machines.fleq import FleqMachine, FleqResult
from punchcard.oracle import fleq as oracle

INTEGER_TOLERANCE = 1 / 8
"""A flag within this of an integer counts as one; the machines' own tolerance is 1/4."""
RANGE_SLACK = 1 + 1e-9


@dataclass(frozen=True)
class FleqReport:
    """A run and its errors, all relative to the machine's range. Not checked: the errors are None."""

    result: FleqResult
    max_step_error: float | None
    max_error: float | None
    bound: float
    worst: str
    agrees: bool | None

    @property
    def ok(self) -> bool:
        return self.result.halted and self.agrees is not False


class Auditor:
    """Watches a run loop by loop; refuses what the program promised not to do."""

    def __init__(self, machine: FleqMachine, program: FleqProgram) -> None:
        self.machine, self.program = machine, program
        self.card = machine.punch(program)
        self.memory = machine.read(self.card).memory
        self.counter = 0
        self.max_step_error = 0.0
        self.bound = 0.0
        self.worst = ""
        self.within = True

    def watch(self, loop: int, card: Tensor) -> None:
        """Compare one loop."""
        state = self.machine.read(card)
        instruction = self.program.instructions[self.counter]
        if isinstance(instruction, Step):
            pointers = self.machine.pointers(self.card, self.counter)
            if isinstance(instruction.action, Call):
                self._compare(instruction.action, pointers, state.memory)
            self._check_range(state.memory)
            if instruction.branch is not None:
                self._check_branch(instruction.branch.flag is not None, pointers, state.memory)
        self.card, self.memory, self.counter = card, state.memory, state.program_counter
        if not 0 <= self.counter < len(self.program.instructions):
            raise ProgramError(f"the program counter left the program: instruction {self.counter}")

    def _compare(self, call: Call, pointers: dict[str, int], after: Array) -> None:
        function = self.program.functions[call.function]
        operands = [self._operand(name, pointers[name], shape) for name, shape in (("a", call.a_shape), ("b", call.b_shape))
                    if shape is not None]
        if function.domain is not None:
            low, high = function.domain
            if not all(bool(np.all((low <= x) & (x <= high))) for x in operands):
                raise ProgramError(f"instruction {self.counter}: {function.name} of {float(operands[0].flat[0]):g}: "
                                   f"its block is built for {low:g} to {high:g}")
        c = pointers["c"]
        self._inside("c", c, call.c_shape.columns)
        expected = np.zeros((after.shape[0], call.c_shape.columns))
        expected[: call.c_shape.rows] = function.reference(*operands)
        error = float(np.max(np.abs(after[:, c : c + call.c_shape.columns] - expected))) / self.machine.range
        bound = self.machine.bound(call.function) / self.machine.range
        self.bound = max(self.bound, bound)
        self.within &= error <= bound
        if error >= self.max_step_error:
            self.max_step_error, self.worst = error, f"instruction {self.counter}, {call.function}"

    def _operand(self, field: str, address: int, shape: Shape) -> Array:
        self._inside(field, address, shape.columns)
        return self.memory[: shape.rows, address : address + shape.columns]

    def _inside(self, field: str, address: int, columns: int) -> None:
        if not 0 <= address <= self.program.columns - columns:
            raise ProgramError(f"instruction {self.counter}: pointer {field} is {address}, outside the program's "
                               f"{self.program.columns} memory columns")

    def _check_branch(self, conditional: bool, pointers: dict[str, int], memory: Array) -> None:
        if conditional:
            self._inside("flag", pointers["flag"], 1)
            value = float(memory[0, pointers["flag"]])
            if abs(value - round(value)) > INTEGER_TOLERANCE:
                raise ProgramError(f"instruction {self.counter}: the flag {self._name(pointers['flag'])!r} is {value:g}: "
                                   "a flag must be an integer")
        if not 0 <= pointers["p"] < len(self.program.instructions):
            raise ProgramError(f"instruction {self.counter}: jumps to instruction {pointers['p']}, the program has "
                               f"{len(self.program.instructions)}")

    def _check_range(self, memory: Array) -> None:
        inside = memory[:, : self.program.columns]
        beyond = ~(np.abs(inside) <= self.program.range * RANGE_SLACK)
        if beyond.any():
            column = int(np.argmax(beyond.any(axis=0)))
            value = float(inside[:, column][beyond[:, column]][0])
            raise ProgramError(f"instruction {self.counter}: {self._name(column)!r} became {value:g}, beyond the declared "
                               f"range ±{self.program.range:g}: declare a larger one with .range")

    def _name(self, column: int) -> str:
        owner = next((v for v in self.program.variables if column in v.columns), None)
        return "?" if owner is None else _column_name(owner, column)


def _column_name(variable: Variable, column: int) -> str:
    return variable.name if variable.shape.columns == 1 else f"{variable.name}[{column - variable.address}]"


def audited_run(
    machine: FleqMachine,
    program: FleqProgram,
    *,
    engine: str = "dense",
    max_steps: int = 100_000,
    watch: Watch | None = None,
    interrupted: Callable[[], bool] | None = None,
) -> FleqReport:
    """Run a program with every instruction compared, and the end compared with the interpreter."""
    auditor = Auditor(machine, program)

    def both(loop: int, card: Tensor) -> None:
        auditor.watch(loop, card)
        if watch is not None:
            watch(loop, card)

    result = machine.run(program, engine=engine, max_steps=max_steps, watch=both, interrupted=interrupted)
    expected = oracle.run(program, result.steps, check_range=False)
    found = result.state.memory[: program.rows, : program.columns]
    error = float(np.max(np.abs(found - expected.state.memory[:, : program.columns]), initial=0.0)) / machine.range
    same_path = (expected.state.program_counter, expected.halted) == (result.state.program_counter, result.halted)
    return FleqReport(result, auditor.max_step_error, error, auditor.bound, auditor.worst, auditor.within and same_path)
