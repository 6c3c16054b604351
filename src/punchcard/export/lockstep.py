"""The interpreter in lockstep with a program of an export, loop by loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from punchcard.machines.base import Machine
from punchcard.machines.interpreter import Interpreter
from punchcard.machines.streams import reader


def interpreter_cards(
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
