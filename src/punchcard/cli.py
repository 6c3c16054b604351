"""The command line: arguments in, exit status out. What is shown is in `display`, what is done in `api`.

Results go to standard output; trace, progress and remarks to standard error. Exit status: 0 when the program halted and
the transformer agrees with the interpreter (or was not compared), 1 when not, 2 for bad input.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from punchcard import __version__
from punchcard.cli_calc import calc
from punchcard.cli_learn import learn, predict
from punchcard.errors import ProgramError, PunchcardError, SourceError
from punchcard.interruption import interruptible as _interruptible

if TYPE_CHECKING:
    from punchcard.isa.subleq import Program

SUBLEQ_DESIGNS = ("paper", "two-layer", "one-layer")
FLEQ_DESIGNS = ("paper", "compact")
DTYPES = ("float64", "float32", "float16", "bfloat16")
Command = TypeVar("Command", bound=Callable[..., Any])


class Group(click.Group):
    """A group that reports every error in one line: status 2 for bad input, 1 for an interrupted or failed output."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["standalone_mode"] = False
        try:
            status = super().main(*args, **kwargs)
            sys.stdout.flush()
        except click.ClickException as error:
            _fail(error.format_message(), 2)
        except PunchcardError as error:
            _fail(str(error), 2)
        except (click.Abort, KeyboardInterrupt):
            _fail("interrupted", 1)
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader has gone, as `head` does: nobody is left to tell
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                sys.exit(1)
            _fail(f"cannot write: {error.strerror}", 1)
        sys.exit(status if isinstance(status, int) else 0)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Transformers as programmable computers: weights set by formula, run in a loop."""


main.add_command(calc)
main.add_command(learn)
main.add_command(predict)


def size_options(command: Command) -> Command:
    """The options that give a machine its size."""
    designs = tuple(dict.fromkeys(SUBLEQ_DESIGNS + FLEQ_DESIGNS))
    for option in (
        click.option("--anchors", is_flag=True, default=None, help="FLEQ: mul as the paper has it, with anchors."),
        click.option("--heads", type=click.IntRange(1, 3), help="FLEQ: heads of a soft product, 1 to 3.  [default: 1]"),
        click.option("--range", "range_", type=float, help="FLEQ: every value stays within ±R.  [default: the program's]"),
        click.option("--size", type=click.IntRange(1), help="FLEQ: d, rows and columns of the largest operand."),
        click.option("--dtype", type=click.Choice(DTYPES), default="float64", show_default=True, help="Number format."),
        click.option("--instructions", type=click.IntRange(1), help="Instructions of the machine."),
        click.option("--memory", type=click.IntRange(1), help="Memory cells (FLEQ: columns) of the machine."),
        click.option("--bits", type=int, help="SUBLEQ: bits of a word.  [default: 16]"),
        click.option("--design", type=click.Choice(designs), help="Which transformer.  [default: paper; FLEQ: compact]"),
    ):
        command = option(command)
    return command


def machine_options(language: str, given: dict[str, Any]) -> dict[str, Any]:
    """The options for a machine of one kind; an option of the other kind is refused."""
    foreign = {"SUBLEQ": ("size", "range", "heads", "anchors"), "FLEQ": ("word_bits",)}[language]
    for name in foreign:
        if given.get(name) is not None:
            option = {"word_bits": "--bits"}.get(name, f"--{name}")
            raise PunchcardError(f"{option} is not for {language} programs")
    designs = {"SUBLEQ": SUBLEQ_DESIGNS, "FLEQ": FLEQ_DESIGNS}[language]
    if given["design"] is None:
        given["design"] = {"SUBLEQ": "paper", "FLEQ": "compact"}[language]
    if given["design"] not in designs:
        raise PunchcardError(f"--design {given['design']} is not for {language} programs: there are {', '.join(designs)}")
    return {name: value for name, value in given.items() if value is not None}


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@size_options
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
              help="SUBLEQ: initial value of a cell; may be repeated.")
@click.option("--max-steps", type=click.IntRange(0), default=100_000, show_default=True,
              help="Stop after this many instructions.")
@click.option("--trace", is_flag=True, help="Show every loop.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--no-check", is_flag=True, help="Do not compare with the interpreter.")
def run(
    file: Path, design: str | None, bits: int | None, memory: int | None, instructions: int | None, dtype: str,
    size: int | None, range_: float | None, heads: int | None, anchors: bool | None, settings: tuple[str, ...],
    max_steps: int, trace: bool, as_json: bool, no_check: bool,
) -> None:
    """Run a program on a looped transformer and compare it with a plain interpreter.

    FILE is SUBLEQ assembly (.subleq), FLEQ text (.fleq), a Minsky machine (.minsky), or what `punchcard asm` wrote (.json).
    """
    from punchcard import api, display, display_fleq
    from punchcard.isa.subleq import Program

    program = api.load(file)
    given = {"design": design, "word_bits": bits, "memory": memory, "instructions": instructions, "precision": dtype,
             "size": size, "range": range_, "heads": heads, "anchors": anchors}
    ok = False
    how: dict[str, Any] = {"max_steps": max_steps, "check": not no_check}
    if isinstance(program, Program):
        program = _with_settings(program, settings, minsky=file.suffix.lower() == ".minsky")
        machine = api.build(program, **machine_options("SUBLEQ", given))
        with display.SubleqProgress(machine, program, trace=trace) as progress, _interruptible() as interrupted:
            report = api.run(program, machine, watch=progress.watch, interrupted=interrupted, **how)
        display.show_report(program, machine, report, as_json=as_json)
        ok = report.ok
    else:
        if settings:
            raise PunchcardError("--set is not for FLEQ programs: change the values under .data")
        fleq = api.build(program, **machine_options("FLEQ", given))
        with display_fleq.FleqProgress(fleq, program, trace=trace) as progress, _interruptible() as interrupted:
            measured = api.run(program, fleq, watch=progress.watch, interrupted=interrupted, **how)
        display_fleq.show_fleq_report(program, fleq, measured, as_json=as_json)
        ok = measured.ok
    sys.stdout.flush()
    sys.exit(0 if ok else 1)


@main.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--machine", "kind", type=click.Choice(["subleq", "fleq"]), help="Which computer.  [default: subleq]")
@click.option("--functions", metavar="NAME,NAME,...", help="FLEQ: the functions that are plugged in.")
@size_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def info(
    file: Path | None, kind: str | None, functions: str | None, design: str | None, bits: int | None, memory: int | None,
    instructions: int | None, dtype: str, size: int | None, range_: float | None, heads: int | None, anchors: bool | None,
    as_json: bool,
) -> None:
    """Show the size of a machine: layers, heads, width, hidden units, parameters, temperature.

    With FILE, the machine has room for that program. Else a SUBLEQ machine has 29 cells and 32 instructions, 64 columns, and
    a FLEQ machine size 4, 32 memory columns, 32 instructions, and add, sub, mul, transpose, sigmoid and pointer functions.
    """
    from punchcard import api, display, display_fleq
    from punchcard.isa.subleq import Program
    from punchcard.machines.fleq import FleqMachine
    from punchcard.machines.subleq import SubleqMachine

    given: dict[str, Any] = {"design": design, "word_bits": bits, "memory": memory, "instructions": instructions,
                             "precision": dtype, "size": size, "range": range_, "heads": heads, "anchors": anchors}
    program = api.load(file) if file else None
    is_fleq = kind == "fleq" if program is None else not isinstance(program, Program)
    if program is not None and kind is not None and (kind == "fleq") != is_fleq:
        raise PunchcardError(f"--machine {kind}: {str(file)!r} is a program for the other one")
    options = machine_options("FLEQ" if is_fleq else "SUBLEQ", given)
    if functions is not None:
        if not is_fleq:
            raise PunchcardError("--functions is not for SUBLEQ machines")
        options["functions"] = [name.strip() for name in functions.split(",") if name.strip()]
    machine = api.build(program, **options) if program is not None else (
        FleqMachine(**{"functions": DEFAULT_FUNCTIONS, **options}) if is_fleq else SubleqMachine(**options))
    if program is not None:
        machine.punch(program)  # type: ignore[arg-type]  # refuses a program that does not fit
    if isinstance(machine, FleqMachine):
        display_fleq.show_fleq_info(machine, as_json=as_json)
    else:
        display.show_info("subleq", machine, as_json=as_json)


DEFAULT_FUNCTIONS = ("add", "sub", "mul", "transpose", "sigmoid", "incr_pointer", "reset_pointer")


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", help="File to write; by default standard output.")
def asm(file: Path, output: str | None) -> None:
    """Assemble a SUBLEQ program (.subleq, .minsky) to JSON."""
    from punchcard.isa.subleq import Program
    from punchcard.lang.files import load

    program = load(file)
    if not isinstance(program, Program):
        raise ProgramError(f"{str(file)!r} is FLEQ text, which runs as it is; `punchcard disasm` writes it in full")
    _write(program.to_json() + "\n", output)


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", help="File to write; by default standard output.")
def disasm(file: Path, output: str | None) -> None:
    """Write a program (.json, .minsky, .subleq, .fleq) as assembly text."""
    from punchcard.lang.files import disassemble, load

    _write(disassemble(load(file)), output)


def _with_settings(program: Program, settings: tuple[str, ...], *, minsky: bool) -> Program:
    values = dict(_setting(text) for text in settings)
    for name, value in values.items():
        if minsky and value < 0:
            raise ProgramError(f"--set {name}={value}: a register holds an integer, 0 or more")
    return program.with_values(values)


def _setting(text: str) -> tuple[str, int]:
    from punchcard.lang.source import lines

    name, equals, value = text.partition("=")
    bare = re.sub(r"'(?:\\.|[^\\'])'", "", value)
    line = None if ";" in bare or "#" in bare else next(lines(value), None)
    if not equals or not name.strip() or line is None:
        raise ProgramError(f"--set {text!r}: write NAME=VALUE")
    try:
        number, _ = line.take_integer("a value")
        line.finish("the value")
    except SourceError as error:
        raise ProgramError(f"--set {text!r}: {error.message}") from None
    return name.strip(), number


def _write(text: str, output: str | None) -> None:
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


def _fail(message: str, status: int) -> None:
    click.echo(f"punchcard: {message}".replace("\n", " "), err=True)
    sys.exit(status)
