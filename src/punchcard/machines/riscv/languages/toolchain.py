"""Compilers for RISC-V: which there are, and what a program is linked with.

gcc for bare metal comes with a library of arithmetic (libgcc), and on Debian with a C library (picolibc). Where one of them
is not there, what `runtime/` has takes its place.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from punchcard.budget import format_bytes
from punchcard.errors import CompilerError

GCC = ("riscv64-unknown-elf-gcc", "riscv32-unknown-elf-gcc", "riscv64-elf-gcc", "riscv32-elf-gcc", "riscv-none-elf-gcc",
       "riscv64-linux-gnu-gcc")
CLANG = ("clang",)
LINKER = "ld.lld"
"""What clang links with: the system's own linker does not know RISC-V."""
FOR_CLANG = ("--target=riscv32-unknown-elf", "-fuse-ld=lld", "-nostdlibinc", "-Wno-unused-command-line-argument")
"""Headers of this computer's own C library are not for the program."""
ABI = "ilp32"
PICOLIBC = ("/usr/lib/picolibc/riscv64-unknown-elf", "/usr/local/lib/picolibc/riscv64-unknown-elf",
            "/usr/picolibc/riscv64-unknown-elf", "/usr/local/picolibc/riscv64-unknown-elf")
"""Where distributions have it."""
RUNTIME = Path(__file__).parent.parent / "runtime"
SECONDS = 120
MEMORY, FILE = 2 << 30, 256 << 20
"""The most that a compiler may use: time, bytes of memory, and bytes of a file that it writes."""
LIMITS = f"{SECONDS} seconds, {format_bytes(MEMORY)} of memory, and {format_bytes(FILE)} for a file"
LIMITED = ("/bin/sh", "-c", f'ulimit -v {MEMORY >> 10} 2>&- || :; ulimit -f {FILE >> 9} 2>&- || :; exec "$@"', "sh")
"""What a compiler is started by. A lower limit of the caller's own stays."""
CANNOT_RUN = (126, 127)
"""How a shell ends that cannot start a command."""
MOST_SAID = 1 << 20
"""Bytes of a compiler's messages that are read."""

DEBIAN = "Debian and Ubuntu: apt install"
DEBIAN_GCC, DEBIAN_PICOLIBC = "gcc-riscv64-unknown-elf", "picolibc-riscv64-unknown-elf"
INSTALL = (f"on {DEBIAN} {DEBIAN_GCC} {DEBIAN_PICOLIBC}; on Fedora: dnf install clang lld; "
           "on macOS: brew install riscv64-elf-gcc")


class Ran(NamedTuple):
    """How a compiler ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Toolchain:
    """A compiler for one architecture, and the C library that its programs are linked with.

    picolibc     where it is installed, with its headers in `include` and a library for each architecture in `lib`
    arithmetic   libgcc for the architecture, if there is one
    """

    command: tuple[str, ...]
    architecture: str
    picolibc: Path | None = None
    arithmetic: Path | None = None

    @property
    def options(self) -> list[str]:
        """What every file is compiled with."""
        headers = RUNTIME if self.picolibc is None else self.picolibc
        return [f"-march={self.architecture}", f"-mabi={ABI}", "-ffunction-sections", "-fdata-sections",
                "-ftls-model=local-exec", "-isystem", str(headers / "include")]

    @property
    def runtime_options(self) -> list[str]:
        """What the files of `runtime/` are compiled with: a loop of memset must not become a call of memset."""
        plain = "-fno-builtin" if is_clang(self.command) else "-fno-tree-loop-distribute-patterns"
        return [*self.options, "-O2", "-ffreestanding", plain, f"-I{RUNTIME}"]

    @property
    def runtime(self) -> list[Path]:
        """The package's own files that every program is linked with."""
        own = [RUNTIME / "start.S"]
        if self.picolibc is not None:
            return [*own, RUNTIME / "streams.c"]
        library = [path for path in sorted((RUNTIME / "libc").glob("*.[cS]")) if path.name != "arithmetic.c"]
        return own + library + ([] if self.arithmetic else [RUNTIME / "libc" / "arithmetic.c"])

    @property
    def complete_library(self) -> str:
        """How to get the whole C library, where a program needs it."""
        if self.arithmetic is not None and _picolibc(self.architecture, self.arithmetic, None) is not None:
            return "leave out --libc own"
        return f"install picolibc ({DEBIAN} {DEBIAN_GCC} {DEBIAN_PICOLIBC})"

    @property
    def libraries(self) -> list[str]:
        found = [] if self.picolibc is None else [self._library(self.picolibc, name) for name in ("libc.a", "libm.a")]
        if self.arithmetic is not None:
            found.append(str(self.arithmetic))
        return ["-Wl,--start-group", *found, "-Wl,--end-group"] if found else []

    def _library(self, picolibc: Path, name: str) -> str:
        return str(picolibc / "lib" / self.architecture / ABI / name)


def find(cc: str | None = None, architecture: str = "rv32i", library: str | None = None) -> Toolchain:
    """The compiler that is asked for, "gcc", "clang" or a command, or the first that is there."""
    command = _named(cc) if cc is not None else next(_found(), None)
    if command is None:
        raise CompilerError(f"there is no C compiler for RISC-V: install one ({INSTALL})")
    if is_clang(command):
        if shutil.which(LINKER) is None:
            raise CompilerError(f"{shlex.join(command)} links for RISC-V with lld, and {LINKER} is not there: install lld")
        command = [*command, *FOR_CLANG]
    gcc = next(_among(GCC), None)
    arithmetic = None if gcc is None else _arithmetic(gcc, architecture)
    return Toolchain(tuple(command), architecture, _picolibc(architecture, arithmetic, library), arithmetic)


def is_clang(command: Sequence[str]) -> bool:
    return "clang" in Path(command[0]).name


def _named(cc: str) -> list[str]:
    """The command for a compiler that was named."""
    families = {"gcc": GCC, "clang": CLANG}
    if cc in families:
        found = next(_among(families[cc]), None)
        if found is None:
            raise CompilerError(f"--cc {cc}: there is no {' or '.join(families[cc])}: install one ({INSTALL})")
        return found
    try:
        words = shlex.split(cc)
    except ValueError as error:
        raise CompilerError(f"--cc {cc!r}: {error}") from None
    if not words or shutil.which(words[0]) is None:
        raise CompilerError(f"--cc {cc!r}: there is no such command: write gcc, clang, or the name of a compiler")
    return words


def _found() -> Iterator[list[str]]:
    yield from _among(GCC)
    if shutil.which(LINKER) is not None:
        yield from _among(CLANG)


def _among(names: Sequence[str]) -> Iterator[list[str]]:
    return ([found] for name in names if (found := shutil.which(name)))


def _arithmetic(gcc: Sequence[str], architecture: str) -> Path | None:
    """libgcc for an architecture; a compiler without one names that of its own, which is of another."""
    named = run([*gcc, f"-march={architecture}", f"-mabi={ABI}", "-print-libgcc-file-name"]).stdout.strip()
    return Path(named) if f"{architecture}/{ABI}" in named and os.path.isfile(named) else None


def _picolibc(architecture: str, arithmetic: Path | None, wanted: str | None) -> Path | None:
    """Where picolibc is. It prints real numbers, for which it needs libgcc."""
    if wanted == "own":
        return None
    for place in map(Path, PICOLIBC):
        if arithmetic and (place / "lib" / architecture / ABI / "libc.a").is_file():
            return place
    if wanted == "picolibc":
        raise CompilerError(f"picolibc for {architecture} is not there: install it ({DEBIAN} {DEBIAN_PICOLIBC}), "
                            "or use --libc own")
    return None


def run(command: Sequence[str], *, text: str = "", folder: Path | None = None, scratch: Path | None = None) -> Ran:
    """A compiler's run to its end, within limits. `scratch` is where it has its temporary files."""
    environment = {**os.environ, "LC_ALL": "C", **({} if scratch is None else {"TMPDIR": str(scratch)})}
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        given.write(text.encode("utf-8", "replace"))
        given.seek(0)
        try:
            process = subprocess.Popen([*LIMITED, *command], stdin=given, stdout=output, stderr=errors, cwd=folder,
                                       env=environment, start_new_session=True)
        except OSError as error:
            raise CompilerError(f"{command[0]} cannot be run: {error.strerror or error}") from None
        try:
            code = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            raise CompilerError(f"{command[0]} has not ended after {SECONDS} seconds") from None
        finally:
            _end(process)
        printed = [_content(file) for file in (output, errors)]
    if code in CANNOT_RUN:
        why = printed[1].strip().rpartition(": ")[2] or "the shell printed nothing"
        raise CompilerError(f"{command[0]} cannot be run: {why}")
    return Ran(code, *printed)


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(MOST_SAID).decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a compiler with all that it has started, where it has not ended."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
