"""Commands: what they print, and how they refuse, in this process; or in one of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import click
from click.testing import CliRunner, Result

from punchcard import cli


def invoke(*arguments: object, status: int | None = None, given: str | bytes = b"", of: click.Command = cli.main,
           **environment: str) -> Result:
    """A command, with what it reads on standard input; `status` must be its exit status, `of` is another command line."""
    result = CliRunner().invoke(of, [*map(str, arguments)], input=given, env=environment, prog_name="punchcard")
    assert status in (None, result.exit_code), result.output
    return result


def started(*arguments: object, **how: Any) -> subprocess.Popen[Any]:
    """A command in a process of its own, on one thread, whose output and errors are pipes."""
    return subprocess.Popen([sys.executable, "-m", "punchcard", *map(str, arguments)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"}, **how)


def assert_refused(message: str, *arguments: object, **how: Any) -> None:
    """Status 2, nothing printed but one line without a traceback, which says this."""
    result = invoke(*arguments, status=2, **how)
    assert result.stdout == ""
    assert message in result.stderr
    assert result.stderr.startswith("punchcard: ")
    assert len(result.stderr.splitlines()) == result.stderr.count("\n") == 1
