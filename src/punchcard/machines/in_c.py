"""C on the spot: a plain interpreter, compiled with the system's compiler, to measure engines against."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
import tempfile
from array import array
from functools import cache
from pathlib import Path

from punchcard.errors import CompilerError, shortened

COMPILERS = ("cc", "gcc", "clang")
OPTIONS = ("-O3", "-shared", "-fPIC", "-w", "-x", "c")


def compiler() -> list[str] | None:
    """The system's C compiler: what the environment names as CC, or else the first of the usual ones."""
    given = os.environ.get("CC", "")
    try:
        named = shlex.split(given)
    except ValueError as error:
        raise CompilerError(f"CC={shortened(given)}: {error}: write a command as a shell takes it, such as CC=gcc") from None
    if named and shutil.which(named[0]):
        return named
    return next(([found] for name in COMPILERS if (found := shutil.which(name))), None)


@cache
def compile_library(source: str) -> ctypes.CDLL:
    """A library from C text; a text is compiled once."""
    found = compiler()
    if found is None:
        raise CompilerError(f"there is no C compiler: install one of {', '.join(COMPILERS)}, or name one in CC")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "interpreter.so"
        command = [*found, *OPTIONS, "-", "-o", str(library)]
        ran = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
        if ran.returncode:
            said = next(iter(ran.stderr.splitlines()), "it printed nothing")
            raise CompilerError(f"{shlex.join(found)} does not compile the interpreter: {said}")
        try:
            return ctypes.CDLL(str(library))
        except OSError as error:
            raise CompilerError(f"what {shlex.join(found)} compiled cannot be loaded: {error}") from None


class CFunction:
    """The function `run` of C text. Arrays go to it as pointers and numbers as 64 bits; its result is a signed number."""

    def __init__(self, source: str) -> None:
        self._run = compile_library(source).run
        self._run.restype = ctypes.c_int64

    def __call__(self, *arguments: array[int] | int) -> int:
        return int(self._run(*(ctypes.c_int64(each) if isinstance(each, int) else ctypes.c_void_p(each.buffer_info()[0])
                               for each in arguments)))
