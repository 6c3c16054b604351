"""How a command ends that did not come to its end: every exception is one line on standard error, and an exit status.

| status | why |
|---|---|
| 1 | interrupted by Ctrl-C or SIGTERM, or standard output cannot be written to |
| 2 | bad input: every `PunchcardError`; and what is too large for the memory, or nested too deeply |
| 70 | a bug in punchcard: any other exception |
| 141 | the reader of the output has gone |

A bug is called one, and `--debug` shows the traceback of whatever it was.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
from contextlib import suppress
from typing import NamedTuple, NoReturn, TextIO

import click

from punchcard.errors import PunchcardError, one_line, printable

NO_ROOM = {errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG, errno.EDQUOT}
"""Why a stream cannot be written to."""
FAILED, BAD_INPUT, BUG, BROKEN_PIPE = 1, 2, 70, 128 + signal.SIGPIPE
"""`BUG` is EX_SOFTWARE of sysexits.h; `BROKEN_PIPE` is what `head` leaves behind in a shell."""


class Ending(NamedTuple):
    """Why a command ends, if that is to be printed, and its exit status."""

    message: str | None
    status: int


def ending(error: BaseException) -> Ending:
    """What an exception means, for the user of a terminal."""
    if isinstance(error, click.ClickException):
        return Ending(error.format_message(), BAD_INPUT)
    if isinstance(error, PunchcardError):
        return Ending(str(error), BAD_INPUT)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return Ending("interrupted", FAILED)
    if isinstance(error, BrokenPipeError):
        return Ending(None, BROKEN_PIPE)
    if _is_about_memory(error):
        return Ending(f"not enough memory ({str(error) or type(error).__name__}): ask for less, such as a smaller machine",
                      BAD_INPUT)
    if isinstance(error, RecursionError):
        return Ending("the input is nested too deeply: --debug shows where", BAD_INPUT)
    if isinstance(error, OSError) and error.errno in NO_ROOM and error.filename is None:  # what opens files names them
        return Ending(f"cannot write to standard output: {error.strerror or error}", FAILED)
    return Ending(f"this is a bug in punchcard: {type(error).__name__}: {error} (punchcard --debug ... shows the traceback)",
                  BUG)


def _is_about_memory(error: BaseException) -> bool:
    """Python's own error, the system's, and the one that torch has for it."""
    return (isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
            or (isinstance(error, RuntimeError) and "allocate memory" in str(error)))


def end(error: BaseException, *, debug: bool = False) -> NoReturn:
    """Say in one line why a command ends, show the place in a source where there is one, and end it."""
    message, status = ending(error)
    with suppress(OSError):
        if debug and not isinstance(error, click.ClickException | BrokenPipeError):
            click.echo(printable("".join(traceback.format_exception(error)), keep="\n\t"), nl=False, err=True)
        if message is not None:
            click.echo(f"punchcard: {one_line(message)}", err=True)
        if isinstance(error, PunchcardError) and not debug:  # a line of the source, and a caret below it
            for note in getattr(error, "__notes__", ()):
                click.echo(printable(note, keep="\n"), err=True)
    for stream in (sys.stdout, sys.stderr):
        _settle(stream)
    sys.exit(status)


def _settle(stream: TextIO) -> None:
    """Write what is left; where that cannot be, it goes nowhere: Python would complain about it when it ends."""
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
