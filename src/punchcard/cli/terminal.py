"""What a command line shares with its terminal: one-line errors, exit status, Ctrl-C, and files written whole."""

from __future__ import annotations

import errno
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from punchcard.errors import PunchcardError


class Group(click.Group):
    """A group that reports every error in one line: status 2 for bad input, 1 for an interrupted or failed output."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["standalone_mode"] = False
        try:
            status = super().main(*args, **kwargs)
            sys.stdout.flush()
        except click.ClickException as error:
            fail(error.format_message(), 2)
        except PunchcardError as error:
            fail(str(error), 2)
        except (click.Abort, KeyboardInterrupt):
            fail("interrupted", 1)
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader has gone, as `head` does: nobody is left to tell
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                sys.exit(1)
            fail(f"cannot write: {error.strerror}", 1)
        sys.exit(status if isinstance(status, int) else 0)


def fail(message: str, status: int) -> None:
    """Say why in one line, and end."""
    click.echo(f"punchcard: {message}".replace("\n", " "), err=True)
    sys.exit(status)


def write_text(text: str, output: str | None) -> None:
    """Write to a file, whole or not at all; what is no regular file (a pipe, a device) is written to as it is."""
    if output is None or output == "-":
        click.echo(text, nl=False)
        return
    target = Path(os.path.realpath(output))
    try:
        regular = not target.exists() or stat.S_ISREG(target.stat().st_mode)
        if not regular or not output:
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            target.write_text(text, encoding="utf-8")
            return
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            part.write_text(text, encoding="utf-8")
            if target.exists():
                part.chmod(stat.S_IMODE(target.stat().st_mode))
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise PunchcardError(f"cannot write {output!r}: {error.strerror}") from None


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Ctrl-C, or a request to end, asks the run to stop after the current loop; a second one stops at once."""
    asked = False
    signals = (signal.SIGINT, signal.SIGTERM)

    def ask(signum: int, frame: object) -> None:
        nonlocal asked
        asked = True
        restore()

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    previous = {number: signal.signal(number, ask) for number in signals}
    try:
        yield lambda: asked
    finally:
        restore()
