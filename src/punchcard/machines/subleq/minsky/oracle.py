"""A plain interpreter of Minsky machines: what their translation to SUBLEQ is judged by."""

from __future__ import annotations

from dataclasses import dataclass

from punchcard.machines.subleq.minsky.isa import Add, MinskyProgram, Sub


@dataclass(frozen=True)
class MinskyOutcome:
    """The registers by name, whether the machine halted, and its steps."""

    registers: dict[str, int]
    halted: bool
    steps: int


def run(program: MinskyProgram, max_steps: int) -> MinskyOutcome:
    """Run until the machine halts or has made `max_steps` steps. Registers are unbounded."""
    names = [name for name, _ in program.registers]
    values = [value for _, value in program.registers]
    counter = steps = 0
    while steps < max_steps:
        instruction = program.instructions[counter]
        if isinstance(instruction, Add):
            values[instruction.register] += 1
            counter += 1
        elif isinstance(instruction, Sub):
            if values[instruction.register] == 0:
                counter = instruction.target
            else:
                values[instruction.register] -= 1
                counter += 1
        else:
            return MinskyOutcome(dict(zip(names, values, strict=True)), True, steps)
        steps += 1
    halted = not isinstance(program.instructions[counter], Add | Sub)
    return MinskyOutcome(dict(zip(names, values, strict=True)), halted, steps)
