"""The command line: arguments in, exit status out. A command is a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from punchcard import __version__
from punchcard.cli.assembling import make_asm, make_disasm
from punchcard.cli.bench import make_bench
from punchcard.cli.calc import calc
from punchcard.cli.info import make_info
from punchcard.cli.learn import learn, predict
from punchcard.cli.run import make_run
from punchcard.cli.terminal import Group
from punchcard.machines.registry import Registry, installed

if TYPE_CHECKING:
    from punchcard.machines.base import Machine

__all__ = ["command_line", "main"]


def command_line(*machines: type[Machine[Any, Any]]) -> click.Group:
    """The commands, for all installed machines and these."""
    registry: Registry = installed().including(*machines)

    @click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
    @click.version_option(__version__)
    def punchcard() -> None:
        """Transformers as programmable computers: weights set by formula, run in a loop."""

    for make in (make_run, make_info, make_asm, make_disasm, make_bench):
        punchcard.add_command(make(registry))
    for command in (calc, learn, predict):
        punchcard.add_command(command)
    return punchcard


main = command_line()
