"""`punchcard run` of an image: standard output carries the program's bytes and nothing else, as they come.

Exit status: 0 when the image halted; 1 when it did not (an access beyond the memory, --max-steps, Ctrl-C) or differs from
the interpreter with --check; 2 for bad input; 141 when nobody reads the output any more. What is not the program's is
one line on standard error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

import click
from click.core import ParameterSource

from punchcard.errors import PunchcardError

if TYPE_CHECKING:
    from punchcard.machines.von_neumann.isa import Read
    from punchcard.machines.von_neumann.machine import Result, VonNeumannMachine

EXTENSIONS = (".dec", ".sq", ".slq", ".asq", ".bf")
DIALECT_NAMES = ("standard", "adds", "subtracts", "sic1")
BROKEN_PIPE = 128 + signal.SIGPIPE

OWN = {
    "input_": click.Option(["--input", "input_"], metavar="FILE",
                           help="Images: what the program reads.  [default: standard input]"),
    "stats": click.Option(["--stats"], metavar="FILE",
                          help="Images: write halted, steps, steps_per_second and engine as JSON."),
    "check": click.Option(["--check"], is_flag=True, help="Images: compare with the interpreter at every loop."),
    "dialect": click.Option(["--dialect"], type=click.Choice(DIALECT_NAMES),
                            help="Images: where the ports are.  [default: standard]"),
}
SHARED = ("file", "bits", "memory", "dtype", "max_steps", "engine", "no_check")


class RunCommand(click.Command):
    """`run` for any program: an image, by the file's extension, is run here, and everything else as it was."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += OWN.values()

    def invoke(self, ctx: click.Context) -> Any:
        own = {name: ctx.params.pop(name) for name in OWN}
        file = ctx.params.get("file")
        is_image = isinstance(file, Path) and file.suffix.lower() in EXTENSIONS
        given = {name for name in (*ctx.params, *own) if ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE}
        foreign = given - {*SHARED, *OWN} if is_image else given & OWN.keys()
        for parameter in self.params:
            if parameter.name in foreign:
                kind = "images" if is_image else f"{'this program' if file is None else file.suffix + ' programs'}"
                raise PunchcardError(f"{parameter.opts[0]} is not for {kind}")
        if not is_image:
            return super().invoke(ctx)
        shared = {name: ctx.params[name] for name in SHARED if name in given}
        return run_image(**shared, **{name: own[name] for name in OWN if name in given})


def run_image(
    file: Path, *, bits: int | None = None, memory: int | None = None, dtype: str | None = None, dialect: str = "standard",
    input_: str | None = None, stats: str | None = None, engine: str | None = None, max_steps: int | None = None,
    check: bool = False, no_check: bool = False,
) -> None:
    """Run an image from a file to its end, and leave with the exit status."""
    from punchcard.machines.files import load
    from punchcard.machines.von_neumann.isa import Image
    from punchcard.machines.von_neumann.machine import VonNeumannMachine

    if check and no_check:
        raise PunchcardError("--check and --no-check: choose one")
    machine = VonNeumannMachine(word_bits=bits, memory=memory, precision=dtype, dialect=dialect)
    image = load(file, word_bits=machine.sizes.word_bits, memory=machine.sizes.memory)
    if not isinstance(image, Image):
        raise PunchcardError(f"{str(file)!r} is no image")
    with _input(input_) as source, _stats(stats) as report, _interruptible(source) as (read, interrupted):
        begun = time.perf_counter()
        try:
            result, difference = _run(machine, image, read, check, engine=engine, max_steps=max_steps,
                                      interrupted=interrupted)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(BROKEN_PIPE)
        if report is not None:
            json.dump(_figures(result, time.perf_counter() - begun), report)
            report.write("\n")
    why = _why_not(result, difference, machine.sizes.memory)
    if why:
        click.echo(f"punchcard: {file}: {why}", err=True)
    sys.exit(1 if why else 0)


def _run(machine: VonNeumannMachine, image: Any, read: Read, check: bool, **options: Any) -> tuple[Result, str]:
    from punchcard.checks.images import checked_run

    stream = sys.stdout.buffer

    def write(byte: int) -> None:
        stream.write(bytes((byte,)))
        stream.flush()

    if not check:
        return machine.run(image, input=read, output=write, **options), ""
    checked = checked_run(machine, image, read=read, write=write, **options)
    return checked.result, checked.difference


def _figures(result: Result, seconds: float) -> dict[str, Any]:
    """What --stats writes. Compiling, where an engine compiles, is not counted as running."""
    running = max(seconds - result.compile_seconds, 1e-9)
    return {
        "halted": result.halted, "steps": result.steps, "steps_per_second": round(result.steps / running, 1),
        "engine": result.engine, "reason": result.reason, "program_counter": result.program_counter,
        "seconds": round(running, 6), "compile_seconds": round(result.compile_seconds, 6), "notes": list(result.notes),
    }


def _why_not(result: Result, difference: str, memory: int) -> str:
    """Why the run is no success, or ""."""
    at = f"after {result.steps} instructions, at {result.program_counter}"
    if difference:
        return f"the transformer differs from the interpreter: {difference}"
    if result.fault is not None:
        return f"stopped {at}: {result.fault.describe(memory)}"
    return {"halted": "", "steps": f"stopped {at}: --max-steps", "interrupted": f"interrupted {at}"}[result.reason]


@contextmanager
def _input(name: str | None) -> Iterator[BinaryIO | None]:
    """The program's input: a file, or standard input, which may be closed."""
    if name is None or name == "-":
        yield sys.stdin.buffer if sys.stdin is not None else None
        return
    try:
        file = open(name, "rb")  # noqa: SIM115
    except OSError as error:
        raise PunchcardError(f"cannot read {name!r}: {error.strerror}") from None
    with file:
        yield file


@contextmanager
def _stats(name: str | None) -> Iterator[TextIO | None]:
    """The file of --stats, opened before the run, so that a run is not made for nothing."""
    if name is None:
        yield None
        return
    try:
        file = open(name, "w", encoding="utf-8")  # noqa: SIM115
    except OSError as error:
        raise PunchcardError(f"cannot write {name!r}: {error.strerror}") from None
    with file:
        yield file


@contextmanager
def _interruptible(source: BinaryIO | None) -> Iterator[tuple[Read, Callable[[], bool]]]:
    """A function that reads a byte, and one that says whether to stop.

    Ctrl-C asks the run to stop after the current loop; while the program waits for input, it stops at once, and so does a
    second Ctrl-C.
    """
    asked = waiting = ended = False

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
        return byte[0] if byte else -1

    def ask(signum: int, frame: object) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, previous)
        if waiting:
            raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, ask)
    try:
        yield read, lambda: asked
    finally:
        signal.signal(signal.SIGINT, previous)
