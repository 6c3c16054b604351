"""The command `info`: the size of a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from punchcard.cli.options import given_options, json_option, kind_option, language_options, machine_options, program_command
from punchcard.cli.run import open_machine
from punchcard.machines.registry import Registry


@program_command(kind_option, machine_options, language_options)
@json_option
def info(registry: Registry, file: Path | None, kind_name: str | None, as_json: bool, **given: Any) -> None:
    """Show the size of a machine: layers, heads, width, hidden units, parameters, temperature.

    With FILE, the machine is built for that program, else with default sizes.
    """
    from punchcard.cli.display import show_info

    show_info(open_machine(registry, file, kind_name, given_options(given)), as_json=as_json)
