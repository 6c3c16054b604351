"""Makes the binaries in `bin/` and the outputs in `expected/` from the sources here, and the kernel:

    python examples/riscv/build.py

The binaries are compiled for RV32I with the package's own C library and arithmetic, so that they hold nothing but what is
in this repository. The outputs are those of the same sources, compiled for this computer.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from punchcard.files import write_atomic
from punchcard.machines.in_c import compiler
from punchcard.machines.riscv.languages import c, toolchain

HERE = Path(__file__).parent
STACK = 1 << 12
"""Bytes: the binaries are for small machines too."""
SMALL = "-Os -g0 -Wall -Wextra -Werror -Wl,-z,max-page-size=16"


def input_of(name: str) -> bytes:
    """What an example reads."""
    path = HERE / "input" / f"{name}.txt"
    return path.read_bytes() if path.exists() else b""


def native_output(source: Path) -> bytes:
    """What a source writes on this computer."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        subprocess.run([*(compiler() or ["cc"]), "-O2", "-fwrapv", str(source), "-o", str(program)], check=True)
        return subprocess.run([program], input=input_of(source.stem), capture_output=True, check=True).stdout


def fibonacci(limit: int) -> Iterator[int]:
    """What an example in assembly writes."""
    number, following = 0, 1
    while number < limit:
        yield number
        number, following = following, number + following


def build_kernel(folder: Path) -> None:
    """The kernel, without a library: all of it is in its folder."""
    compile_ = [*toolchain.find("gcc").command, "-march=rv32ima_zicsr", "-mabi=ilp32", "-ffreestanding", "-nostdlib",
                "-static", "-mno-relax", *SMALL.split(), "-Wl,--build-id=none", "-s", "-T", "kernel.ld"]
    sources = sorted(path.name for pattern in ("*.S", "*.c") for path in folder.glob(pattern))
    subprocess.run([*compile_, *sources, "-o", "kernel.elf"], cwd=folder, check=True)


def main() -> None:
    build_kernel(HERE / "kernel")
    tools = replace(toolchain.find("gcc", "rv32i", "own"), arithmetic=None)
    for source in sorted(HERE.glob("*.c")):
        elf = c.build_elf(tools, source.read_text(), source.name, flags=SMALL.split(), folder=HERE, stack=STACK)
        write_atomic(HERE / "bin" / f"{source.stem}.elf", elf)
        write_atomic(HERE / "expected" / f"{source.stem}.txt", native_output(source))
        print(f"{source.stem}: {len(elf)} bytes")
    write_atomic(HERE / "expected" / "hi.txt", "Hi\n")
    write_atomic(HERE / "expected" / "fibonacci.txt", "".join(f"{number}\n" for number in fibonacci(1000)))


if __name__ == "__main__":
    main()
