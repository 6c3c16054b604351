"""What compilers and linkers say, in one line that names the program's own files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from punchcard.errors import ProgramError, SourceError
from punchcard.machines.riscv.languages.toolchain import DEBIAN, DEBIAN_GCC, LIMITS, Toolchain
from punchcard.machines.source import where

_ERROR = re.compile(r"^(?P<file>[^\n]*?):(?P<line>\d+):(?:(?P<column>\d+):)? (?:fatal error|error|Error): (?P<message>.*)",
                    re.MULTILINE)
_UNDEFINED = re.compile(r"undefined (?:reference to|symbol:) [`']?(?P<name>[^'\s]+)")
_TWICE = re.compile(r"(?:multiple definition of|duplicate symbol:) [`']?(?P<name>[^'\s;]+)")
_HEADER = re.compile(r"'?(?P<name>[a-z]+\.h)'?(?:: No such file or directory| file not found)")
_REAL = re.compile(r"__(?:add|sub|mul|div|neg|eq|ne|lt|le|gt|ge|unord|extend|trunc|fix|fixuns|float|floatun)\w*[sd]f\w*")
_TOO_MUCH = re.compile(r"out of memory|memory exhausted|std::bad_alloc|[Aa]llocation failed|[Ff]ile size limit exceeded|"
                       r"signal terminated program|(?:terminated (?:by|with)|killed by|due to) signal\b|"
                       r"(?:internal compiler error|unable to execute command): Killed|PLEASE submit a bug report")
"""What gcc, clang and their linkers say where a signal ended them, or where there was no memory."""
HEADERS = frozenset(f"{name}.h" for name in (
    "complex errno fenv iso646 locale math signal stdalign stdatomic tgmath threads time uchar wchar wctype unistd").split())
"""Headers of C, and one that every Unix has, which the small library does not have."""


def error_of(output: str, source: str, tools: Toolchain, folder: Path, names: Mapping[str, str]) -> ProgramError:
    """The first error of a compiler, or of its linker.

    folder   where temporary files are: a message about one is about the program
    names    what files are called by the caller, by their paths
    """
    if found := _ERROR.search(output):
        message = found["message"] + _advice_on_header(found["message"], tools)
        if found["file"].startswith("<") or Path(found["file"]).is_relative_to(folder):  # <inline asm>
            return ProgramError(f"{where(source)}{message}")
        return SourceError(message, line=int(found["line"]), column=int(found["column"] or 1), text="",
                           source=names.get(found["file"], found["file"]))
    if missing := _UNDEFINED.search(output):
        return ProgramError(f"{where(source)}{_undefined(missing['name'], tools)}")
    if twice := _TWICE.search(output):
        return ProgramError(f"{where(source)}{twice['name']!r} is defined twice in the program's files")
    compiler = Path(tools.command[0]).name
    if _TOO_MUCH.search(output) or not output.strip():
        return ProgramError(f"{where(source)}{compiler} was stopped by a limit: a compiler has {LIMITS}, and what is free "
                            "for temporary files")
    line = re.sub(rf"{re.escape(str(folder))}[^\s:;)]*", lambda found: source or "the program", first_line(output))
    return ProgramError(f"{where(source)}{compiler} fails: {line}")


def _undefined(name: str, tools: Toolchain) -> str:
    """Why a name may be missing, and what to do."""
    if tools.arithmetic is None and _REAL.fullmatch(name):
        return (f"{name!r}, arithmetic of real numbers, is not there: install the compiler whose library has it "
                f"({DEBIAN} {DEBIAN_GCC})")
    used = f"{name!r} is used, and is not defined in the program or in the "
    return used + ("C library" if tools.picolibc else
                   f"small C library of the package; a complete one: {tools.complete_library}")


def _advice_on_header(message: str, tools: Toolchain) -> str:
    """What to do where a header of C is missing."""
    found = _HEADER.search(message)
    if found is None or found["name"] not in HEADERS or tools.picolibc:
        return ""
    return f" (the small C library of the package has no {found['name']}; a complete one: {tools.complete_library})"


def first_line(output: str) -> str:
    """The line that tells most."""
    lines = [line for line in output.splitlines() if line.strip()]
    useful = [line for line in lines if not line.startswith("collect2:") and " warning: " not in line]
    useful = useful or lines or ["it printed nothing; no memory or no room for its temporary files is a usual reason"]
    return next((line for line in useful if "error" in line or "cannot find" in line), useful[0])
