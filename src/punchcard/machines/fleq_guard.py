"""What a FLEQ program promises, checked loop by loop: values within the range, integer flags, pointers inside the memory.

The machine computes on regardless, since a transformer has no errors; so the host looks at the card after every loop
and stops a run whose result would be garbage, naming the instruction.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from punchcard.errors import ProgramError
from punchcard.isa.fleq import FLAG_TOLERANCE, Array, Call, FleqProgram, FleqState, Step
from punchcard.machines.fleq_reader import FleqReader

MOST_TOLERANCE = 1 / 16
"""The compact machine takes a flag that is off by 1/4, the paper's one that is off by 1/8."""


class Guard:
    """Follows a run; `before` is the state that the last loop began with, `pointers` those of its instruction."""

    def __init__(self, reader: FleqReader, program: FleqProgram, card: Tensor, *, limit: float, slack: float) -> None:
        self.reader, self.program = reader, program
        self.limit, self.slack = limit, slack
        self.card = card
        self.state = reader.read(card)
        self.before = self.state
        self.pointers: dict[str, int] = {}
        self.loop = 0

    def watch(self, loop: int, card: Tensor) -> None:
        """Check one loop."""
        self.loop = loop
        self.before, memory = self.state, self.reader.memory(card)
        number = self.before.program_counter
        instruction = self.program.instructions[number]
        if isinstance(instruction, Step):
            self.pointers = self.reader.pointers(self.card, number)
            if isinstance(instruction.action, Call):
                self._check_operands(instruction.action, number)
            self._check_range(memory, number)
            if instruction.branch is not None and instruction.branch.flag is not None:
                self._check_flag(memory, number)
        self.card = card
        # Only now: a flag that is no integer leaves no program counter that could be read.
        self.state = FleqState(memory, self.reader.program_counter(card))
        self._check_counter(self.state)

    def _where(self, number: int) -> str:
        """Which instruction, by number and label, and in which loop."""
        label = next((f" ({name})" for name, target in self.program.labels if target == number), "")
        return f"instruction {number}{label} in loop {self.loop}"

    def _check_operands(self, call: Call, number: int) -> None:
        for name, shape in (("a", call.a_shape), ("b", call.b_shape), ("c", call.c_shape)):
            if shape is not None:
                self._check_inside(name, shape.columns, number)
        domain = self.program.functions[call.function].domain
        if domain is not None:
            a = self.pointers["a"]
            operand = self.before.memory[: call.a_shape.rows, a : a + call.a_shape.columns]
            if not bool(np.all((domain[0] - self.slack <= operand) & (operand <= domain[1] + self.slack))):
                raise ProgramError(f"{self._where(number)}: {call.function} of {float(operand.flat[0]):g}: its block is "
                                   f"built for {domain[0]:g} to {domain[1]:g}")

    def _check_inside(self, field: str, columns: int, number: int) -> None:
        address = self.pointers[field]
        if not 0 <= address <= self.program.columns - columns:
            raise ProgramError(f"{self._where(number)}: pointer {field} is {address}, outside the program's "
                               f"{self.program.columns} memory columns")

    def _check_flag(self, memory: Array, number: int) -> None:
        self._check_inside("flag", 1, number)
        column = self.pointers["flag"]
        value = float(memory[0, column])
        if abs(value - round(value)) > min(FLAG_TOLERANCE + self.slack, MOST_TOLERANCE):
            raise ProgramError(f"{self._where(number)}: the flag {self.program.column_name(column)!r} is {value:g}: "
                               "a flag must be an integer")

    def _check_counter(self, state: FleqState) -> None:
        if not 0 <= state.program_counter < len(self.program.instructions):
            raise ProgramError(f"{self._where(self.before.program_counter)}: jumps to instruction {state.program_counter}, "
                               f"the program has {len(self.program.instructions)}")

    def _check_range(self, memory: Array, number: int) -> None:
        inside = memory[:, : self.program.columns]
        beyond = ~(np.abs(inside) <= self.limit + self.slack)
        if beyond.any():
            column = int(np.argmax(beyond.any(axis=0)))
            value = float(inside[:, column][beyond[:, column]][0])
            raise ProgramError(f"{self._where(number)}: {self.program.column_name(column)!r} became {value:g}, beyond the "
                               f"declared range ±{self.limit:g}: declare a larger one with .range")
