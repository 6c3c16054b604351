"""The command line: arguments in, exit status out. What is shown is in `display`, what is done in `api`.

Results go to standard output; trace, progress and remarks to standard error. Exit status: 0 when the program halted and
the transformer agrees with the interpreter (or was not compared), 1 when not, 2 for bad input.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from punchcard import __version__
from punchcard.cli.calc import calc
from punchcard.cli.image import RunCommand
from punchcard.cli.learn import learn, predict
from punchcard.cli.terminal import Group, interruptible, write_text
from punchcard.errors import ProgramError, PunchcardError, SourceError

if TYPE_CHECKING:
    from punchcard.machines.checkpoint import Checkpoint
    from punchcard.machines.subleq.isa import Program

SUBLEQ_DESIGNS = ("paper", "two-layer", "one-layer")
FLEQ_DESIGNS = ("paper", "compact")
ALL_DESIGNS = tuple(dict.fromkeys(SUBLEQ_DESIGNS + FLEQ_DESIGNS))
DTYPES = ("float64", "float32", "float16", "bfloat16")
FIXED_BY_A_CHECKPOINT = ("file", "design", "bits", "memory", "instructions", "dtype", "size", "range_", "heads", "anchors",
                         "settings")
Command = TypeVar("Command", bound=Callable[..., Any])


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Transformers as programmable computers: weights set by formula, run in a loop."""


main.add_command(calc)
main.add_command(learn)
main.add_command(predict)


def size_options(command: Command) -> Command:
    """The options that give a machine its size."""
    for option in (
        click.option("--anchors", is_flag=True, default=None, help="FLEQ: mul as the paper has it, with anchors."),
        click.option("--heads", type=click.IntRange(1, 3), help="FLEQ: heads of a soft product, 1 to 3.  [default: 1]"),
        click.option("--range", "range_", type=float, help="FLEQ: every value stays within ±R.  [default: the program's]"),
        click.option("--size", type=click.IntRange(1), help="FLEQ: d, rows and columns of the largest operand."),
        click.option("--dtype", type=click.Choice(DTYPES), default="float64", show_default=True, help="Number format."),
        click.option("--instructions", type=click.IntRange(1), help="Instructions of the machine."),
        click.option("--memory", type=click.IntRange(1), help="Memory cells (FLEQ: columns) of the machine."),
        click.option("--bits", type=int, help="SUBLEQ: bits of a word.  [default: 16]"),
        click.option("--design", type=click.Choice(ALL_DESIGNS), help="Which transformer.  [default: paper; FLEQ: compact]"),
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


@main.command(cls=RunCommand)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@size_options
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
              help="SUBLEQ: initial value of a cell; may be repeated.")
@click.option("--max-steps", type=click.IntRange(0), help="Stop after this many instructions.  [default: 100000]")
@click.option("--engine", metavar="NAME", help="What applies the model.  [default: auto; with --trace: dense]")
@click.option("--checkpoint", metavar="FILE", help="Keep the run in this file, to go on from.")
@click.option("--every", type=click.IntRange(1), metavar="K", help="Loops between two checkpoints.  [default: 1000000]")
@click.option("--resume", metavar="FILE", help="Go on with the run in this file, and keep it there.")
@click.option("--trace", is_flag=True, help="Show every loop.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--no-check", is_flag=True, help="Do not compare with the interpreter.")
def run(
    file: Path | None, design: str | None, bits: int | None, memory: int | None, instructions: int | None, dtype: str,
    size: int | None, range_: float | None, heads: int | None, anchors: bool | None, settings: tuple[str, ...],
    max_steps: int | None, engine: str | None, checkpoint: str | None, every: int | None, resume: str | None, trace: bool,
    as_json: bool, no_check: bool,
) -> None:
    """Run a program on a looped transformer and compare it with a plain interpreter.

    FILE is SUBLEQ assembly (.subleq), FLEQ text (.fleq), a Minsky machine (.minsky), or what `punchcard asm` wrote (.json);
    or an image of one memory for code and data (.dec, .sq, .slq, .asq, .bf), whose output is all that is printed.
    With --resume no FILE is needed.
    """
    from punchcard import api
    from punchcard.cli import display, display_fleq
    from punchcard.machines.fleq.machine import FleqMachine

    if resume is not None:
        saved = _saved(resume)
        checkpoint = checkpoint or resume
    else:
        if file is None:
            raise click.UsageError("Missing argument 'FILE': a program, or --resume with a checkpoint.")
        if every is not None and checkpoint is None:
            raise PunchcardError("--every is for runs with --checkpoint")
        saved = _begun(file, settings, {
            "design": design, "word_bits": bits, "memory": memory, "instructions": instructions, "precision": dtype,
            "size": size, "range": range_, "heads": heads, "anchors": anchors})
    shown = display_fleq.FleqProgress if isinstance(saved.machine, FleqMachine) else display.SubleqProgress
    with shown(saved.machine, saved.program, saved.mark, trace=trace) as progress, interruptible() as interrupted:  # type: ignore[arg-type]
        report = api.resume(
            saved, engine=engine or ("dense" if trace else None), max_steps=max_steps, check=False if no_check else None,
            watch=progress.watch if trace else None, interrupted=interrupted, progress=progress.made,
            checkpoint=checkpoint, every=every)
    show = display_fleq.show_fleq_report if isinstance(report, api.FleqReport) else display.show_report
    show(saved.program, saved.machine, report, as_json=as_json, checkpoint=checkpoint)  # type: ignore[arg-type]
    sys.stdout.flush()
    sys.exit(0 if report.ok else 1)


def _begun(file: Path, settings: tuple[str, ...], given: dict[str, Any]) -> Checkpoint:
    """A run at its beginning: the program in a file on a machine for it."""
    from punchcard import api
    from punchcard.machines.subleq.isa import Program
    from punchcard.machines.von_neumann.isa import Image

    program = api.load(file)
    assert not isinstance(program, Image), "RunCommand runs images by their extension"
    if isinstance(program, Program):
        program = _with_settings(program, settings, minsky=file.suffix.lower() == ".minsky")
        return api.begin(program, api.build(program, **machine_options("SUBLEQ", given)))
    if settings:
        raise PunchcardError("--set is not for FLEQ programs: change the values under .data")
    return api.begin(program, api.build(program, **machine_options("FLEQ", given)))


def _saved(path: str) -> Checkpoint:
    """The run in a checkpoint, whose program and machine are what they are."""
    from punchcard.machines.checkpoint import load

    context = click.get_current_context()
    for parameter in context.command.params:
        if (parameter.name in FIXED_BY_A_CHECKPOINT
                and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE):
            given = "FILE" if parameter.name == "file" else parameter.opts[0]
            raise PunchcardError(f"{given} cannot be given with --resume: a checkpoint has its program and its machine")
    return load(path)


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
    from punchcard import api
    from punchcard.cli import display, display_fleq
    from punchcard.machines.fleq.machine import FleqMachine
    from punchcard.machines.subleq.isa import Program
    from punchcard.machines.subleq.machine import SubleqMachine
    from punchcard.machines.von_neumann.isa import Image

    given: dict[str, Any] = {"design": design, "word_bits": bits, "memory": memory, "instructions": instructions,
                             "precision": dtype, "size": size, "range": range_, "heads": heads, "anchors": anchors}
    program = api.load(file) if file else None
    if isinstance(program, Image):
        raise PunchcardError(f"{str(file)!r} is a program for one memory: `punchcard run` takes it, `info` does not")
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
@click.option("--cells", type=click.Choice(["byte", "word"]), help="Brainfuck: what a cell holds.  [default: byte]")
@click.option("--eof", type=click.Choice(["0", "-1", "unchanged"]), help="Brainfuck: the end of the input.  [default: 0]")
@click.option("--tape", type=click.IntRange(1), help="Brainfuck: cells of the tape.  [default: 100]")
def asm(file: Path, output: str | None, **brainfuck: Any) -> None:
    """Assemble a program: .subleq and .minsky to JSON; .asq and .bf to a memory image, decimal words."""
    from punchcard.machines.files import load
    from punchcard.machines.subleq.isa import Program
    from punchcard.machines.von_neumann.isa import Image
    from punchcard.machines.von_neumann.languages import images

    program = load(file, **{name: value for name, value in brainfuck.items() if value is not None})
    if isinstance(program, Image):
        write_text(images.write(program), output)
    elif isinstance(program, Program):
        write_text(program.to_json() + "\n", output)
    else:
        raise ProgramError(f"{str(file)!r} is FLEQ text, which runs as it is; `punchcard disasm` writes it in full")


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", help="File to write; by default standard output.")
def disasm(file: Path, output: str | None) -> None:
    """Write a program (.json, .minsky, .subleq, .fleq, .asq, .dec, .bf) as assembly text."""
    from punchcard.machines.files import disassemble, load

    write_text(disassemble(load(file)), output)


@main.command()
@click.option("--machine", type=click.Choice(["subleq", "fleq", "all"]), default="all", show_default=True,
              help="Which computer.")
@click.option("--columns", callback=lambda context, option, text: _numbers(text), metavar="N,N,...",
              help="Columns of the cards.  [default: 64,1024,16384,65536; FLEQ: 150,1000]")
@click.option("--design", callback=lambda context, option, text: _names(text, ALL_DESIGNS), metavar="NAME,NAME,...",
              help="Which transformers.  [default: two-layer,paper,one-layer; FLEQ: compact]")
@click.option("--engine", callback=lambda context, option, text: _names(text), metavar="NAME,NAME,...",
              help="Which engines, beside dense.  [default: all]")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="Length of a timed run.  [default: 0.1]")
@click.option("--dense-columns", type=click.IntRange(0),
              help="The largest card for the dense engine; beyond 2048 columns it makes one loop.  [default: 2048]")
@click.option("--quick", is_flag=True, help="A look of some seconds at the smallest cards.")
@click.option("--json", "as_json", is_flag=True, help="Print the records as one JSON list.")
def bench(machine: str, quick: bool, as_json: bool, **given: Any) -> None:
    """Measure this computer's engines: steps a second, and ratios to the dense engine and to plain interpreters."""
    from punchcard.benchmark.tables import QUICK, Options
    from punchcard.cli.display_bench import show_bench

    names = {"columns": "columns", "design": "designs", "engine": "engines", "seconds": "seconds",
             "dense_columns": "dense_columns"}
    chosen = {names[name]: value for name, value in given.items() if value is not None}
    show_bench(Options(machine=machine, **{**(QUICK if quick else {}), **chosen}), as_json=as_json)  # type: ignore[arg-type]


def _names(text: str | None, known: tuple[str, ...] | None = None) -> tuple[str, ...] | None:
    """Names separated by commas."""
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if known is not None and name not in known:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(known)}.")
    if not names:
        raise click.BadParameter(f"{text!r}: write names separated by commas.")
    return names


def _numbers(text: str | None) -> tuple[int, ...] | None:
    """Positive integers separated by commas."""
    if text is None:
        return None
    numbers = tuple(int(part) if part.strip().isdecimal() else 0 for part in text.split(","))
    if min(numbers) < 1:
        raise click.BadParameter(f"{text!r}: write positive integers separated by commas.")
    return numbers


def _with_settings(program: Program, settings: tuple[str, ...], *, minsky: bool) -> Program:
    values = dict(_setting(text) for text in settings)
    for name, value in values.items():
        if minsky and value < 0:
            raise ProgramError(f"--set {name}={value}: a register holds an integer, 0 or more")
    return program.with_values(values)


def _setting(text: str) -> tuple[str, int]:
    from punchcard.machines.source import lines

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
