"""The command `debug`: step through a run in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from punchcard.cli.options import Given, language_options, machine_options, memory_option
from punchcard.cli.run import load_program, with_settings
from punchcard.files import read_whole
from punchcard.machines.registry import Registry


def make_debug(registry: Registry) -> click.Command:
    """The command, for these kinds of machines."""

    @click.command()
    @click.argument("file", type=click.Path(path_type=Path))
    @machine_options(registry)
    @language_options(registry)
    @click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
                  help="Initial value of a cell, variable or label; may be repeated.")
    @click.option("--max-steps", type=click.IntRange(0),
                  help="End the run after this many instructions.  [default: as the machine has it]")
    @click.option("--input", "input_", metavar="FILE", help="What the program reads.  [default: nothing]")
    @memory_option
    def debug(
        file: Path, settings: tuple[str, ...], max_steps: int | None, input_: str | None, **given: Any
    ) -> None:
        """Step through a run in the terminal: source, values, card, attention and output, with breakpoints.

        The keys are at the foot of the screen.
        """
        from punchcard.view.debug import opening
        from punchcard.view.session import session_of

        opening.require_textual()
        program, kind, options = load_program(file, Given(given), registry)
        program = with_settings(program, settings, kind, registry.language_of(file)[1])
        machine = kind.machine_class().for_program(program, **options)
        data = b"" if input_ is None else read_whole(input_, "input")
        opening.debug(session_of(machine, program, file, input=data, max_steps=max_steps))

    return debug
