"""C: compiled by a stock compiler, linked with the package's start-up file and linker script, and read as an ELF file."""

from __future__ import annotations

import os
import shlex
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from punchcard.errors import CompilerError, ProgramError, printable
from punchcard.files import read_limited
from punchcard.machines.riscv.argument_vector import aligned
from punchcard.machines.riscv.isa import WORD_BYTES
from punchcard.machines.riscv.languages import elf, toolchain
from punchcard.machines.riscv.languages.compiler_errors import error_of, first_line
from punchcard.machines.riscv.languages.options import ARCHITECTURES, LEAST_STACK, REFUSED
from punchcard.machines.riscv.languages.toolchain import RUNTIME, Toolchain
from punchcard.machines.riscv.program import DEFAULT_MEMORY, RiscvProgram
from punchcard.machines.source import read_text, where

OPTIMISATION = ("-O2", "-g")
"""What comes before the caller's own options."""
BASE = 1 << 16
"""Where a program is linked: above the first page, so that a null pointer is a fault."""
STACK_SHARE = 4
"""A stack has this share of the memory, unless it is given in bytes."""
DEFAULT_STACK = DEFAULT_MEMORY * WORD_BYTES // STACK_SHARE

LINKING = ("-static", "-nostdlib", "-nostartfiles", "-Wl,--gc-sections", "-Wl,--discard-locals", "-Wl,--build-id=none",
           f"-Wl,-T,{RUNTIME / 'link.ld'}")
LINKED = ("-lm", "-lc")
"""What is linked in any case, and is in other folders than those that a linker looks at."""
FURTHER = (".c", ".s", ".S")
"""Extensions of the files that a program may have beside the first."""


def assemble(
    text: str, source: str = "", *, folder: str | Path | None = None, files: Sequence[str | Path] = (),
    cc: str | None = None, cflags: str | None = None, march: str | None = None, libc: str | None = None,
    stack: int | None = None, base: int | None = None, memory: int | None = None,
) -> RiscvProgram:
    """The program that a C text gives, and the files beside it.

    `folder` is where its `#include "..."` are looked for, `base` where it is linked; its stack has `stack` bytes, by default
    a quarter of a memory of so many words.
    """
    tools = toolchain.find(cc, march or ARCHITECTURES[0], libc)
    try:
        flags = [flag for flag in shlex.split(cflags or "") if flag not in LINKED]
    except ValueError as error:
        raise ProgramError(f"--cflags {cflags!r}: {error}") from None
    room = DEFAULT_STACK if memory is None else memory * WORD_BYTES // STACK_SHARE
    made = build_elf(tools, text, source, flags=flags, folder=folder, files=files, base=BASE if base is None else base,
                     stack=room if stack is None else stack)
    return elf.load(made, source, base=base).with_arguments(())


def build_elf(
    tools: Toolchain, text: str, source: str = "", *, flags: Sequence[str] = (), folder: str | Path | None = None,
    files: Sequence[str | Path] = (), base: int = BASE, stack: int = DEFAULT_STACK,
) -> bytes:
    """The ELF file that a C text and more files give with these tools, with options of the caller's."""
    names = {os.path.abspath(_checked(file)): printable(str(file)) for file in files}
    runtime = _runtime(tools)
    with swept_folder() as made:
        program = made / "program.elf"
        objects = [made / f"runtime{number}.o" for number in range(len(runtime))]
        for path, content in zip(objects, runtime, strict=True):
            path.write_bytes(content)
        # The line directive gives messages, __FILE__ and debug information the file's own name.
        named = f'# 1 "{escaped(source or "program.c")}"\n{text}'
        command = [*tools.command, *tools.options, *OPTIMISATION, *flags, *(f"-ffile-prefix-map={old}={new}" for old, new in
                   names.items()), "-x", "c", "-", "-x", "none", *names, *map(str, objects), *LINKING,
                   f"-Wl,--defsym=__base={base:#x}", f"-Wl,--defsym=__stack_size={aligned(max(stack, LEAST_STACK)):#x}",
                   *tools.libraries, "-o", str(program)]
        beside = Path(folder) if folder is not None and Path(folder).is_dir() else made
        ran = toolchain.run(command, text=named, folder=beside, scratch=made)
        if ran.returncode:
            raise error_of(ran.stderr, printable(source), tools, made, names)
        if not program.is_file():
            raise ProgramError(f"{where(source)}{tools.command[0]} wrote no program: remove from {shlex.join(flags)!r} "
                               "the options that prevent linking")
        return read_limited(program, "program", error=ProgramError)


def _checked(file: str | Path) -> str | Path:
    """A further file of a program: one that a compiler takes as C or assembly, and that can be read."""
    suffix = Path(file).suffix
    if suffix not in FURTHER:
        reason = REFUSED.get(suffix.lower(), f"further files of a C program are {', '.join(FURTHER)}")
        raise ProgramError(f"{str(file)!r}: {reason}")
    read_text(file)
    return file


@cache
def _runtime(tools: Toolchain) -> tuple[bytes, ...]:
    """The package's own files as objects. They are compiled apart: the caller's options are not for them."""
    with swept_folder() as folder:
        command = [*tools.command, *tools.runtime_options, "-c", *map(str, tools.runtime)]
        ran = toolchain.run(command, folder=folder, scratch=folder)
        if ran.returncode:
            raise CompilerError(f"{tools.command[0]} does not compile the start-up files: {first_line(ran.stderr)}")
        return tuple(path.read_bytes() for path in sorted(folder.glob("*.o")))


def escaped(name: str) -> str:
    """A file's name as it is in a line directive, and so in messages and debug information."""
    return printable(name).replace("\\", r"\\").replace('"', r"\"")


@contextmanager
def swept_folder() -> Iterator[Path]:
    """A folder that vanishes, also when the command is interrupted: Ctrl-C and SIGTERM pass through as an exception."""
    main = threading.current_thread() is threading.main_thread()  # the only one that may
    numbers = (signal.SIGINT, signal.SIGTERM) if main else ()
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        with tempfile.TemporaryDirectory(prefix="punchcard-") as folder:
            yield Path(folder)
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: it was not set by Python
