"""The commands `asm` and `disasm`: programs as files in other forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from punchcard.cli.options import given_options, language_options, program_command
from punchcard.cli.terminal import write_output
from punchcard.files import check_apart
from punchcard.machines.kind import Kind
from punchcard.machines.registry import Registry

output_option = click.option("-o", "--output", help="File to write.  [default: standard output]")


@program_command(language_options, required=True)
@output_option
def asm(registry: Registry, file: Path, output: str | None, **given: Any) -> None:
    """Assemble a program: SUBLEQ to JSON, images to decimal words, FLEQ to plain .fleq text.

    A RISC-V program becomes assembly text, or a .elf, .hex or .bin file if the output has that extension.
    """
    kind, program = _loaded(registry, file, output, given)
    write_output(kind.assembled(program, Path(output or "").suffix), output)


@program_command(language_options, required=True)
@output_option
def disasm(registry: Registry, file: Path, output: str | None, **given: Any) -> None:
    """Disassemble a program: print it as assembly text."""
    kind, program = _loaded(registry, file, output, given)
    write_output(kind.disassemble(program), output)


def _loaded(registry: Registry, file: Path, output: str | None, given: dict[str, Any]) -> tuple[Kind, Any]:
    """The kind and the program of a file, which is not the output."""
    check_apart(None if output == "-" else output, file)
    options = given_options(given)
    kind, language = registry.language_of(file, options)
    registry.machine_options(kind, options, language)  # refuses options of another language
    return kind, registry.load(file, **options)
