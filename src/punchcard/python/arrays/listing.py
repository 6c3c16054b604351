"""A FLEQ program as text, with the line of the source above the instructions that it became."""

from __future__ import annotations

from collections.abc import Mapping

from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.text.writer import disassemble
from punchcard.python.arrays.ir import SourcePlace


def listing(program: FleqProgram, lines: Mapping[int, SourcePlace]) -> str:
    """The text of a program, each instruction with a comment that names its line; the text assembles to the program."""
    head, code = disassemble(program).split(".code\n")
    found, number, last = [head + ".code"], 0, ""
    for text in code.splitlines():
        if text.strip():
            note = str(lines[number]) if number in lines else ""
            if note and note != last:
                found.append(f"# {note}")
                last = note
            found.append(text)
            if not text.rstrip().endswith(":"):
                number += 1
    return "\n".join(found) + "\n"
