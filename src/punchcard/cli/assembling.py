"""The commands `asm` and `disasm`: programs as files in other forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from punchcard.cli.options import Given, language_options
from punchcard.cli.terminal import write_text
from punchcard.machines.registry import Registry

_output = click.option("-o", "--output", help="File to write; by default standard output.")
_file = click.argument("file", type=click.Path(path_type=Path))


def make_asm(registry: Registry) -> click.Command:
    """The command, for these kinds of machines."""

    @click.command()
    @_file
    @_output
    @language_options(registry)
    def asm(file: Path, output: str | None, **given: Any) -> None:
        """Write a program in the form that its machine takes: JSON, decimal words, or text with everything written out."""
        kind, program = _program(file, given, registry)
        write_text(kind.assembled(program), output)

    return asm


def make_disasm(registry: Registry) -> click.Command:
    """The command, for these kinds of machines."""

    @click.command()
    @_file
    @_output
    @language_options(registry)
    def disasm(file: Path, output: str | None, **given: Any) -> None:
        """Write a program of any form as assembly text."""
        kind, program = _program(file, given, registry)
        write_text(kind.disassemble(program), output)

    return disasm


def _program(file: Path, given: dict[str, Any], registry: Registry) -> tuple[Any, Any]:
    """The kind and the program of a file."""
    kind, language = registry.language_of(file)
    options = Given(given)
    options.for_machine(kind, language)  # refuses options of another language
    return kind, registry.load(file, **options.for_language(language))
