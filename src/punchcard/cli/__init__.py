"""The command line: arguments in, exit status out. A command is a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import MutableMapping
from functools import cached_property
from typing import TYPE_CHECKING

import click

from punchcard import __version__
from punchcard.cli.assemble import asm, disasm
from punchcard.cli.bench import bench
from punchcard.cli.boot import boot
from punchcard.cli.calc import calc
from punchcard.cli.export import export
from punchcard.cli.fuse import chat, fuse
from punchcard.cli.ground_truth import ground_truth
from punchcard.cli.info import info
from punchcard.cli.learn import learn, predict
from punchcard.cli.playground import playground
from punchcard.cli.prove import prove
from punchcard.cli.run import run
from punchcard.cli.sweep import sweep
from punchcard.cli.terminal import Group
from punchcard.cli.view import debug, view
from punchcard.errors import PunchcardError
from punchcard.machines.registry import installed

if TYPE_CHECKING:
    from punchcard.machines.base import AnyMachine

__all__ = ["command_line", "main"]


class Commands(Group):
    """The commands for all installed machines and for the given ones, made on first use."""

    def __init__(self, machines: tuple[type[AnyMachine], ...]) -> None:
        super().__init__("punchcard", context_settings={"help_option_names": ["-h", "--help"]},
                         help="Transformers as programmable computers: weights set by formula, run in a loop.",
                         callback=lambda: None)
        self._machines = machines
        click.version_option(__version__)(self)
        click.option("--debug", is_flag=True, envvar="PUNCHCARD_DEBUG", is_eager=True, expose_value=False,
                     callback=lambda context, option, given: setattr(self, "debug", given),
                     help="Show the traceback of an error.")(self)

    @property
    def commands(self) -> MutableMapping[str, click.Command]:
        return self._made

    @commands.setter
    def commands(self, none: MutableMapping[str, click.Command]) -> None:
        """click begins without commands."""

    @cached_property
    def _made(self) -> dict[str, click.Command]:
        registry = installed(*self._machines)
        made = [make(registry) for make in (run, view, debug, info, prove, export, asm, disasm, bench)]
        for command in made:
            _refuse_twice(command)
        others = (playground, boot, calc, learn, predict, fuse, chat, sweep, ground_truth)
        found = {str(command.name): command for command in (*made, *others)}
        return {name: found[name] for names in GROUPS.values() for name in names}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of use."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """In groups, each command with the whole first sentence of its help."""
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(limit=400)) for name in names])


GROUPS = {
    "Run a program, and look at it": ("run", "view", "debug", "playground"),
    "Other things to run": ("calc", "learn", "predict", "boot"),
    "Inside language models": ("fuse", "chat"),
    "The machine": ("info", "prove", "bench", "export"),
    "Many machines": ("sweep", "ground-truth"),
    "Programs as text": ("asm", "disasm"),
}
"""The commands in the order in which people need them."""


def _refuse_twice(command: click.Command) -> None:
    """Two kinds may not use one flag for different options, nor a flag of the command itself."""
    flags = Counter(flag for parameter in command.params if isinstance(parameter, click.Option) for flag in parameter.opts)
    for flag, count in flags.items():
        if count > 1:
            raise PunchcardError(f"the option {flag} of `{command.name}` has two meanings: an option of a machine or of a "
                                 "language needs another name")


def command_line(*machines: type[AnyMachine]) -> click.Group:
    """The command line `punchcard` as a click group, with your own machines beside the installed ones.

        punchcard.command_line(MyMachine)()      # parses sys.argv and runs the command
    """
    return Commands(machines)


main = command_line()
