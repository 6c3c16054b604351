"""A run that is compared with the plain interpreter, and kept in a file, as its plan says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from punchcard.card.layout import Pattern
from punchcard.engines import NoCopyWatch, Port, Watch
from punchcard.machines.base import Machine
from punchcard.machines.checkpoint import DEFAULT_EVERY, Checkpoint, CheckpointFile, Plan
from punchcard.machines.comparison import Check
from punchcard.machines.result import Report
from punchcard.machines.running import DEFAULT_ENGINE, Mark, PeriodicAction, in_turn
from punchcard.machines.streams import Input, Output, reader, writer


def begin(
    program: Any, machine: Machine[Any, Any], *, engine: str = DEFAULT_ENGINE, max_steps: int | None = None,
    check: bool | Check | None = None, every: int = DEFAULT_EVERY,
) -> Checkpoint:
    """A run before its first loop; `checked_run` makes it."""
    machine.check_type(program)
    machine.check_room(engine)
    limit = machine.default_max_steps if max_steps is None else max_steps
    return Checkpoint(machine, program, Mark(machine.pack(program)), Plan(limit, every, comparison(machine, check), engine))


def comparison(machine: Machine[Any, Any], wanted: bool | Check | None) -> Check | None:
    """When a run is compared: as it is wanted, or as the machine has it."""
    if wanted is None:
        return machine.compared
    usual: Literal["end", "lockstep"] = machine.compared or "end"
    return (usual if wanted else None) if isinstance(wanted, bool) else wanted


def checked_run(
    start: Checkpoint,
    path: str | Path | None = None,
    *,
    input: Input = b"",
    output: Output | None = None,
    watch: Watch | None = None,
    interrupted: Callable[[], bool] | None = None,
    progress: Callable[[int], None] | None = None,
    ports: Mapping[Pattern, Port] | None = None,
) -> Report[Any]:
    """Go on from a mark, on the plan's engine; `path` is the file that the run is kept in."""
    machine, program, plan, mark = start.machine, start.program, start.plan, start.mark
    judge = None if plan.check is None else machine.comparison(program, mark, plan.check, start.found)
    read, write = reader(input, len(mark.traffic.read)), writer(output)
    how: dict[str, Any] = {"input": read, "output": write, "watch": watch, "interrupted": interrupted}
    if path is not None:
        file = CheckpointFile(path, machine, program, plan)
        file.write(mark, start.found)  # so that a file that cannot be written is known before a long run
        how["keep"] = PeriodicAction(plan.every, lambda mark: file.write(mark, None if judge is None else judge.kept()))
    if judge is not None:
        how |= {"input": judge.reading(read), "output": judge.writing(write),
                "interrupted": lambda: judge.stops or (interrupted is not None and interrupted())}
        if judge.watches:
            look = NoCopyWatch(judge.watch) if judge.needs_no_copy else judge.watch
            how["watch"] = look if watch is None else in_turn(look, watch)
    result = machine.run(program, engine=plan.engine, max_steps=plan.max_steps, begin=mark, progress=progress, ports=ports,
                         guarded=judge is None or not judge.guards, **how)
    if judge is None:
        return Report(result)
    return judge.report(replace(result, reason="stopped") if judge.stops else result)
