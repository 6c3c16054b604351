"""The few calls that most people need: load or assemble a program, build a machine for it, run it, check it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from punchcard.analysis.lockstep import Comparison, compare
from punchcard.engines import Watch
from punchcard.isa.subleq import Program
from punchcard.lang.files import load
from punchcard.lang.subleq import assemble, disassemble
from punchcard.machines.subleq import DEFAULT_MAX_STEPS, Result, SubleqMachine
from punchcard.oracle import subleq as oracle

__all__ = ["Report", "assemble", "build", "check", "disassemble", "load", "run"]


@dataclass(frozen=True)
class Report:
    """A run on the transformer, and whether the plain interpreter says the same (None: it was not asked)."""

    result: Result
    agrees: bool | None
    differences: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.result.halted and self.agrees is not False


def build(program: Program, *, memory: int | None = None, instructions: int | None = None, **options: Any) -> SubleqMachine:
    """A machine with room for a program. Only the program's sizes are used; its content never reaches the weights."""
    return SubleqMachine(
        memory=len(program.memory) if memory is None else memory,
        instructions=len(program.instructions) if instructions is None else instructions,
        **options,
    )


def run(
    program: Program,
    machine: SubleqMachine | None = None,
    *,
    engine: str = "dense",
    max_steps: int = DEFAULT_MAX_STEPS,
    check: bool = True,
    watch: Watch | None = None,
    interrupted: Callable[[], bool] | None = None,
    **options: Any,
) -> Report:
    """Run a program on a machine (by default one built to its sizes) and compare the end with the interpreter's."""
    machine = machine or build(program, **options)
    result = machine.run(program, engine=engine, max_steps=max_steps, watch=watch, interrupted=interrupted)
    if not check:
        return Report(result, None)
    expected = oracle.run(program, machine.sizes.word_bits, result.steps)
    differences = _differences(program, result, expected)
    return Report(result, not differences, differences)


def check(program: Program, machine: SubleqMachine | None = None, *, max_steps: int = 1000, **options: Any) -> Comparison:
    """Run a program in lockstep with the interpreter, comparing memory and program counter after every loop."""
    return compare(machine or build(program, **options), [program], max_steps)


def _differences(program: Program, result: Result, expected: oracle.Outcome) -> tuple[str, ...]:
    found = [
        f"{name} is {is_}, the interpreter has {should}"
        for name, is_, should in zip(program.cell_names(), result.state.memory, expected.state.memory, strict=True)
        if is_ != should
    ]
    if result.state.program_counter != expected.state.program_counter:
        found.append(f"the program counter is {result.state.program_counter}, the interpreter's "
                     f"{expected.state.program_counter}")
    if result.halted != expected.halted:
        found.append(f"halted is {result.halted}, the interpreter's {expected.halted}")
    return tuple(found)
