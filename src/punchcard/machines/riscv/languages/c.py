"""C: compiled by a stock compiler, linked with the package's start-up file and linker script, and read as an ELF file."""

from __future__ import annotations

import re
import shlex
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from punchcard.errors import CompilerError, ProgramError, SourceError
from punchcard.files import read_whole
from punchcard.machines.kind import Option
from punchcard.machines.riscv.languages import elf, toolchain
from punchcard.machines.riscv.languages.toolchain import ARCHITECTURES, LIBRARIES, RUNTIME, Toolchain
from punchcard.machines.riscv.program import RiscvProgram
from punchcard.machines.source import where

OPTIMISATION = ("-O2", "-g")
"""What comes before the caller's own options."""
OPTIONS = (
    Option("cc", "the compiler: gcc, clang or a command", str),
    Option("cflags", "options for the compiler, such as '-O0 -DN=8'", str),
    Option("march", "instructions that the compiler may use", str, choices=ARCHITECTURES),
    Option("libc", "the C library; default: picolibc if it is installed", str, choices=LIBRARIES),
)

LINKING = ("-static", "-nostdlib", "-nostartfiles", "-Wl,--gc-sections", "-Wl,--discard-locals", "-Wl,--build-id=none",
           f"-Wl,-T,{RUNTIME / 'link.ld'}")
LINKED = ("-lm", "-lc")
"""What is linked in any case, and is in other folders than those that a linker looks at."""
_ERROR = re.compile(r"(?P<file>[^\n:]*):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: (?P<message>.*)")
_UNDEFINED = re.compile(r"undefined (?:reference to|symbol:) [`']?(?P<name>[^'\s]+)")


def assemble(
    text: str, source: str = "", *, folder: str | Path | None = None, cc: str | None = None, cflags: str | None = None,
    march: str | None = None, libc: str | None = None, base: int | None = None,
) -> RiscvProgram:
    """The program that a C text gives. `folder` is where its `#include "..."` are looked for, `base` where it is linked."""
    tools = toolchain.find(cc, march or ARCHITECTURES[0], libc)
    try:
        flags = [flag for flag in shlex.split(cflags or "") if flag not in LINKED]
    except ValueError as error:
        raise ProgramError(f"--cflags {cflags!r}: {error}") from None
    if base:
        flags.append(f"-Wl,--defsym=__base={base:#x}")
    return elf.load(built(tools, text, source, flags=flags, folder=folder), source, base=base)


def built(
    tools: Toolchain, text: str, source: str = "", *, flags: Sequence[str] = (), folder: str | Path | None = None
) -> bytes:
    """The ELF file that a C text gives with these tools, and with options of the caller's."""
    with _swept_folder() as made:
        program = made / "program.elf"
        objects = _runtime(tools, made)
        # The line directive gives messages, __FILE__ and debug information the file's own name.
        named = f'# 1 "{_escaped(source or "program.c")}"\n{text}'
        command = [*tools.command, *tools.options, *OPTIMISATION, *flags, "-x", "c", "-", "-x", "none", *map(str, objects),
                   *LINKING, *tools.libraries, "-o", str(program)]
        beside = Path(folder) if folder is not None and Path(folder).is_dir() else made
        ran = toolchain.run(command, text=named, folder=beside)
        if ran.returncode:
            _refuse(ran.stderr, source, tools)
        if not program.is_file():
            raise ProgramError(f"{where(source)}{tools.command[0]} wrote no program: leave out of {shlex.join(flags)!r} "
                               "what keeps it from linking")
        return read_whole(program, "program", error=ProgramError)


def _runtime(tools: Toolchain, folder: Path) -> list[Path]:
    """The package's own files as objects. They are compiled apart: the caller's options are not for them."""
    ran = toolchain.run([*tools.command, *tools.runtime_options, "-c", *map(str, tools.runtime)], folder=folder)
    if ran.returncode:
        raise CompilerError(f"{tools.command[0]} does not compile the start-up files: {_first_line(ran.stderr)}")
    return sorted(folder.glob("*.o"))


def _refuse(said: str, source: str, tools: Toolchain) -> NoReturn:
    """The first error of a compiler, or of its linker, in one line."""
    if found := _ERROR.search(said):
        raise SourceError(found["message"], line=int(found["line"]), column=int(found["column"]), text="",
                          source=found["file"])
    if missing := _UNDEFINED.search(said):
        raise ProgramError(f"{where(source)}{missing['name']!r} is used, and is not defined in the program or in the "
                           f"{'small C library of the package' if tools.picolibc is None else 'C library'}")
    raise ProgramError(f"{where(source)}{Path(tools.command[0]).name} fails: {_first_line(said)}")


def _first_line(said: str) -> str:
    """The line that tells most."""
    lines = [line for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith("collect2:")] or lines
    return next((line for line in telling if "error" in line or "cannot find" in line), (telling or ["it says nothing"])[0])


def _escaped(name: str) -> str:
    """A file's name as it is in a line directive."""
    return name.replace("\\", r"\\").replace('"', r"\"").replace("\n", " ")


@contextmanager
def _swept_folder() -> Iterator[Path]:
    """A folder that vanishes, also when the command is interrupted: Ctrl-C and SIGTERM pass through as an exception."""
    main = threading.current_thread() is threading.main_thread()  # the only one that may
    numbers = (signal.SIGINT, signal.SIGTERM) if main else ()
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        with tempfile.TemporaryDirectory(prefix="punchcard-") as folder:
            yield Path(folder)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
