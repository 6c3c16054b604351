"""What executes a program without a transformer, as something to time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from punchcard.errors import CompilerError, PunchcardError
from punchcard.machines.base import Machine
from punchcard.machines.interpreter import Quick

FEW_STEPS = 1000
Make = Callable[[], Quick[Any]]


def interpreters(machine: Machine[Any, Any], program: Any, rival: str, remark: Callable[[str], None]) -> dict[str, Make]:
    """What executes a program without a transformer, by name: the machine's own interpreter, and C where it can be had."""
    found: dict[str, Make] = {rival: lambda: machine.quickest(program)}
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


def interpreted(make: Make, steps: int) -> float:
    """The seconds that an interpreter takes."""
    interpreter = make()
    started = time.perf_counter()
    interpreter.run(steps)
    return time.perf_counter() - started
