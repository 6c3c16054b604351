"""What the command line shows: results on standard output; trace, progress and remarks on standard error."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.table import Table
from torch import Tensor

from punchcard.api import Report
from punchcard.machines.fleq.machine import FleqResult
from punchcard.machines.running import Mark
from punchcard.machines.subleq.isa import Program, Subleq
from punchcard.machines.subleq.machine import Result, SubleqMachine

PATIENCE = 1.0  # seconds before a run counts as long
REMARK_EVERY = 10.0  # seconds between remarks when standard error is no terminal


class Progress:
    """Follows a run: prints every loop that it watches, or says how far a long run has come."""

    def __init__(self, *, trace: bool) -> None:
        """A run is traced or its progress is shown."""
        self._trace = trace
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._status = self._console.status("")
        self._begun, self._begin, self._next = 0, 0.0, 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._status.stop()

    def trace_line(self, loop: int, card: Tensor) -> str:
        """What a loop did."""
        return f"loop {loop:>5}"

    def watch(self, loop: int, card: Tensor) -> None:
        """Called by the engine after every loop of a traced run."""
        self._console.print(self.trace_line(loop, card), markup=False)

    def made(self, loops: int) -> None:
        """Called by the engine every now and then; time counts from the first call, when compiling is over."""
        now = time.monotonic()
        if not self._begin:
            self._begun, self._begin, self._next = loops, now, now + PATIENCE
        if self._trace or now < self._next:
            return
        rate = (loops - self._begun) / (now - self._begin)
        text = f"{loops:,} loop{'s' * (loops != 1)}, {rate:,.1f} a second"
        if self._console.is_terminal:
            self._status.update(text)
            self._status.start()
            self._next = now + 0.2
        else:
            self._console.print(text)
            self._next = now + REMARK_EVERY


class SubleqProgress(Progress):
    """Follows a SUBLEQ run from a mark."""

    def __init__(self, machine: SubleqMachine, program: Program, mark: Mark, *, trace: bool) -> None:
        super().__init__(trace=trace)
        self._machine = machine
        self._program = program
        self._state = machine.read(mark.card)

    def trace_line(self, loop: int, card: Tensor) -> str:
        before, self._state = self._state, self._machine.read(card)
        after, program = self._state, self._program
        head = f"loop {loop:>5}  "
        if loop <= self._machine.design.warm_up:
            return f"{head}warm-up, reads instruction {after.program_counter}"
        number = before.program_counter
        if not 0 <= number < len(program.instructions):
            return f"{head}[{number}] outside the program"
        instruction = program.instructions[number]
        if not isinstance(instruction, Subleq):
            return f"{head}[{number}] halt"
        names = program.cell_names()
        a, b = names[instruction.a], names[instruction.b]
        old_a, old_b, new_b = before.memory[instruction.a], before.memory[instruction.b], after.memory[instruction.b]
        code = f"[{number}] subleq {a}, {b}, {instruction.c}"
        return f"{head}{code:<36} {b} = {old_b} - {old_a} = {new_b}, goto {after.program_counter}"


def show_report(
    program: Program, machine: SubleqMachine, report: Report, *, as_json: bool, checkpoint: str | None = None
) -> None:
    """The result of a run; `checkpoint` is the file that it was kept in."""
    result = report.result
    if as_json:
        print_json({
            "halted": result.halted, "steps": result.steps, "agrees": report.agrees, "memory": result.memory,
            "loops": result.loops, "program_counter": result.state.program_counter,
            "interrupted": result.interrupted, "design": machine.design.name, "word_bits": machine.sizes.word_bits,
            "dtype": machine.precision.name, "columns": machine.layout.columns, **run_facts(result, checkpoint),
            "differences": list(report.differences),
        })
    else:
        width = max(map(len, result.memory))
        for name, value in result.memory.items():
            out(f"{name:<{width}}  {value}")
        shapes = machine.model.shapes
        out(f"{ending(result)} after {result.steps:,} instruction{'s' * (result.steps != 1)} in {result.loops:,} "
             f"loop{'s' * (result.loops != 1)} of a transformer with {len(shapes)} layer{'s' * (len(shapes) != 1)}, "
             f"{machine.layout.width} rows and {machine.layout.columns} columns")
        show_engine(result)
        out({True: "the transformer agrees with the interpreter",
              False: "the transformer DISAGREES with the interpreter",
              None: "not compared with the interpreter"}[report.agrees])
    for difference in report.differences:
        remark(difference)
    show_next(result, result.state.program_counter, checkpoint)


def run_facts(result: Result | FleqResult, checkpoint: str | None) -> dict[str, Any]:
    """What every run's JSON says of its engine and its file."""
    return {
        "engine": result.engine, "steps_per_second": result.steps_per_second, "seconds": result.seconds,
        "compile_seconds": result.compile_seconds, "notes": list(result.notes), "begun": result.begun,
        "checkpoint": checkpoint,
    }


def show_engine(result: Result | FleqResult) -> None:
    """Which engine ran, how fast, and what kept it from a faster way."""
    rate = result.steps_per_second
    parts = [f"engine {result.engine}"]
    if rate is not None:
        parts.append(f"{rate:,.0f} steps a second")
    if result.compile_seconds:
        parts.append(f"compiled in {result.compile_seconds:.2f} s")
    if result.begun:
        parts.append(f"resumed after {result.begun:,} loops")
    out(", ".join(parts))
    for note in result.notes:
        out(f"note: {note}")


def ending(result: Result | FleqResult) -> str:
    """How a run ended, in words."""
    if result.halted:
        return "halted"
    return "interrupted" if result.interrupted else "stopped without halting"


def show_next(result: Result | FleqResult, number: int, checkpoint: str | None) -> None:
    """Of a run that has not halted: why, the next instruction, and how to go on."""
    if result.halted:
        return
    why = "interrupted" if result.interrupted else "the limit of --max-steps was reached"
    remark(f"{why}: instruction {number} would have been next")
    if checkpoint is not None:
        more = "" if result.interrupted else " --max-steps N, with a larger N"
        remark(f"the run is kept: go on with punchcard run --resume {shlex.quote(checkpoint)}{more}")


def show_info(name: str, machine: SubleqMachine, *, as_json: bool) -> None:
    """The size of a machine, beside what the paper states."""
    facts = info(name, machine)
    if as_json:
        print_json(facts)
        return
    paper = facts["paper"]
    show_table(
        f"{name}, design {machine.design.name!r}: {machine.sizes.word_bits}-bit words, "
        f"{_counted(machine.sizes.memory, 'cell')}, {_counted(machine.sizes.instructions, 'instruction')}",
        [
            ("layers", str(facts["layers"]), str(paper["layers"])),
            ("heads per layer", _listing(facts["heads"]), f"at most {paper['heads']}"),
            ("width (rows)", str(facts["width"]), str(paper["width"])),
            ("columns", str(facts["columns"]), "n"),
            ("hidden units", _listing(facts["hidden"]), ""),
            ("parameters", f"{facts['parameters']:,}, of which {facts['nonzero']:,} are not zero", ""),
            ("temperature", f"{facts['temperature']:g}", str(paper["temperature"])),
            ("number format", f"{facts['dtype']}: {facts['significand_bits']} significand bits, "
                              f"{facts['needed_bits']} needed", "real numbers"),
        ],
    )


def show_table(title: str, rows: Sequence[tuple[str, str, str]]) -> None:
    """A table of what is built beside what the paper states."""
    table = Table(title=title)
    for heading in ("", "built", "paper"):
        table.add_column(heading)
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def info(name: str, machine: SubleqMachine) -> dict[str, Any]:
    """The figures of `show_info` as plain data."""
    shapes = machine.model.shapes
    parameters, nonzero = machine.model.parameter_count()
    temperatures = [float(t) for key, tensor in machine.model.state_dict().items() if key.endswith("temperature")
                    for t in tensor]
    return {
        "machine": name, "design": machine.design.name, "word_bits": machine.sizes.word_bits,
        "memory": machine.sizes.memory, "instructions": machine.sizes.instructions, "dtype": machine.precision.name,
        "layers": len(shapes), "heads": [s.heads for s in shapes], "hidden": [s.hidden for s in shapes],
        "width": machine.layout.width, "columns": machine.layout.columns, "parameters": parameters,
        "nonzero": nonzero, "temperature": max(temperatures), "needed_bits": machine.needed_bits,
        "significand_bits": machine.precision.significand, "paper": dict(machine.design.paper),
    }


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' * (number != 1)}"


def _listing(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def print_json(data: dict[str, Any]) -> None:
    out(json.dumps(data))


def out(text: str) -> None:
    print(text)  # noqa: T201


def remark(text: str) -> None:
    print(f"punchcard: {text}", file=sys.stderr)  # noqa: T201
