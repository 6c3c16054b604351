"""Assembly text that may be for the C preprocessor: a `.S` file with directives, such as `#define N 8`.

In a `.s` file such a line is a remark, as it is for the GNU assembler. Each line stays where it was, so that messages and
traces name the lines of the file.
"""

from __future__ import annotations

import re
from pathlib import Path

from punchcard.errors import ProgramError, printable
from punchcard.machines.riscv.languages import toolchain
from punchcard.machines.riscv.languages.assembly import assembler
from punchcard.machines.riscv.languages.c import escaped, swept_folder
from punchcard.machines.riscv.languages.compiler_errors import error_of
from punchcard.machines.riscv.program import RiscvProgram
from punchcard.machines.source import where

EXTENSION = ".S"
DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?:define|undef|include|if|ifdef|ifndef|elif|else|endif|error|warning|pragma)\b",
                       re.MULTILINE)
_MARK = re.compile(r'# (?P<line>\d+) "(?P<file>(?:\\.|[^"\\])*)"')


def assemble(text: str, source: str = "", *, base: int = 0, folder: str | Path | None = None) -> RiscvProgram:
    """The program in a text. `folder` is where `#include "..."` is looked for."""
    if Path(source).suffix == EXTENSION and DIRECTIVE.search(text):
        text = preprocessed(text, source, folder)
    return assembler.assemble(text, source, base=base)


def preprocessed(text: str, source: str, folder: str | Path | None = None) -> str:
    """The text after the preprocessor of the C compiler, with every line at its own place."""
    tools, name = toolchain.find(), escaped(source)
    with swept_folder() as made:
        beside = Path(folder) if folder is not None and Path(folder).is_dir() else made
        ran = toolchain.run([*tools.command, *tools.options, "-E", "-x", "assembler-with-cpp", "-"],
                            text=f'#line 1 "{name}"\n{text}', folder=beside, scratch=made)
        if ran.returncode:
            raise error_of(ran.stderr, printable(source), tools, made, {})
    lines, number, file = [""] * (text.count("\n") + 1), 1, name
    for line in ran.stdout.split("\n"):
        if mark := _MARK.match(line):
            number, file = int(mark["line"]), mark["file"]
            continue
        if file == name and number <= len(lines):
            lines[number - 1] = line
        elif line.strip():
            raise ProgramError(f"{where(source)}{file!r}, line {number}, which is included, has code: it may have "
                               "directives only, such as #define; write the code into the file itself")
        number += 1
    return "\n".join(lines)
