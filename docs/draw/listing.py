"""An instruction of a SUBLEQ program as text, with the names of its cells and labels."""

from __future__ import annotations

import punchcard
from punchcard.machines.subleq.isa import Subleq


def instruction_text(program: punchcard.Program, number: int) -> str:
    instruction = program.instructions[number]
    if not isinstance(instruction, Subleq):
        return "halt"
    cells, labels = program.cell_names(), {place: name for name, place in program.labels}
    goto = "" if instruction.c == number + 1 else f", {labels.get(instruction.c, instruction.c)}"
    return f"subleq {cells[instruction.a]}, {cells[instruction.b]}{goto}"
