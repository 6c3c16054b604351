"""A FLEQ run with every instruction compared."""

from __future__ import annotations

from typing import Any

from punchcard.machines.checkpoint import begin, resume
from punchcard.machines.fleq.isa import FleqProgram, FleqState
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.result import Report


def audited_run(
    machine: FleqMachine, program: FleqProgram, *, engine: str = "auto", max_steps: int | None = None, **how: Any
) -> Report[FleqState]:
    return resume(begin(program, machine, engine=engine, max_steps=max_steps), **how)
