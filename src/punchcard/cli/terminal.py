"""What a command line shares with its terminal: Ctrl-C and SIGTERM, standard streams."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import click

from punchcard.cli.exit_status import end
from punchcard.errors import PunchcardError, printable
from punchcard.files import check_apart, check_regular, check_writable, write_atomic
from punchcard.formatting import json_text
from punchcard.machines.streams import END_OF_INPUT

DEBUG = "--debug"
PATIENCE, LOOK_EVERY = 0.3, 0.1
"""Seconds that a request to stop may go unanswered, and between two looks whether it was answered."""


class Group(click.Group):
    """A group whose commands end with one line and an exit status, whatever happens: see `endings`."""

    debug = False

    def main(self, args: Sequence[str] | None = None, *more: Any, **options: Any) -> Any:
        options["standalone_mode"] = False
        open_streams()
        self.debug = False
        given = list(sys.argv[1:] if args is None else args)  # an empty list is a command line without words
        if DEBUG in given[1:]:  # people write it at the end
            given = [DEBUG, *(word for word in given if word != DEBUG)]
        with sigterm_as_ctrl_c():
            try:
                status = self._main(given, *more, **options)
            except (Exception, KeyboardInterrupt) as error:
                end(error, debug=self.debug)
        sys.exit(status if isinstance(status, int) else 0)

    def _main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **kwargs)
        except click.exceptions.NoArgsIsHelpError as error:  # nothing was asked for: the help is the answer
            click.echo(error.format_message())

    def invoke(self, ctx: click.Context) -> Any:
        """Here, since click ends the process by itself on some exceptions."""
        try:
            found = super().invoke(ctx)
            sys.stdout.flush()
            return found
        except (OSError, EOFError, KeyboardInterrupt) as error:
            end(error, debug=self.debug)


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """Make SIGTERM a KeyboardInterrupt, unless it is handled already."""
    unhandled = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    with handling(signal.default_int_handler, signal.SIGTERM) if unhandled else nullcontext():
        yield


@contextmanager
def handling(handler: Callable[[int, Any], Any], *numbers: signal.Signals) -> Iterator[Callable[[], None]]:
    """Have signals handled so; yields a function that brings back the handlers from before, as the end does."""
    main = threading.current_thread() is threading.main_thread()  # the only one that may
    previous = {number: signal.signal(number, handler) for number in numbers if main}

    def restore() -> None:
        for number, before in previous.items():
            signal.signal(number, signal.SIG_DFL if before is None else before)  # None: it was not set by Python

    try:
        yield restore
    finally:
        restore()


def open_streams() -> None:
    """Fill standard streams that are closed, lowest first, so that no file gets their number and what is printed to them.

    Nothing is read, and what is remarked goes nowhere; a result that cannot be written is an error. Where a stream cannot
    write a character, it writes its code.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def out(text: str) -> None:
    """A line of the result, or several."""
    print(printable(text, keep="\n\t"))  # noqa: T201


def log(text: str) -> None:
    """A line that is not the result's."""
    print(printable(text), file=sys.stderr)  # noqa: T201


def remark(text: str) -> None:
    """A line of the command about what it does."""
    log(f"punchcard: {text}")


@contextmanager
def warnings_as_remarks() -> Iterator[None]:
    """Print a warning as a remark, without the line of code that it comes from."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *place: remark(printable(str(message)))
        yield


def print_json(data: object) -> None:
    out(json_text(data))


def write_output(content: str | bytes, output: str | None) -> None:
    """Write to a file, or to standard output; there a text has no control characters, and bytes are as they are."""
    if output is None or output == "-":
        click.echo(printable(content, keep="\n\t") if isinstance(content, str) else content, nl=False)
    else:
        write_atomic(output, content)


def check_run_files(checkpoint: str | None, resume: str | None, stats: str | None, *others: str | Path | None) -> None:
    """Refuse files that a run cannot write, before its machine is built. It reads `resume` and `others`."""
    if checkpoint is not None:
        check_apart(checkpoint, *others)
        check_regular(checkpoint, "checkpoint")
        check_writable(checkpoint)
    if stats is not None:
        check_apart(stats, *others, checkpoint, resume)
        if stats == checkpoint:
            raise PunchcardError(f"--stats and --checkpoint are both {stats!r}: choose another file for one of them")
        check_writable(stats)


@contextmanager
def interruptible(
    source: BinaryIO | None = None, *, keeps: bool
) -> Iterator[tuple[Callable[[], bool], Callable[[], int]]]:
    """A function that says whether to stop, and one that reads a byte of a source.

    Ctrl-C, or a request to end, asks a run to stop after the current loop; a second one stops at once, and so does
    the first while the program waits for input. While a run is prepared, or while NumPy computes, nobody asks whether to
    stop: a request that is not answered in time becomes a second one. A run that writes a file at its end (`keeps`), and has
    begun to ask, is waited for.
    """
    asked = waiting = ended = False

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
        except OSError as error:
            raise _unreadable(getattr(source, "name", "input"), error) from None
        finally:
            waiting = False
        ended = not byte
        return byte[0] if byte else END_OF_INPUT

    with handling(ask, signal.SIGINT, signal.SIGTERM) as restore, _answered(lambda: asked, keeps) as interrupted:
        yield interrupted, read


@contextmanager
def _answered(asked: Callable[[], bool], keeps: bool) -> Iterator[Callable[[], bool]]:
    """The question `asked` for a run, watched: a request that the run does not ask for in time ends the block."""
    ended, main = threading.Event(), threading.main_thread().ident
    listens = stopping = False

    def interrupted() -> bool:
        nonlocal listens, stopping
        listens = True
        stopping = stopping or asked()
        return stopping

    def watch() -> None:
        while not ended.wait(LOOK_EVERY):
            if asked() and not ended.wait(PATIENCE):
                if not stopping and not (keeps and listens) and main is not None:
                    signal.pthread_kill(main, signal.SIGINT)
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield interrupted
    finally:
        ended.set()
        watcher.join()


@contextmanager
def input_file(name: str | None, done: int = 0) -> Iterator[BinaryIO | None]:
    """A program's input: a file, of which the first bytes are done, or standard input."""
    if name is None or name == "-":
        yield sys.stdin.buffer
        return
    with ExitStack() as opened:
        try:
            file = opened.enter_context(open(name, "rb"))
            while done > 0 and (skipped := file.read(min(done, 1 << 16))):
                done -= len(skipped)
        except (OSError, ValueError) as error:
            raise _unreadable(name, error) from None
        yield file


def _unreadable(name: str, error: Exception) -> PunchcardError:
    return PunchcardError(f"cannot read {name!r}: {getattr(error, 'strerror', None) or error}")
