"""The command `info`: the size of a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from punchcard.cli.options import (
    ProgramCommand,
    file_argument,
    given_options,
    json_option,
    language_options,
    machine_options,
    memory_option,
)
from punchcard.cli.run import open_machine
from punchcard.machines.registry import Registry


def make_info(registry: Registry) -> click.Command:
    """The command, for these kinds of machines."""

    @click.command(cls=ProgramCommand)
    @file_argument
    @click.option("--machine", "kind_name", type=click.Choice([kind.name for kind in registry]),
                  help=f"The kind of machine.  [default: that of FILE, or {next(iter(registry)).name}]")
    @machine_options(registry)
    @language_options(registry)
    @memory_option
    @json_option
    def info(file: Path | None, kind_name: str | None, as_json: bool, **given: Any) -> None:
        """Show the size of a machine: layers, heads, width, hidden units, parameters, temperature.

        With FILE, the machine is built for that program, else with default sizes.
        """
        from punchcard.cli.display import show_info

        show_info(open_machine(registry, file, kind_name, given_options(given)), as_json=as_json)

    return info
