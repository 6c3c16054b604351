"""What the command line shows: results on standard output; trace, progress and remarks on standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.table import Table
from torch import Tensor

from punchcard.api import Report
from punchcard.isa.subleq import Program, Subleq
from punchcard.machines.subleq import SubleqMachine

PATIENCE = 1.0  # seconds before a run counts as long
REMARK_EVERY = 10.0  # seconds between remarks when standard error is no terminal


class Progress:
    """Watches a run: prints every loop with trace=True, else how far a long run has come."""

    def __init__(self, *, trace: bool) -> None:
        self._trace = trace
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._status = self._console.status("")
        self._begin = time.monotonic()
        self._next = self._begin + PATIENCE

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._status.stop()

    def trace_line(self, loop: int, card: Tensor) -> str:
        """What a loop did."""
        return f"loop {loop:>5}"

    def watch(self, loop: int, card: Tensor) -> None:
        """Called by the engine after every loop."""
        if self._trace:
            self._console.print(self.trace_line(loop, card), markup=False)
            return
        now = time.monotonic()
        if now >= self._next:
            text = f"{loop:,} loop{'s' * (loop != 1)}, {loop / (now - self._begin):,.1f} a second"
            if self._console.is_terminal:
                self._status.update(text)
                self._status.start()
                self._next = now + 0.2
            else:
                self._console.print(text)
                self._next = now + REMARK_EVERY


class SubleqProgress(Progress):
    """Watches a SUBLEQ run."""

    def __init__(self, machine: SubleqMachine, program: Program, *, trace: bool) -> None:
        super().__init__(trace=trace)
        self._machine = machine
        self._program = program
        self._state = machine.read(machine.punch(program))

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


def show_report(program: Program, machine: SubleqMachine, report: Report, *, as_json: bool) -> None:
    """The result of a run."""
    result = report.result
    if as_json:
        print_json({
            "halted": result.halted, "steps": result.steps, "agrees": report.agrees, "memory": result.memory,
            "loops": result.loops, "program_counter": result.state.program_counter,
            "interrupted": result.interrupted, "design": machine.design.name, "word_bits": machine.sizes.word_bits,
            "dtype": machine.precision.name, "columns": machine.layout.columns, "engine": result.engine,
            "differences": list(report.differences),
        })
    else:
        width = max(map(len, result.memory))
        for name, value in result.memory.items():
            out(f"{name:<{width}}  {value}")
        shapes = machine.model.shapes
        out(f"{_ending(report)} after {result.steps:,} instruction{'s' * (result.steps != 1)} in {result.loops:,} "
             f"loop{'s' * (result.loops != 1)} of a transformer with {len(shapes)} layer{'s' * (len(shapes) != 1)}, "
             f"{machine.layout.width} rows and {machine.layout.columns} columns")
        out({True: "the transformer agrees with the interpreter",
              False: "the transformer DISAGREES with the interpreter",
              None: "not compared with the interpreter"}[report.agrees])
    for difference in report.differences:
        remark(difference)
    if not result.halted:
        number = result.state.program_counter
        why = "interrupted" if result.interrupted else "the limit of --max-steps was reached"
        remark(f"{why}: instruction {number} would have been next")


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


def _ending(report: Report) -> str:
    if report.result.halted:
        return "halted"
    return "interrupted" if report.result.interrupted else "stopped without halting"


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
