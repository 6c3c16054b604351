"""What a command line shares with its terminal: one-line errors, exit status, Ctrl-C, standard streams."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NoReturn

import click

from punchcard.errors import PunchcardError
from punchcard.files import write_whole
from punchcard.machines.streams import END_OF_INPUT

BROKEN_PIPE = 128 + signal.SIGPIPE
"""The status of a program whose reader has gone, as `head` does."""


class Group(click.Group):
    """A group that reports every error in one line: status 2 for bad input, 1 for an interrupted or failed output."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["standalone_mode"] = False
        try:
            status = super().main(*args, **kwargs)
        except click.exceptions.NoArgsIsHelpError as error:  # nothing was asked for: the help is the answer
            click.echo(error.format_message())
            sys.exit(0)
        except click.ClickException as error:
            fail(error.format_message(), 2)
        except PunchcardError as error:
            fail(str(error), 2)
        except (click.Abort, KeyboardInterrupt):
            fail("interrupted", 1)
        except OSError as error:
            fail(f"cannot write: {error.strerror}", 1)
        sys.exit(status if isinstance(status, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Here, since click would end with status 1 by itself when nobody reads the output."""
        try:
            found = super().invoke(ctx)
            sys.stdout.flush()
            return found
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(BROKEN_PIPE)


def fail(message: str, status: int) -> NoReturn:
    """Say why in one line, and end."""
    click.echo(f"punchcard: {message}".replace("\n", " "), err=True)
    sys.exit(status)


def out(text: str) -> None:
    """A line of the result."""
    print(text)  # noqa: T201


def remark(text: str) -> None:
    """A line that is not the result's."""
    print(f"punchcard: {text}", file=sys.stderr)  # noqa: T201


def print_json(data: Any) -> None:
    out(json.dumps(data))


def write_text(text: str, output: str | None) -> None:
    """Write to a file, or to standard output."""
    if output is None or output == "-":
        click.echo(text, nl=False)
    else:
        write_whole(output, text)


@contextmanager
def interruptible(source: BinaryIO | None = None) -> Iterator[tuple[Callable[[], bool], Callable[[], int]]]:
    """A function that says whether to stop, and one that reads a byte of a source.

    Ctrl-C, or a request to end, asks a run to stop after the current loop; a second one stops at once, and so does
    the first while the program waits for input.
    """
    asked = waiting = ended = False
    signals = (signal.SIGINT, signal.SIGTERM)

    def ask(signum: int, frame: object) -> None:
        nonlocal asked
        asked = True
        restore()
        if waiting:
            raise KeyboardInterrupt

    def read() -> int:
        nonlocal waiting, ended
        waiting = True
        try:
            if asked:
                raise KeyboardInterrupt
            byte = b"" if ended or source is None else source.read(1)
        finally:
            waiting = False
        ended = not byte
        return byte[0] if byte else END_OF_INPUT

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    previous = {number: signal.signal(number, ask) for number in signals}
    try:
        yield lambda: asked, read
    finally:
        restore()


@contextmanager
def input_file(name: str | None, done: int = 0) -> Iterator[BinaryIO | None]:
    """A program's input: a file, of which the first bytes are done, or standard input, which may be closed."""
    if name is None or name == "-":
        yield sys.stdin.buffer if sys.stdin is not None else None
        return
    try:
        file = open(name, "rb")  # noqa: SIM115
    except OSError as error:
        raise PunchcardError(f"cannot read {name!r}: {error.strerror}") from None
    with file:
        while done > 0 and (skipped := file.read(min(done, 1 << 16))):
            done -= len(skipped)
        yield file
