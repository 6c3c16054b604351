"""The commands `asm` and `disasm`: programs as files in other forms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from punchcard.cli.options import ProgramCommand, given_options, language_options
from punchcard.cli.terminal import write_output
from punchcard.files import check_apart
from punchcard.machines.kind import Kind
from punchcard.machines.registry import Registry


def make_asm(registry: Registry) -> click.Command:
    """Assemble a program: SUBLEQ to JSON, images to decimal words, FLEQ to plain .fleq text.

    A RISC-V program becomes assembly text, or a .elf, .hex or .bin file if the output has that extension.
    """
    return _writing("asm", make_asm.__doc__, Kind.assembled, registry)


def make_disasm(registry: Registry) -> click.Command:
    """Disassemble a program: print it as assembly text."""
    return _writing("disasm", make_disasm.__doc__, lambda kind, program, suffix: kind.disassemble(program), registry)


def _writing(
    name: str, about: str | None, write: Callable[[Kind, Any, str], str | bytes], registry: Registry
) -> click.Command:
    """A command that reads a program of any of these kinds, and writes it."""

    @click.command(name, cls=ProgramCommand, help=about)
    @click.argument("file", type=click.Path(path_type=Path))
    @click.option("-o", "--output", help="File to write.  [default: standard output]")
    @language_options(registry)
    def command(file: Path, output: str | None, **given: Any) -> None:
        check_apart(None if output == "-" else output, file)
        write_output(write(*_program(file, given, registry), Path(output or "").suffix), output)

    return command


def _program(file: Path, given: dict[str, Any], registry: Registry) -> tuple[Kind, Any]:
    """The kind and the program of a file."""
    options = given_options(given)
    kind, language = registry.language_of(file, options)
    registry.machine_options(kind, options, language)  # refuses options of another language
    return kind, registry.load(file, **options)
