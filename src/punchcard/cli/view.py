"""The commands `view` and `debug`: step through a run, on a page of this computer (or in a file), or in the terminal."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from punchcard.cli.fuse import view_fused
from punchcard.cli.options import (
    arguments_option,
    given_flags,
    given_options,
    language_options,
    machine_options,
    program_command,
    set_option,
)
from punchcard.cli.run import load_and_build
from punchcard.cli.stock import is_fused
from punchcard.cli.terminal import handling, out, remark
from punchcard.errors import PunchcardError
from punchcard.files import check_apart, check_writable, read_limited
from punchcard.machines.registry import Registry

if TYPE_CHECKING:
    from punchcard.machines.base import AnyMachine
    from punchcard.viewer.protocol import ChoiceReply
    from punchcard.viewer.session import Session

OF_PROGRAMS = ("port", "no_open", "loops", "record", "model", "input_", "max_steps", "settings", "arguments", "design",
               "dtype")
"""Options that a fused model does not take."""
VIEWED = (partial(machine_options, is_viewed=True), language_options)
_RANGE = re.compile(r"([0-9]{1,15}):([0-9]{1,15})")


def session_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that `open_session` takes beside those of a machine."""
    for option in (
        click.option("--input", "input_", metavar="FILE", help="The program's input.  [default: empty]"),
        click.option("--max-steps", type=click.IntRange(0),
                     help="End the run after this many instructions.  [default: set by the machine]"),
        set_option,
        arguments_option,
    ):
        function = option(function)
    return function


@program_command(*VIEWED, required=True)
@session_options
@click.option("--port", type=click.IntRange(0, 65535), help="Port of the server.  [default: a free port]")
@click.option("--no-open", is_flag=True, help="Print the page's address and do not open a browser.")
@click.option("--html", metavar="FILE", help="Write a page with the run inside to this file, and start no server.")
@click.option("--loops", type=click.IntRange(0), metavar="N",
              help="With --html: number of loops in the file.  [default: 64, or up to the first output; with --model: all]")
@click.option("--record", metavar="A:B", help="With --html: put the loops from A to B into the file.")
@click.option("--model", is_flag=True,
              help="With --html: put the model into the file; the page computes each card itself.")
@click.option("--prompt", metavar="TEXT", help="FILE is the folder of a fused language model: show what its card does while "
              "it continues this text, as a table, or with --html as a page.")
@click.option("--tokens", type=click.IntRange(1), metavar="N", help="With --prompt: tokens at most.  [default: 16]")
def view(
    registry: Registry, file: Path, port: int | None, no_open: bool, html: str | None, loops: int | None,
    record: str | None, model: bool, prompt: str | None, tokens: int | None, input_: str | None, **given: Any,
) -> None:
    """Step through a run on a page: the card, attention, formulas, source, input and output.

    The page is served on this computer alone, until Ctrl-C.
    """
    if is_fused(file):
        if flags := [flag for flag in given_flags(*OF_PROGRAMS) if flag != "FILE"]:
            raise PunchcardError(f"{flags[0]} is for a program: {str(file)!r} is a fused language model, which takes "
                                 "--prompt, --tokens and --html")
        view_fused(file, prompt=prompt, tokens=tokens, html=html)
        return
    if prompt is not None or tokens is not None:
        flag = "--tokens" if prompt is None else "--prompt"
        raise PunchcardError(f"{flag} needs the folder of a fused language model as FILE")
    first, last = _recorded(html, loops, record, model=model)
    if html is not None and (port is not None or no_open):
        raise PunchcardError("--port and --no-open are for the server, and --html writes a file")
    if html is not None:
        check_apart(html, file, input_)
        check_writable(html)
    if model and given.get("dtype") is None:
        given["dtype"] = "float64"  # what a page computes in
    session = open_session(registry, file, input_=input_, **given)
    if html is None:
        session.choices = _choices(session.machine)
        _serve(session, port or 0, lambda chosen: _rebuilt(registry, file, input_, {**given, **chosen}), opens=not no_open)
        return
    from punchcard.viewer.html import recorded_loops, recorded_range, write_html

    if not model:
        first, last = recorded_range(session, first, last)
    size = write_html(html, session, first=first, last=last, model=model)
    out(f"{html}: {size:,} bytes, {recorded_loops(session, first, last, model=model)}")


@program_command(*VIEWED, required=True)
@session_options
def debug(registry: Registry, file: Path, **given: Any) -> None:
    """Step through a run in the terminal: source, values, card, attention and output, with breakpoints.

    The keys are at the foot of the screen.
    """
    from punchcard.viewer.debug import debugger

    debugger.require_textual()
    debugger.debug(open_session(registry, file, **given))


def open_session(registry: Registry, file: Path, *, settings: tuple[str, ...], arguments: tuple[str, ...],
                 max_steps: int | None, input_: str | None, **given: Any) -> Session:
    """The session of a program in a file, on a machine for it."""
    program, machine = load_and_build(file, given_options(given), registry, settings, arguments, is_viewed=True)
    if input_ is not None and not machine.has_ports:
        raise PunchcardError(f"--input is not for {machine.kind.name} programs: they read nothing")

    from punchcard.viewer.session import session_of

    data = b"" if input_ is None else read_limited(input_, "input")
    return session_of(machine, program, file, input=data, max_steps=max_steps)


def _recorded(html: str | None, loops: int | None, record: str | None, *, model: bool) -> tuple[int, int | None]:
    """The loops of a file: the first and the last, if they are given."""
    for name, given in (("--loops", loops is not None), ("--record", record is not None), ("--model", model)):
        if given and html is None:
            raise PunchcardError(f"{name} needs --html FILE")
    if record is None:
        return 0, loops
    if loops is not None or model:
        raise PunchcardError(f"--record {record}: it cannot be used with {'--model' if model else '--loops'}")
    match = _RANGE.fullmatch(record)
    if match is None or int(match[1]) > int(match[2]):
        raise PunchcardError(f"--record {record!r}: write A:B, two loops such as 10:20, the first not after the second")
    return int(match[1]), int(match[2])


def _choices(machine: AnyMachine) -> list[ChoiceReply]:
    """The menus of the page: designs and sizes, with those that the machine has now."""
    now = {"design": machine.design.name, **machine.options}
    return [{"name": name, "label": name.replace("_", " "), "now": now[name],
             "options": values if now[name] in values else [now[name], *values]}
            for name, values in machine.view_choices().items()]


def _rebuilt(registry: Registry, file: Path, input_: str | None, given: dict[str, Any]) -> Session:
    """The same run on another machine. What a page chooses are names and numbers as text."""
    names = {f"given_{name}" if f"given_{name}" in given else name: value for name, value in given.items()}
    session = open_session(registry, file, input_=input_, **names)
    session.choices = _choices(session.machine)
    return session


def _serve(session: Session, port: int, build: Callable[[Mapping[str, Any]], Session], *, opens: bool) -> None:
    from punchcard.viewer.server import ViewServer

    server = ViewServer(session, port, build)
    out(server.address)
    sys.stdout.flush()
    remark("press Ctrl-C to stop")
    if opens:
        _open(server.address)
    with handling(signal.default_int_handler, signal.SIGINT, signal.SIGTERM):  # how people end it: a success
        try:
            server.serve_forever(poll_interval=0.1)
        except KeyboardInterrupt:
            remark("stopped")
        finally:
            server.server_close()


def _open(address: str) -> None:
    """Open a browser beside the server, which has to answer it."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
