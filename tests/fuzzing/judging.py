"""What counts as a fault: any exception but a PunchcardError, and an error that is not one short line."""

from __future__ import annotations

import traceback
from pathlib import Path

import click
from click.testing import CliRunner

from punchcard.errors import PunchcardError

STATUSES = (0, 1, 2)
"""How a command may end: well, with a failure of the program that it ran, or with bad input."""
LONGEST_MESSAGE = 2000


class Fault(Exception):
    """Something that went wrong without an exception."""


REFUSED = (PunchcardError, click.ClickException, click.Abort)
"""What says that an input is bad, or that a run was given up."""


def fault_of(error: BaseException) -> str | None:
    """What is wrong with an exception: its type and place. None: it is as it should be."""
    if isinstance(error, REFUSED):
        return _unclear(str(error)) if isinstance(error, PunchcardError) else None
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "punchcard" in Path(frame.filename).parts] or frames
    where = Path(own[-1].filename)
    parts = where.parts[where.parts.index("punchcard") + 1:] if "punchcard" in where.parts else where.parts[-1:]
    return f"{type(error).__name__} at {'/'.join(parts)}:{own[-1].lineno} in {own[-1].name}: {_short(str(error))}"


def command(main: click.Group, arguments: list[str], *, stdin: bytes = b"", env: dict[str, str] | None = None) -> None:
    """A command line; an exception that became a line of text is raised here as it was."""
    result = CliRunner(env=env).invoke(main, arguments, input=stdin)
    left: BaseException | None = result.exception
    if isinstance(left, SystemExit):
        left = left.__context__
    if left is not None:
        left.add_note(f"the command line: {arguments!r}")
    if left is not None and not isinstance(left, REFUSED):
        raise left
    if result.exit_code not in STATUSES:
        raise Fault(f"status {result.exit_code}: {_short(result.stderr)}")
    if result.exit_code == 2 and (wrong := _unclear(result.stderr.removesuffix("\n"))):
        raise Fault(wrong)
    if left is not None:
        raise left


def _unclear(message: str) -> str | None:
    """What is wrong with the text of an error."""
    if not message.strip():
        return "an error without a message"
    if "\n" in message:
        return f"an error of several lines: {_short(message)}"
    if len(message) > LONGEST_MESSAGE:
        return f"an error of more than {LONGEST_MESSAGE} characters: {_short(message)}"
    return None


def _short(text: str) -> str:
    plain = text.encode("ascii", "backslashreplace").decode().replace("\n", "\\n")
    return plain if len(plain) <= 200 else f"{plain[:200]}..."
