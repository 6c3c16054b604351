"""A plain interpreter of Brainfuck. It knows nothing of SUBLEQ."""

from __future__ import annotations

from dataclasses import dataclass

from punchcard.errors import ProgramError


@dataclass(frozen=True)
class BrainfuckOutcome:
    """What was written, the tape, and whether the program came to its end."""

    output: bytes
    tape: tuple[int, ...]
    halted: bool


def run(text: str, *, input: bytes = b"", tape: int = 100, modulus: int = 256, end_of_input: int | None = 0,
        max_steps: int = 100_000) -> BrainfuckOutcome:
    """Run a program; at the end of the input a cell becomes `end_of_input`, or stays as it is (None)."""
    program = [command for command in text if command in "+-<>.,[]"]
    partner: dict[int, int] = {}
    open_loops: list[int] = []
    for place, command in enumerate(program):
        if command == "[":
            open_loops.append(place)
        elif command == "]":
            start = open_loops.pop()
            partner[start], partner[place] = place, start
    cells, pointer, place, steps = [0] * tape, 0, 0, 0
    written, rest = bytearray(), list(reversed(input))
    while place < len(program) and steps < max_steps:
        command = program[place]
        if command in "+-":
            cells[pointer] = (cells[pointer] + (1 if command == "+" else -1)) % modulus
        elif command in "<>":
            pointer += 1 if command == ">" else -1
            if not 0 <= pointer < tape:
                raise ProgramError(f"the pointer is at {pointer}, and the tape has the cells 0 to {tape - 1}")
        elif command == ".":
            written.append(cells[pointer] & 0xFF)
        elif command == ",":
            if rest:
                cells[pointer] = rest.pop()
            elif end_of_input is not None:
                cells[pointer] = end_of_input % modulus
        elif (command == "[") == (cells[pointer] == 0):
            place = partner[place]
        place, steps = place + 1, steps + 1
    return BrainfuckOutcome(bytes(written), tuple(cells), place >= len(program))
