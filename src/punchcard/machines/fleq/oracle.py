"""A plain interpreter of FLEQ programs, in float64.

Operands are read from whole memory columns, and only their own rows count; a result is written over whole columns, with
zeros below it. A pointer may lead anywhere; it is checked when an instruction uses it. An instruction is fetched before
it acts, so one that changes its own pointers does so for the next time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from punchcard.errors import ConvergenceError, ProgramError
from punchcard.machines.fleq.isa import (
    FLAG_TOLERANCE,
    Array,
    Branch,
    Call,
    Field,
    FleqProgram,
    FleqState,
    Halt,
    Instruction,
    PointerUpdate,
    pointers,
    with_pointer,
)
from punchcard.machines.interpreter import Interpreter

MARGIN = 1e-6
"""A value that an interpreter computes may be this much larger, relatively, on the machine."""
MOST_DRY_STEPS = 100_000


class FleqInterpreter(Interpreter[FleqState]):
    """Executes one instruction at a time. `check_range` refuses results beyond the range that the program declares."""

    def __init__(self, program: FleqProgram, check_range: bool = True) -> None:
        self._program = program
        self._check_range = check_range
        self.instructions: list[Instruction] = list(program.instructions)
        self.memory = program.initial_memory()
        self.program_counter = 0

    @property
    def halted(self) -> bool:
        return isinstance(self.instructions[self.program_counter], Halt)

    @property
    def state(self) -> FleqState:
        return FleqState(self.memory.copy(), self.program_counter)

    def step(self) -> None:
        """Execute the next instruction; on a halt nothing changes."""
        instruction = self.instructions[self.program_counter]
        if isinstance(instruction, Halt):
            return
        if isinstance(instruction.action, Call):
            self._call(instruction.action)
        elif isinstance(instruction.action, PointerUpdate):
            self._update(instruction.action)
        branch = instruction.branch
        if branch is not None and self._taken(branch):
            if branch.target not in range(len(self.instructions)):
                raise self._error(f"pointer p is {branch.target}: there are {len(self.instructions)} instructions, "
                                  "counted from 0")
            self.program_counter = branch.target
        else:
            self.program_counter += 1
        self.steps += 1

    def _call(self, call: Call) -> None:
        """mem[c] = f(mem[a], mem[b])."""
        function = self._program.functions[call.function]
        operands = [self._columns(name, getattr(call, name), shape.columns)[: shape.rows]
                    for name, shape in call.operand_shapes.items()]
        with np.errstate(all="ignore"):  # overflow and division by zero give infinity or NaN
            result = np.array(function.reference(*operands), dtype=np.float64)
        if result.shape != (call.c_shape.rows, call.c_shape.columns):
            raise self._error(f"{call.function} gives {'x'.join(map(str, result.shape))}, but its result is {call.c_shape}")
        target = self._columns("c", call.c, call.c_shape.columns)
        if self._check_range:
            self._refuse_beyond(result, call.c)
        target[:] = 0
        target[: call.c_shape.rows] = result

    def _update(self, update: PointerUpdate) -> None:
        """Change a pointer of an instruction, to take effect when that is next fetched."""
        changed = self.instructions[update.instruction]
        if isinstance(changed, Halt) or update.field not in pointers(changed):
            raise self._error(f"instruction {update.instruction} has no pointer {update.field}")
        value = pointers(changed)[update.field] + 1 if update.value is None else update.value
        self.instructions[update.instruction] = with_pointer(changed, update.field, value)

    def _taken(self, branch: Branch) -> bool:
        """Whether mem[flag] <= 0, which is looked at after the write; a goto is always taken."""
        if branch.flag is None:
            return True
        flag = float(self._columns("flag", branch.flag, 1)[0, 0])
        if not math.isfinite(flag) or abs(flag - round(flag)) > FLAG_TOLERANCE:
            raise self._error(f"a flag that is not an integer: {flag!r} in {self._variable(branch.flag)}")
        return round(flag) <= 0

    def _columns(self, field: Field, start: int, width: int) -> Array:
        """The memory columns that a pointer leads to, whole."""
        columns = self.memory.shape[1]
        if not 0 <= start <= columns - width:
            reads = f", and {width} are used from there" if width > 1 else ""
            raise self._error(f"pointer {field} is {start}: there are {columns} memory columns, counted from 0{reads}")
        return self.memory[:, start : start + width]

    def _refuse_beyond(self, result: Array, start: int) -> None:
        limit = self._program.range
        wrong = np.argwhere(~(np.abs(result) <= limit))  # so that NaN is wrong too
        if len(wrong):
            row, column = wrong[0]
            raise self._error(f"{float(result[row, column])!r} in {self._variable(start + int(column))} is beyond the "
                              f"range, {limit!r}")

    def _variable(self, column: int) -> str:
        return next((repr(v.name) for v in self._program.variables if column in v.columns), f"column {column}")

    def _error(self, message: str) -> ProgramError:
        return ProgramError(f"instruction {self.program_counter}: {message}")


def run(program: FleqProgram, max_steps: int, check_range: bool = True) -> FleqInterpreter:
    """Run until the program halts or `max_steps` instructions have been executed."""
    interpreter = FleqInterpreter(program, check_range)
    interpreter.run(max_steps)
    return interpreter


@dataclass(frozen=True)
class DryRun:
    """The memory by name at the end, the largest value at any time, and the instructions that were executed."""

    memory: dict[str, Array]
    largest: float
    steps: int


def dry_run(program: FleqProgram) -> DryRun:
    """Run a program before the machine does, whatever its range, to learn how large values get."""
    interpreter = FleqInterpreter(program, check_range=False)
    given = largest = float(np.abs(interpreter.memory).max())
    while not interpreter.halted and interpreter.steps < MOST_DRY_STEPS:
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
