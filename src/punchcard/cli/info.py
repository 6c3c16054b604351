"""The command `info`: the size of a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from punchcard.cli.options import Given, json_option, kind_option, program_command
from punchcard.cli.run import open_machine
from punchcard.machines.registry import Registry


def make_info(registry: Registry) -> click.Command:
    """The command, for these kinds of machines."""

    @program_command(registry)
    @kind_option(registry)
    @json_option
    def info(file: Path | None, kind_name: str | None, as_json: bool, **given: Any) -> None:
        """Show the size of a machine: layers, heads, width, hidden units, parameters, temperature.

        With FILE, the machine is built for that program, else with default sizes.
        """
        from punchcard.cli.display import show_info

        show_info(open_machine(registry, file, kind_name, Given(given)), as_json=as_json)

    return info
