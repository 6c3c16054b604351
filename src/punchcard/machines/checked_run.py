"""A run that is compared with the plain interpreter, and kept in a file, as its plan says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from punchcard.engines import NO_CONTROLS, Controls, NoCopyWatch
from punchcard.machines.base import AnyMachine
from punchcard.machines.checkpoint import DEFAULT_EVERY, Checkpoint, CheckpointFile, Plan
from punchcard.machines.comparison import Check
from punchcard.machines.result import Report
from punchcard.machines.running import DEFAULT_ENGINE, Mark, PeriodicAction, in_turn
from punchcard.machines.streams import Input, Output, reader, writer


def begin(
    program: Any, machine: AnyMachine, *, engine: str = DEFAULT_ENGINE, max_steps: int | None = None,
    check: bool | Check | None = None, every: int = DEFAULT_EVERY,
) -> Checkpoint:
    """A run before its first loop; `resume` makes its loops."""
    machine.check_type(program)
    machine.check_room(engine)
    limit = machine.default_max_steps if max_steps is None else max_steps
    return Checkpoint(machine, program, Mark(machine.pack(program)), Plan(limit, every, machine.check_mode(check), engine))


def resume(
    start: Checkpoint, path: str | Path | None = None, *, input: Input = b"", output: Output | None = None,
    controls: Controls = NO_CONTROLS,
) -> Report[Any]:
    """Go on from a checkpoint as its plan says; `path` is the file that the run is kept in."""
    machine, program, plan, mark = start.machine, start.program, start.plan, start.mark
    comparison = None if plan.check is None else machine.comparison(program, mark, plan.check, start.found)
    read, write = reader(input, len(mark.traffic.read)), writer(output)
    keep: PeriodicAction | None = None
    if path is not None:
        file = CheckpointFile(path, machine, program, plan)
        file.write(mark, start.found)  # so that a file that cannot be written is known before a long run
        keep = PeriodicAction(plan.every, lambda now: file.write(now, None if comparison is None else comparison.kept()))
    if comparison is not None:
        read, write = comparison.reading(read), writer(comparison.writing(write))
        asked = controls.is_interrupted
        controls = replace(controls, interrupted=lambda: comparison.stops or asked())
        if comparison.watches:
            look = NoCopyWatch(comparison.watch) if comparison.needs_no_copy else comparison.watch
            controls = replace(controls, watch=look if controls.watch is None else in_turn(look, controls.watch))
    result = machine.run(program, engine=plan.engine, max_steps=plan.max_steps, begin=mark, input=read, output=write,
                         controls=controls, keep=keep, guarded=comparison is None or not comparison.guards)
    if comparison is None:
        return Report(result)
    return comparison.report(replace(result, reason="stopped") if comparison.stops else result)
