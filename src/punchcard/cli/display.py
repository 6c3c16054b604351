"""What the command line shows of runs and machines: results on standard output, the rest on standard error."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from punchcard.cli.terminal import log, out, print_json, remark
from punchcard.errors import printable
from punchcard.files import write_atomic
from punchcard.formatting import json_text, plural, short_number
from punchcard.machines.base import AnyMachine
from punchcard.machines.result import Report
from punchcard.machines.running import Mark

if TYPE_CHECKING:
    from pathlib import Path

    from rich import progress

    from punchcard.card.layout import Card
    from punchcard.proof.certificate import Certificate, Verification
    from punchcard.sweep.dispatch import SweepProgress
    from punchcard.viewer.session import Session

PATIENCE = 1.0
"""Seconds before a run counts as long."""
REMARK_EVERY = 10.0
"""Seconds between remarks when standard error is not a terminal."""


class Progress:
    """How far a command has come: a line on a terminal, with a bar if the end is known; else a remark every ten seconds."""

    def __init__(self, patience: float | None = None) -> None:
        """`patience`: seconds before the first line. Default: none on a terminal, else as between two remarks."""
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._patience, self._next = patience, 0.0
        self._line: progress.Progress | None = None
        self.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._line is not None:
            self._line.stop()

    def wait(self) -> None:
        """Begin to wait for the first line now."""
        usual = 0.0 if self._console.is_terminal else REMARK_EVERY
        self._next = time.monotonic() + (usual if self._patience is None else self._patience)

    def show(self, text: str, more: str = "", done: int = 0, total: int | None = None) -> None:
        """Say how far it is; `more` is left out beside a bar."""
        now = time.monotonic()
        if now < self._next:
            return
        if not self._console.is_terminal:
            log(f"{text}{more}")
            self._next = now + REMARK_EVERY
            return
        text = printable(text)
        if self._line is None:
            from rich import progress

            bar = (progress.BarColumn(), progress.TextColumn("{task.percentage:>3.0f} %"), progress.TimeRemainingColumn())
            self._line = progress.Progress(
                progress.SpinnerColumn(),
                progress.TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
                *(bar if total is not None else ()), console=self._console, transient=True)
            self._line.add_task(text, total=total)
            self._line.start()
        self._line.update(self._line.task_ids[0], completed=done, total=total, description=text)

    def follow(self, progress: SweepProgress) -> None:
        """Say how far the jobs on many workers are."""
        self.show(str(progress), done=progress.made, total=progress.total)


class RunProgress(Progress):
    """Follows a run: prints every loop that it watches, or says how far a long run has come."""

    def __init__(self, machine: AnyMachine, program: object, mark: Mark, source: Path | None = None) -> None:
        """`source`: the program's file, whose lines a story quotes."""
        super().__init__(PATIENCE)
        self._machine, self._program, self._card, self._source = machine, program, mark.raw_card, source
        self._begun, self._begin = 0, 0.0

    def watch(self, loop: int, card: Card) -> None:
        """Called after every loop of a traced run with the engine's own card, of which a copy is kept."""
        before, self._card = self._card, card.clone() if hasattr(card, "clone") else card.copy()
        warming = loop <= self._machine.design.warm_up
        did = "warm-up" if warming else self._machine.trace_line(self._program, before, card)
        log(f"loop {loop:>5}  {did}")

    def narrate(self, loop: int, card: Card) -> None:
        """The same in sentences, one for each half layer."""
        before, self._card = self._card, card.clone() if hasattr(card, "clone") else card.copy()
        for layer, half, sentence in self._session.loop_story(loop - 1, before, card):
            log(f"loop {loop}, layer {layer}, {half}: {sentence}")

    @cached_property
    def _session(self) -> Session:
        from punchcard.viewer.session import Session, session_of

        if self._source is None:
            return Session(self._machine, self._program)
        return session_of(self._machine, self._program, self._source)

    def made(self, loops: int) -> None:
        """Called by the engine every now and then; time counts from the first call, when compiling is over."""
        if not self._begin:
            self._begun, self._begin = loops, time.monotonic()
            self.wait()
        rate = (loops - self._begun) / max(time.monotonic() - self._begin, 1e-9)
        self.show(f"{plural(loops, 'loop')}, {rate:,.1f} a second")


def report_fields(program: object, machine: AnyMachine, report: Report[Any], checkpoint: str | None) -> dict[str, Any]:
    """A run as plain data: what `--json` prints and `--stats` writes."""
    result = report.result
    facts: dict[str, Any] = {
        "machine": machine.kind.name, "design": machine.design.name, "sizes": machine.options, **machine.options,
        "halted": result.halted, "reason": result.reason, "steps": result.steps,
        "agrees": report.agrees, "memory": {name: machine.plain(value) for name, value in result.memory.items()},
        "loops": result.loops, "program_counter": result.program_counter, "interrupted": result.interrupted,
        "dtype": machine.precision.name,
        "columns": machine.layout.columns, "engine": result.engine, "steps_per_second": result.steps_per_second,
        "seconds": result.seconds, "compile_seconds": result.compile_seconds, "notes": list(result.notes),
        "traces": None if result.traces is None else asdict(result.traces),
        "begun": result.begun, "checkpoint": checkpoint, "differences": list(report.differences), "why": report.why,
    }
    facts |= machine.returned(program, result)
    if report.bound is not None:
        facts |= {"max_error": report.max_error, "max_step_error": report.max_step_error, "bound": report.bound}
    if machine.has_ports:
        facts |= {"output": result.output.decode("utf-8", "backslashreplace"),
                  "fault": None if result.fault is None else machine.why_stopped(program, result),
                  "status": result.status,
                  "errors": result.errors.decode("utf-8", "backslashreplace")}
    return facts


def show_report(
    program: object, machine: AnyMachine, report: Report[Any], *, as_json: bool, stats: str | None, checkpoint: str | None,
    name: str, shows_rate: bool = True,
) -> int:
    """Print the result of a run, write it to the file `stats`, and return the exit status.

    `checkpoint` is the file that the run was kept in, `name` the one that it came from. `shows_rate` is False for a run
    whose time is not the engine's.
    """
    if stats is not None or as_json:
        fields = report_fields(program, machine, report, checkpoint)
        if stats is not None:
            write_atomic(stats, json_text(fields) + "\n")
        if as_json:
            print_json(fields)
    result = report.result
    status = (result.status or 0) if report.ok else 1
    printed = not as_json and not machine.has_ports
    lines = [machine.format_result(program, result), *report.lines(machine, shows_rate=shows_rate)] if printed else []
    remarks = [f"{name}: {why}" if machine.has_ports else why for why in _why_not(program, machine, report)]
    if result.reason in ("steps", "interrupted") and not report.differences and checkpoint is not None:
        more = "" if result.reason == "interrupted" else " --max-steps N, with a larger N"
        command = click.get_current_context().command_path  # the machine may come from a script
        remarks.append(f"the run is saved: continue with {command} --resume {shlex.quote(checkpoint)}{more}")
    for line in lines:
        out(line)
    for line in remarks:
        remark(line)
    return status


def show_certificate(found: Certificate, lines: Iterable[str], kept: Path | None, verification: Verification | None,
                     output: str | None, *, as_json: bool) -> int:
    """Print a certificate, or these lines, and how it compares with a kept one; write it; 1 unless all of it is so."""
    if as_json:
        print_json({**found.describe(), **({} if verification is None else verification.describe())})
    else:
        for line in lines:
            out(line)
        if verification is not None:
            out(f"{str(kept)!r} is {verification}")
    if output is not None:
        found.save(output)
    return 0 if found.proven and (verification is None or verification.confirmed) else 1


def what_ran(machine: AnyMachine, report: Report[Any], *, shows_rate: bool) -> str:
    """A line for a terminal, below what a program wrote: that was a transformer."""
    rate = report.rate() if shows_rate else None
    speed = f", {short_number(rate)} a second" if rate is not None else ""
    layers = plural(len(machine.weights.layers), "layer")
    return (f"{plural(report.result.loops, 'loop')} of a transformer with {layers} and {machine.layout.columns:,} columns"
            f"{speed}")


def _why_not(program: object, machine: AnyMachine, report: Report[Any]) -> Iterator[str]:
    """Why a run is not a success."""
    result, counter = report.result, report.result.program_counter
    next_one = f": instruction {counter} would have been next" if counter is not None else ""
    if report.differences and report.bound is None:
        if machine.has_ports:
            yield f"the transformer differs from the interpreter: {report.why}"
            return
        yield from report.differences
    place = f"{counter:#x}" if machine.counter_base == 16 and counter is not None else counter
    at = f"after {plural(result.steps, 'instruction')}, at {place}"
    if result.fault is not None:
        yield f"stopped {at}: {machine.why_stopped(program, result)}"
    elif result.reason == "interrupted":
        yield f"interrupted {at}" if machine.has_ports else f"interrupted{next_one}"
    elif result.reason == "steps":
        yield f"stopped {at}: --max-steps" if machine.has_ports else f"the limit of --max-steps was reached{next_one}"


def show_info(machine: AnyMachine, *, as_json: bool) -> None:
    """The size of a machine, beside what the paper states."""
    facts = machine.summary()
    if as_json:
        print_json(facts)
        return
    paper = facts["paper"]
    significand = f"{facts['dtype']}: {facts['significand_bits']} significand bits"
    needed = f", {facts['needed_bits']} needed" if facts["needed_bits"] else ""
    layout = machine.layout
    columns = f"{layout.columns}: {', '.join(f'{region.name} {region.size}' for region in layout.regions)}"
    table = PlainTable("", "built", "paper", title=machine.title())
    for row in (
        ("layers", str(facts["layers"]), str(paper.get("layers", ""))),
        ("heads per layer", ", ".join(map(str, facts["heads"])), str(paper.get("heads", ""))),
        ("width (rows)", str(facts["width"]), str(paper.get("width", ""))),
        ("columns", columns, "n"),
        ("hidden units", ", ".join(map(str, facts["hidden"])), ""),
        ("parameters", f"{facts['parameters']:,}, of which {facts['nonzero']:,} are not zero", ""),
        ("temperature", f"{facts['temperature']:g} in hard heads", str(paper.get("temperature", ""))),
        ("number format", significand + needed, "real numbers"),
        *((f"error bound of {name}", f"{bound:.1e} over {facts['bounds_over'][name]}", "")
          for name, bound in facts.get("bounds", {}).items()),
    ):
        table.add_row(*row)
    print_table(table)


class PlainTable(Table):
    """A table whose texts are shown as they are: nothing in them is markup."""

    def __init__(self, *headers: str, title: str) -> None:
        super().__init__(title=Text(printable(title), "table.title", justify="center"))
        for header in headers:
            self.add_column(header)

    def add_row(self, *cells: Any, **styles: Any) -> None:
        super().add_row(*(Text(printable(cell)) for cell in cells), **styles)


def print_table(table: Table) -> None:
    """A table on standard output; printed by click, since rich would exit with another status on a broken pipe."""
    console = Console(width=None if sys.stdout.isatty() else 140)
    with console.capture() as captured:
        console.print(table)
    click.echo(captured.get(), nl=False)
