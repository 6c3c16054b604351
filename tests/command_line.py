"""Commands in this process: what they print, and how they refuse."""

from __future__ import annotations

import click
from click.testing import CliRunner, Result

from punchcard import cli


def invoke(*arguments: object, given: str | bytes = b"", of: click.Command = cli.main, **environment: str) -> Result:
    """A command, with what it reads on standard input; `of` is another command line."""
    return CliRunner().invoke(of, [*map(str, arguments)], input=given, env=environment, prog_name="punchcard")


def assert_refused(message: str, *arguments: object) -> None:
    """Status 2, nothing printed but one line without a traceback, which says this."""
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.startswith("punchcard: ")
    assert len(result.stderr.splitlines()) == result.stderr.count("\n") == 1
