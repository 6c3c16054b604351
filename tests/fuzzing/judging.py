"""What counts as a fault: any exception but a PunchcardError, an error that is not one short line, control characters."""

from __future__ import annotations

import io
import os
import sys
import traceback
from pathlib import Path
from unittest.mock import patch

import click

from punchcard.errors import LONGEST, PunchcardError

STATUSES = (0, 1, 2)
"""How a command may end: well, with a failure of the program that it ran, or with bad input."""
LONGEST_MESSAGE = LONGEST + len("punchcard: ")
OUT, ERR = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace") for _ in range(2))
"""Standard output and standard error of all command lines."""


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


def command(main: click.Group, arguments: list[str], *, stdin: bytes = b"", env: dict[str, str] | None = None,
            writes: bool = True) -> None:
    """A command line; an exception that became a line of text is raised here as it was. `writes`: a program's bytes."""
    status, left, stdout, stderr = _invoke(main, arguments, stdin, env or {})
    pointed = "".join(f"\n{note}" for note in getattr(left, "__notes__", ()))  # a line of the source and a caret
    if left is not None:
        left.add_note(f"the command line: {arguments!r}")
    if left is not None and not isinstance(left, REFUSED):
        raise left
    if raw := controls(stderr if writes else stdout + stderr):
        raise Fault(f"a control character is printed: {raw[0]!r}, by {arguments!r}")
    if status not in STATUSES:
        raise Fault(f"status {status}: {_short(stderr)}")
    if status == 2 and (wrong := _unclear(stderr.removesuffix("\n").removesuffix(pointed))):
        raise Fault(wrong)
    if left is not None:
        raise left


def _invoke(
    main: click.Group, arguments: list[str], stdin: bytes, env: dict[str, str]
) -> tuple[object, BaseException | None, str, str]:
    """The exit status, what led to it, and what was written to standard output and to standard error.

    As click's CliRunner, but always with the same two streams: click keeps every stream that it has written to.
    """
    for stream in (OUT, ERR):
        stream.seek(0)
        stream.truncate()
    with patch.dict(os.environ, env), patch.multiple(sys, stdin=io.TextIOWrapper(io.BytesIO(stdin)), stdout=OUT, stderr=ERR):
        try:
            main.main(arguments, prog_name="punchcard")
            status, left = 0, None
        except SystemExit as end:
            status, left = end.code, end.__context__
        except BaseException as error:
            status, left = None, error
    for stream in (OUT, ERR):
        stream.flush()
    stdout, stderr = (stream.buffer.getvalue().decode(errors="replace") for stream in (OUT, ERR))
    return status, left, stdout, stderr


def controls(text: str) -> list[str]:
    """The characters of a text that no command may print of itself: those that are not printable, but newline and tab."""
    return [character for character in text if not character.isprintable() and character not in "\n\t"]


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
