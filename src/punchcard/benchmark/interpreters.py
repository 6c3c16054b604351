"""What executes a program without a transformer, as something to time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from punchcard.errors import CompilerError, PunchcardError
from punchcard.machines.base import Machine
from punchcard.machines.interpreter import Quick

FEW_STEPS = 1000
Program = TypeVar("Program")
State = TypeVar("State")


def interpreters(machine: Machine[Program, State], program: Program, rival: str,
                 remark: Callable[[str], None]) -> dict[str, Callable[[], Quick[State]]]:
    """What executes a program without a transformer, by name: the machine's own interpreter, and C where it can be had."""
    found: dict[str, Callable[[], Quick[State]]] = {rival: lambda: machine.quickest(program)}
    try:
        in_c, own = machine.in_c(program), machine.quickest(program)
        if in_c is not None:
            for one in (in_c, own):
                one.run(FEW_STEPS)
            if not machine.near(program, in_c.state, own.state):
                raise PunchcardError(f"{machine.kind.name}: c does not give what {rival} gives after {FEW_STEPS} steps")
            found["c"] = lambda: machine.in_c(program) or own
    except CompilerError as why:
        remark(f"c is left out: {why}")
    return found


def interpreted(make: Callable[[], Quick[State]], steps: int) -> float:
    """The seconds that an interpreter takes."""
    interpreter = make()
    started = time.perf_counter()
    interpreter.run(steps)
    return time.perf_counter() - started
