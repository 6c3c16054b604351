"""A plain interpreter of SUBLEQ programs."""

from __future__ import annotations

from dataclasses import dataclass

from punchcard.machines.subleq.isa import Program, State, Subleq


@dataclass(frozen=True)
class Outcome:
    """How a run ended: the state, whether it halted, and how many instructions it took (halt is not counted)."""

    state: State
    halted: bool
    steps: int


class Interpreter:
    """Executes one instruction at a time; words wrap modulo 2^word_bits."""

    def __init__(self, program: Program, word_bits: int) -> None:
        self._instructions = program.instructions
        self._half = 1 << (word_bits - 1)
        self.memory = list(program.memory)
        self.program_counter = 0
        self.steps = 0

    @property
    def halted(self) -> bool:
        return not isinstance(self._instructions[self.program_counter], Subleq)

    @property
    def state(self) -> State:
        return State(tuple(self.memory), self.program_counter)

    def step(self) -> None:
        """Execute the next instruction; on a halt nothing changes."""
        instruction = self._instructions[self.program_counter]
        if not isinstance(instruction, Subleq):
            return
        difference = self.memory[instruction.b] - self.memory[instruction.a]
        result = (difference + self._half) % (2 * self._half) - self._half
        self.memory[instruction.b] = result
        self.program_counter = instruction.c if result <= 0 else self.program_counter + 1
        self.steps += 1


def run(program: Program, word_bits: int, max_steps: int) -> Outcome:
    """Run until the program halts or `max_steps` instructions have been executed."""
    interpreter = Interpreter(program, word_bits)
    while not interpreter.halted and interpreter.steps < max_steps:
        interpreter.step()
    return Outcome(interpreter.state, interpreter.halted, interpreter.steps)
