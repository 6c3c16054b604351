"""A plain interpreter of SUBLEQ programs."""

from __future__ import annotations

from punchcard.machines.interpreter import Interpreter
from punchcard.machines.subleq.isa import Program, State, Subleq


class SubleqInterpreter(Interpreter[State]):
    """Words wrap modulo 2^word_bits. A memory larger than the program's holds 0 beyond it."""

    def __init__(self, program: Program, word_bits: int, memory: int | None = None) -> None:
        self._instructions = program.instructions
        self._half = 1 << (word_bits - 1)
        self.memory = [*program.memory, *[0] * ((memory or 0) - len(program.memory))]
        self.program_counter = 0

    @property
    def halted(self) -> bool:
        return not isinstance(self._instructions[self.program_counter], Subleq)

    @property
    def state(self) -> State:
        return State(tuple(self.memory), self.program_counter)

    def step(self) -> None:
        instruction = self._instructions[self.program_counter]
        if not isinstance(instruction, Subleq):
            return
        difference = self.memory[instruction.b] - self.memory[instruction.a]
        result = (difference + self._half) % (2 * self._half) - self._half
        self.memory[instruction.b] = result
        self.program_counter = instruction.c if result <= 0 else self.program_counter + 1
        self.steps += 1


def run(program: Program, word_bits: int, max_steps: int) -> SubleqInterpreter:
    """Run until the program halts or `max_steps` instructions have been executed."""
    interpreter = SubleqInterpreter(program, word_bits)
    interpreter.run(max_steps)
    return interpreter
