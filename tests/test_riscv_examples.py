"""The RISC-V examples: prebuilt binaries against the outputs of the native builds, sizes, and the table in the docs."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import punchcard
from punchcard.api import load
from punchcard.machines.riscv.languages import c
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.program import RiscvProgram
from tests.cases import EXAMPLES, ROOT
from tests.riscv_runs import COMPILERS, interpret, native, needs_native

FOLDER = EXAMPLES / "riscv"
SOURCES = sorted([*FOLDER.glob("*.c"), *FOLDER.glob("*.s")])
DOCS = (ROOT / "docs" / "riscv.md").read_text()
MOST_BYTES = 300_000


def input_of(source: Path) -> bytes:
    path = FOLDER / "input" / f"{source.stem}.txt"
    return path.read_bytes() if path.exists() else b""


def program_of(source: Path) -> RiscvProgram:
    return load(FOLDER / "bin" / f"{source.stem}.elf" if source.suffix == ".c" else source, RiscvProgram)


def expected(source: Path) -> bytes:
    return (FOLDER / "expected" / f"{source.stem}.txt").read_bytes()


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_output_and_the_figures_in_the_docs(source: Path) -> None:
    program = program_of(source)
    ran = interpret(program, input_of(source))
    assert (ran.output, ran.status) == (expected(source), 0)
    row = re.search(rf"^\| `{re.escape(source.name)}` \|.*\| ([\d,]+) \| ([\d,]+) \|$", DOCS, re.MULTILINE)
    assert row is not None
    assert tuple(int(figure.replace(",", "")) for figure in row.groups()) == (program.needed_words, ran.steps)


def test_the_binaries_are_small_and_have_names() -> None:
    binaries = sorted((FOLDER / "bin").iterdir())
    assert [path.stem for path in binaries] == [path.stem for path in SOURCES if path.suffix == ".c"]
    assert sum(path.stat().st_size for path in binaries) < MOST_BYTES
    assert all("main" in load(path).symbols for path in binaries)


def test_the_program_in_the_readme_is_the_example() -> None:
    """The text as it is in the file, and lines of its output."""
    source = FOLDER / "collatz.c"
    readme = (ROOT / "README.md").read_text()
    assert "".join(f"    {line}".rstrip() + "\n" for line in source.read_text().splitlines()) in readme
    shown = readme[readme.index("    $ punchcard run examples/riscv/collatz.c") :].split("\n\n")[0].splitlines()[1:]
    lines = [line.strip() for line in shown if line.strip() != "..."]
    assert lines == [line for line in expected(source).decode().splitlines() if line in lines]


@pytest.mark.soak
@needs_native
@pytest.mark.parametrize("source", [path for path in SOURCES if path.suffix == ".c"], ids=lambda path: path.name)
def test_the_expected_outputs_are_those_of_native_builds(source: Path, tmp_path: Path) -> None:
    assert native(source, input_of(source), tmp_path) == (expected(source), 0)


@pytest.mark.soak
@pytest.mark.parametrize("libc", ["own", None])
@pytest.mark.parametrize("march", ["rv32i", "rv32im"])
@pytest.mark.parametrize("level", ["-O0", "-O2", "-Os"])
@pytest.mark.parametrize("cc", COMPILERS)
def test_every_compiler_and_level(cc: str, level: str, march: str, libc: str | None) -> None:
    """All examples, as stock compilers give them."""
    for source in SOURCES:
        if source.suffix == ".c":
            program = c.assemble(source.read_text(), source.name, cc=cc, cflags=level, march=march, libc=libc)
            assert interpret(program, input_of(source))[:2] == (expected(source), 0), source.name


@cache
def machine(base: int) -> RiscvMachine:
    return RiscvMachine(base=base)


@pytest.mark.soak
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_on_the_transformer(source: Path) -> None:
    """All examples on one machine, or two where they are in assembly, compared at their end: memory, registers, output."""
    program = program_of(source)
    report = punchcard.run(program, machine(program.base), engine="lowered", input=input_of(source), check="end")
    assert report.ok, report.why
    assert (report.result.output, report.result.status) == (expected(source), 0)
