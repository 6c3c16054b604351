"""The command `run`: a program from a file, or a run from a checkpoint, on a looped transformer.

Results go to standard output; trace, progress and remarks to standard error. Exit status: 0, or the program's own where it
has one, when the program halted and the transformer agrees with the interpreter (or was not compared), 1 when not, 2 for
bad input, 141 when the reader of the output has gone. Of a program that writes, its bytes are printed as they come, and
nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from punchcard.cli.keyboard import polled_input
from punchcard.cli.options import (
    TRACES,
    arguments_option,
    checkpoint_option,
    given_flags,
    given_options,
    json_option,
    program_command,
    resume_option,
    set_option,
    stats_option,
    stock_option,
)
from punchcard.cli.stock import check_not_model, run_stock
from punchcard.cli.terminal import check_run_files, input_file, interruptible, remark
from punchcard.errors import ProgramError, PunchcardError
from punchcard.machines.kind import Kind, Language
from punchcard.machines.registry import Registry
from punchcard.machines.streams import writer

if TYPE_CHECKING:
    from punchcard.machines.base import AnyMachine
    from punchcard.machines.checkpoint import Checkpoint
    from punchcard.machines.comparison import Check
    from punchcard.machines.result import Report

TRACED_DENSELY = 512
"""Cards of so many columns are traced on the dense engine, which need not prepare anything."""


@program_command()
@set_option
@arguments_option
@click.option("--max-steps", type=click.IntRange(0),
              help="Stop after this many instructions.  [default: set by the machine]")
@click.option("--engine", metavar="NAME",
              help="The engine that applies the model: auto, dense, scratchpad or lowered.  [default: auto]")
@click.option("--input", "input_", metavar="FILE", help="The program's input.  [default: standard input]")
@checkpoint_option
@click.option("--every", type=click.IntRange(1), metavar="K", help="Loops between two checkpoints.  [default: 1000000]")
@resume_option
@click.option("--trace", type=click.Choice(TRACES), metavar="[=story]",
              help="Print on standard error what each loop does; --trace=story: each half layer, in sentences.")
@json_option
@stats_option
@click.option("--no-traces", is_flag=True, help="Do not compile hot paths of a long run to code of their own.")
@click.option("--check", is_flag=True, help="Compare with the interpreter after every loop.")
@click.option("--no-check", is_flag=True, help="Do not compare with the interpreter.")
@stock_option
def run(
    registry: Registry, file: Path | None, settings: tuple[str, ...], arguments: tuple[str, ...], max_steps: int | None,
    engine: str | None, input_: str | None, checkpoint: str | None, every: int | None, resume: str | None, trace: str | None,
    as_json: bool, stats: str | None, no_traces: bool, check: bool, no_check: bool, on: str | None, **given: Any,
) -> int:
    """Run a program on a looped transformer, and compare it with an interpreter.

    FILE is a program: {extensions}. With --resume no FILE is needed.

    \b
    Examples:
      punchcard run examples/multiply.subleq --set a=12
      punchcard run examples/riscv/primes.c --no-check
    """
    if check and no_check:
        raise PunchcardError("--check and --no-check: choose one")
    if on is not None:
        return run_stock(registry, file, engine=engine, max_steps=max_steps, trace=trace,
                         as_json=as_json, check=not no_check)
    check_not_model(file)
    check_run_files(checkpoint, resume, stats, file, input_)
    compared: bool | Check | None = "lockstep" if check else False if no_check else None
    if resume is not None:
        saved, checkpoint = _saved(resume, registry), checkpoint or resume
        saved = saved.planned(engine=engine, max_steps=max_steps, every=every, check=compared)
    elif file is None:
        raise click.UsageError("Missing argument 'FILE': a program, or --resume with a checkpoint.")
    elif every is not None and checkpoint is None:
        raise PunchcardError("--every needs --checkpoint FILE")
    else:
        program, machine = load_and_build(file, given_options(given), registry, settings, arguments)
        from punchcard.machines.checkpoint import DEFAULT_EVERY, begin
        from punchcard.machines.running import DEFAULT_ENGINE

        traced = trace and checkpoint is None and machine.layout.columns <= TRACED_DENSELY
        saved = begin(program, machine, engine=engine or ("dense" if traced else DEFAULT_ENGINE), max_steps=max_steps,
                      every=every or DEFAULT_EVERY, check=compared)
    if input_ is not None and not saved.machine.has_ports:
        raise PunchcardError(f"--input is not for {saved.machine.kind.name} programs: they read nothing")
    forgets = saved.plan.check is None and checkpoint is None and stats is None  # then only standard output has the bytes
    report = _run(saved, checkpoint, file, trace=trace, input_=input_, silent=as_json, forgets=forgets and not as_json,
                  traces=not no_traces)

    from punchcard.cli import display

    if saved.machine.has_ports and not as_json and sys.stderr.isatty():
        remark(display.what_ran(saved.machine, report, shows_rate=not (check or trace)))
    if saved.machine.has_ports and not as_json and check and report.agrees:
        remark(f"the transformer {report.summary()}")
    return display.show_report(saved.program, saved.machine, report, as_json=as_json, stats=stats, checkpoint=checkpoint,
                               name=str(file or resume), shows_rate=not (check or trace))


def _run(saved: Checkpoint, checkpoint: str | None, file: Path | None, *, trace: str | None, input_: str | None,
         silent: bool, forgets: bool, traces: bool) -> Report[Any]:
    """Make the run, with a trace or a remark now and then; bytes go to standard output as they come."""
    from punchcard.cli.display import RunProgress
    from punchcard.engines import Controls, NoCopyWatch
    from punchcard.engines.controls import HOT_SECONDS
    from punchcard.machines.checkpoint import resume

    ports = saved.machine.has_ports
    with (
        input_file(input_ if ports else None, len(saved.mark.traffic.read)) as source,
        interruptible(source, keeps=checkpoint is not None) as (interrupted, read),
        RunProgress(saved.machine, saved.program, saved.mark, file) as progress,
    ):
        watch = progress.narrate if trace == "story" else NoCopyWatch(progress.watch) if trace else None
        controls = Controls(watch=watch, interrupted=interrupted, progress=None if trace or ports else progress.made,
                            traces=HOT_SECONDS if traces else None)
        if not ports:
            return resume(saved, checkpoint, controls=controls)
        output = writer(None if silent else sys.stdout.buffer, sys.stderr.buffer, forgets=forgets)
        with polled_input(interrupted) if saved.machine.polls_input and input_ is None else nullcontext(read) as given:
            return resume(saved, checkpoint, input=given, output=output, controls=controls)


def load_and_build(
    file: Path, given: Mapping[str, Any], registry: Registry, settings: tuple[str, ...] = (),
    arguments: tuple[str, ...] = (), *, is_viewed: bool = False,
) -> tuple[Any, AnyMachine]:
    """The program in a file with the values of `--set`, called with arguments, and a machine for it, or for a view of it."""
    program, kind, language, options = registry.load_with(file, given)
    if settings:
        program = with_settings(program, settings, kind, language)
    if arguments:
        program = with_arguments(program, arguments, kind)
    machine = kind.machine_class()
    usual = machine.view_options(program) if is_viewed else {}
    return program, machine.for_program(program, **{**usual, **options})


def open_machine(registry: Registry, file: Path | None, kind_name: str | None, given: Mapping[str, Any]) -> AnyMachine:
    """A machine with room for the program in a file, or without a file one of the usual sizes. Default: the first kind."""
    if file is None:
        kind = registry.kind(kind_name) if kind_name is not None else next(iter(registry))
        return kind.machine_class()(**registry.machine_options(kind, given))
    program, kind, _, options = registry.load_with(file, given)
    if kind_name not in (None, kind.name):
        raise PunchcardError(f"--machine {kind_name}: {str(file)!r} is a {kind.name} program")
    machine = kind.machine_class().for_program(program, **options)
    machine.check_fits(program)
    return machine


def _saved(path: str, registry: Registry) -> Checkpoint:
    """The run in a checkpoint, whose program and machine are what they are."""
    if flags := given_flags("file", "settings", "arguments", "design", "dtype"):
        raise PunchcardError(f"{flags[0]} cannot be used with --resume: the checkpoint has the program and the machine")
    from punchcard.machines.checkpoint import load

    return load(path, machines=registry)


def with_arguments(program: Any, arguments: tuple[str, ...], kind: Kind) -> Any:
    """The program, called with arguments."""
    if not kind.arguments:
        raise ProgramError(f"--argument {arguments[0]!r}: {kind.name} programs take no arguments")
    return program.with_arguments(arguments)


def with_settings(program: Any, settings: tuple[str, ...], kind: Kind, language: Language) -> Any:
    """The program with the values of `--set`."""
    if kind.parse_value is None:
        raise ProgramError(f"--set is not for {kind.name} programs: they have no named values")
    values = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ProgramError(f"--set {text!r}: write NAME=VALUE")
        if name.strip() in values:
            raise ProgramError(f"--set {text!r}: {name.strip()} is set twice")
        try:
            values[name.strip()] = kind.parse_value(value)
        except ProgramError as error:
            raise ProgramError(f"--set {text!r}: {error}") from None
        if language.check_value is not None:
            language.check_value(name.strip(), values[name.strip()])
    return program.with_values(values)
