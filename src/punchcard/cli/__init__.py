"""The command line: arguments in, exit status out."""

from punchcard.cli.commands import main

__all__ = ["main"]
