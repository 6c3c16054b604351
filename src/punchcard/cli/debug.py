"""The command `debug`: step through a run in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from punchcard.cli.options import ProgramCommand, memory_option
from punchcard.cli.session import open_session, session_options
from punchcard.machines.registry import Registry


def make_debug(registry: Registry) -> click.Command:
    """The command, for these kinds of machines."""

    @click.command(cls=ProgramCommand)
    @session_options(registry)
    @memory_option
    def debug(
        file: Path, settings: tuple[str, ...], max_steps: int | None, input_: str | None, **given: Any
    ) -> None:
        """Step through a run in the terminal: source, values, card, attention and output, with breakpoints.

        The keys are at the foot of the screen.
        """
        from punchcard.view.debug import launch

        launch.require_textual()
        launch.debug(open_session(registry, file, settings, max_steps, input_, given))

    return debug
