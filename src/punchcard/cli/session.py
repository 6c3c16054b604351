"""What `view` and `debug` share: their options, and the session that they display."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from punchcard.cli.options import Command, given_options, language_options, machine_options
from punchcard.cli.run import with_settings
from punchcard.errors import PunchcardError
from punchcard.files import read_whole
from punchcard.machines.registry import Registry

if TYPE_CHECKING:
    from punchcard.view.session import Session


def session_options(registry: Registry) -> Callable[[Command], Command]:
    """FILE, the options of its machine and its language, and how it is run."""
    options = (
        click.argument("file", type=click.Path(path_type=Path)),
        machine_options(registry),
        language_options(registry),
        click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
                     help="Initial value of a cell, variable or label; may be repeated."),
        click.option("--max-steps", type=click.IntRange(0),
                     help="End the run after this many instructions.  [default: set by the machine]"),
        click.option("--input", "input_", metavar="FILE", help="The program's input.  [default: empty]"),
    )

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def open_session(
    registry: Registry, file: Path, settings: tuple[str, ...], max_steps: int | None, input_: str | None,
    given: dict[str, Any],
) -> Session:
    """The session of a program in a file, on a machine for it."""
    program, kind, language, options = registry.load_with(file, given_options(given))
    program = with_settings(program, settings, kind, language)
    machine = kind.machine_class().for_program(program, **options)
    if input_ is not None and not machine.has_ports:
        raise PunchcardError(f"--input is not for {kind.name} programs: they read nothing")

    from punchcard.view.session import session_of

    data = b"" if input_ is None else read_whole(input_, "input")
    return session_of(machine, program, file, input=data, max_steps=max_steps)
