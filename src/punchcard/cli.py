"""The command line: arguments in, exit status out. What is shown is in `display`, what is done in `api`.

Results go to standard output; trace, progress and remarks to standard error. Exit status: 0 when the program halted and
the transformer agrees with the interpreter, 1 when not, 2 for bad input.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from punchcard import __version__
from punchcard.errors import ProgramError, PunchcardError

DESIGNS = ("paper", "two-layer", "one-layer")
DTYPES = ("float64", "float32", "float16", "bfloat16")
Command = TypeVar("Command", bound=Callable[..., Any])


class Group(click.Group):
    """A group whose commands turn a PunchcardError into one line and status 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PunchcardError as error:
            click.echo(f"punchcard: {error}", err=True)
            ctx.exit(2)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Transformers as programmable computers: weights set by formula, run in a loop."""


def size_options(command: Command) -> Command:
    """The options that give a machine its size."""
    for option in (
        click.option("--dtype", type=click.Choice(DTYPES), default="float64", show_default=True, help="Number format."),
        click.option("--instructions", type=click.IntRange(1), help="Instructions of the machine."),
        click.option("--memory", type=click.IntRange(1), help="Memory cells of the machine."),
        click.option("--bits", type=int, default=16, show_default=True, help="Bits of a word."),
        click.option("--design", type=click.Choice(DESIGNS), default="paper", show_default=True,
                     help="Which transformer."),
    ):
        command = option(command)
    return command


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@size_options
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Initial value of a cell; may be repeated.")
@click.option("--max-steps", type=click.IntRange(0), default=100_000, show_default=True,
              help="Stop after this many instructions.")
@click.option("--trace", is_flag=True, help="Show every loop.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--no-check", is_flag=True, help="Do not compare with the interpreter.")
def run(
    file: Path, design: str, bits: int, memory: int | None, instructions: int | None, dtype: str,
    settings: tuple[str, ...], max_steps: int, trace: bool, as_json: bool, no_check: bool,
) -> None:
    """Run a program on a looped transformer and compare it with a plain interpreter.

    FILE is SUBLEQ assembly (.subleq), a Minsky machine (.minsky), or what `punchcard asm` wrote (.json).
    """
    from punchcard import api, display

    program = api.load(file)
    if settings:
        program = program.with_values(dict(_setting(text) for text in settings))
    machine = api.build(program, memory=memory, instructions=instructions, word_bits=bits, design=design,
                        precision=dtype)
    with display.Progress(machine, program, trace=trace) as progress, _interruptible() as interrupted:
        report = api.run(program, machine, max_steps=max_steps, check=not no_check, watch=progress.watch,
                         interrupted=interrupted)
    display.show_report(program, machine, report, as_json=as_json)
    sys.exit(0 if report.ok else 1)


@main.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--machine", "machine_name", type=click.Choice(["subleq"]), default="subleq", show_default=True,
              help="Which computer.")
@size_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def info(
    file: Path | None, machine_name: str, design: str, bits: int, memory: int | None, instructions: int | None,
    dtype: str, as_json: bool,
) -> None:
    """Show the size of a machine: layers, heads, width, hidden units, parameters, temperature.

    With FILE, the machine has room for that program; else for 29 cells and 32 instructions, 64 columns.
    """
    from punchcard import api, display
    from punchcard.machines.subleq import SubleqMachine

    sizes = {name: size for name, size in (("memory", memory), ("instructions", instructions)) if size is not None}
    options: dict[str, Any] = {**sizes, "word_bits": bits, "design": design, "precision": dtype}
    machine = api.build(api.load(file), **options) if file else SubleqMachine(**options)
    display.show_info(machine_name, machine, as_json=as_json)


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write; by default standard output.")
def asm(file: Path, output: Path | None) -> None:
    """Assemble a program (.subleq, .minsky) to JSON."""
    from punchcard.lang.files import load

    _write(load(file).to_json() + "\n", output)


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write; by default standard output.")
def disasm(file: Path, output: Path | None) -> None:
    """Write a program (.json, .minsky, .subleq) as SUBLEQ assembly."""
    from punchcard.lang.files import load
    from punchcard.lang.subleq import disassemble

    _write(disassemble(load(file)), output)


def _setting(text: str) -> tuple[str, int]:
    from punchcard.lang.source import lines

    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise ProgramError(f"--set {text!r}: write NAME=VALUE")
    line = next(lines(value, f"--set {text!r}"), None)
    if line is None:
        raise ProgramError(f"--set {text!r}: write NAME=VALUE")
    number, _ = line.take_integer("a value")
    line.finish("the value")
    return name.strip(), number


def _write(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    part = output.with_name(f".{output.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(output)
    except OSError as error:
        raise PunchcardError(f"cannot write {str(output)!r}: {error.strerror}") from None


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Ctrl-C asks the run to stop after the current loop; a second one stops at once."""
    asked = False

    def ask(signum: int, frame: object) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, previous)

    previous = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, previous)
