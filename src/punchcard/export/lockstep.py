"""A program of an export: its first values by name, and the interpreter in lockstep with it, loop by loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from punchcard.errors import ProgramError
from punchcard.machines.base import Machine
from punchcard.machines.interpreter import Interpreter
from punchcard.machines.streams import reader


@runtime_checkable
class HasValues(Protocol):
    """A program that can be given other first values by name."""

    def with_values(self, values: Mapping[str, object]) -> object:
        """The same program with these values."""
        ...


def require_values(program: object, use: str) -> HasValues:
    """The program, if it has named values that can be changed. `use` is what they are needed for."""
    if not isinstance(program, HasValues):
        raise ProgramError(f"{use}: a {type(program).__name__} has no values by name that could be changed")
    return program


def interpreted(
    machine: Machine[Any, Any], programs: Sequence[Any], loops: int
) -> Iterator[tuple[int, list[Interpreter[Any]]]]:
    """Interpreters of programs after each of so many loops, until all have halted, or one has a fault or needs a port."""
    oracles = [machine.oracle(program, reader(b""), lambda byte: None) for program in programs]
    for loop in range(1, loops + 1):
        if loop > machine.design.warm_up:
            if any(each.waits or each.fault is not None for each in oracles) or all(each.halted for each in oracles):
                return
            for oracle in oracles:
                oracle.step()
        yield loop, oracles
