"""Commands in this process: what they print, and how they refuse."""

from __future__ import annotations

from click.testing import CliRunner, Result

from punchcard import cli


def invoke(*arguments: object, **environment: str) -> Result:
    return CliRunner().invoke(cli.main, [*map(str, arguments)], env=environment)


def assert_refused(message: str, *arguments: object) -> None:
    """Status 2, nothing printed but one line without a traceback, which says this."""
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.startswith("punchcard: ")
    assert len(result.stderr.splitlines()) == result.stderr.count("\n") == 1
