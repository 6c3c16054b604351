"""Skills in Python: a file with a function `skill(text: str) -> int`, compiled as integers and executed on the card.

The [Python front end](docs/python.md) makes an image of SUBLEQ. On the card a RISC-V program of a hundred instructions,
`skills/image.s`, writes the end of the context into the image's text, executes it, and hands on what it printed and
returned. The file is parsed, never executed on the host.
"""

from __future__ import annotations

import ast
from pathlib import Path

from punchcard.errors import ProgramError
from punchcard.files import read_limited
from punchcard.machines.riscv.languages.assembly.assembler import assemble
from punchcard.machines.riscv.languages.c import BASE
from punchcard.machines.riscv.program import RiscvProgram
from punchcard.python.files import find_entry
from punchcard.python.integers.compiler import CompiledIntegers, compile_function
from punchcard.python.source import FunctionSource, parameters_of

INTERPRETER = Path(__file__).parent / "skills" / "image.s"
FUNCTION, PARAMETER = "skill", "text"
SIGNATURE = f"def {FUNCTION}({PARAMETER}: str) -> int"
ROOM = 256
"""Characters of the text that a skill sees, at most."""
WORD_BITS = 32
OTHERS = 1536
"""Words of the memory that are not the image's: the context, the interpreter, and what a machine keeps for a stack."""
MEMORIES = tuple(1 << bits for bits in range(12, 17))
"""The memory of a machine in words: as small as the program allows."""


def python_skill(path: Path) -> RiscvProgram:
    """The program of a skill in a `.py` file."""
    source = read_limited(path, "program", error=ProgramError).decode(errors="replace")
    entry = find_entry(source, path.name, FUNCTION).source
    given = [ast.unparse(parameter) for parameter in parameters_of(entry)]
    if given != [f"{PARAMETER}: str"]:
        raise ProgramError(f"{path.name}: {FUNCTION}({', '.join(given)}) must have one parameter, {PARAMETER}: str; write "
                           f"{SIGNATURE}")
    made = _compiled(entry)
    if made.result is None or made.result.kind not in ("int", "bool"):
        raise ProgramError(f"{path.name}: {FUNCTION}() must return 0, 1 (SAYS) or 2 (FORBIDS); write {SIGNATURE}")
    return assemble(_text(made), str(path), base=BASE)


def _compiled(entry: FunctionSource) -> CompiledIntegers:
    """The image, for the smallest memory that holds it."""
    for memory in MEMORIES:
        try:
            return compile_function(entry, {PARAMETER: "x" * ROOM}, word_bits=WORD_BITS, memory=memory - OTHERS)
        except ProgramError as error:
            if "use a larger memory" not in str(error) or memory == MEMORIES[-1]:
                raise
    raise AssertionError


def _text(made: CompiledIntegers) -> str:
    """The interpreter and the image as one text of assembly."""
    image, name = made.program, made.parameters[PARAMETER][0]
    sizes = {"cells": made.memory, "room": ROOM, "text": image.words[image.labels[name]],
             "result": image.labels[made.places[0]]}
    words = [word % (1 << WORD_BITS) for word in image.words]
    lines = [f"        .word {', '.join(map(str, words[at : at + 16]))}" for at in range(0, len(words), 16)]
    return "\n".join([*(f"        .equ {name}, {value}" for name, value in sizes.items()), INTERPRETER.read_text(),
                      "        .balign 4", "image:", *lines, f"        .space {4 * (made.memory - len(words))}", ""])
