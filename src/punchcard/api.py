"""The few calls that most people need: load or assemble a program, build a machine for it, run it, check it.

They work for every kind of machine. `machines` is a registry with kinds of your own: `kinds().including(MyMachine)`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from punchcard.arguments import checked
from punchcard.engines import NO_CONTROLS, Controls
from punchcard.errors import PunchcardError
from punchcard.machines import checkpoint as checkpoints
from punchcard.machines import storage
from punchcard.machines.base import Machine
from punchcard.machines.checked_run import begin
from punchcard.machines.checked_run import resume as resume_run
from punchcard.machines.checkpoint import DEFAULT_EVERY, Checkpoint, Plan
from punchcard.machines.comparison import Check
from punchcard.machines.fleq.text.assembler import assemble as assemble_fleq
from punchcard.machines.registry import Registry, installed
from punchcard.machines.result import Report, Result
from punchcard.machines.running import DEFAULT_ENGINE
from punchcard.machines.streams import Input, Output
from punchcard.machines.subleq.text import assemble

__all__ = [
    "Registry",
    "Report",
    "Result",
    "assemble",
    "assemble_fleq",
    "build",
    "check",
    "disassemble",
    "kinds",
    "load",
    "resume",
    "run",
]

AnyMachine = Machine[Any, Any]
kinds = installed


@checked
def load(path: str | Path, *, machines: Registry | None = None, **options: Any) -> Any:
    """The program in a file; the extension says which language it is.

    `options` are the language's own, such as `tape` for Brainfuck. Sizes of the machine may be given too: images and their
    assembly are refused at the place where they do not fit them.
    """
    return (machines or installed()).load(path, **options)


@checked
def load_machine(path: str | Path, *, machines: Registry | None = None, **objects: Any) -> Any:
    """A saved machine of any kind; `objects` are what no file holds, such as function blocks of your own (`blocks`)."""
    name = str(storage.load(path)[0].get("machine"))
    return (machines or installed()).kind(name).machine_class().load(path, **objects)


@checked
def disassemble(program: Any, *, machines: Registry | None = None) -> str:
    """A program as text that assembles to the same program."""
    return (machines or installed()).disassemble(program)


@checked
def build(program: Any, *, machines: Registry | None = None, **options: Any) -> Any:
    """A machine with room for a program. Only the program's sizes are used; its content never reaches the weights.

    `options` are those of the machine; for FLEQ programs `blocks` are function blocks of your own.
    """
    return (machines or installed()).build(program, **options)


@checked
def run(
    program: Any,
    machine: AnyMachine | None = None,
    *,
    engine: str = DEFAULT_ENGINE,
    max_steps: int | None = None,
    check: bool | Check | None = None,
    input: Input = b"",
    output: Output | None = None,
    controls: Controls = NO_CONTROLS,
    checkpoint: str | Path | None = None,
    every: int | None = None,
    machines: Registry | None = None,
    **options: Any,
) -> Report[Any]:
    """Run a program on a machine (by default one built to its sizes) and compare it with the interpreter.

    `check` is "end", "lockstep" (after every loop) or False; by default as the machine has it: SUBLEQ runs are compared at
    their end, every instruction of a FLEQ run with the exact function, and images not at all. A run that is compared
    after every loop enters Python after every loop; with check=False a fast engine runs undisturbed. `checkpoint` is a
    file that the run is kept in after every `every` loops, when it is interrupted and at its end: see `resume`.
    """
    if machine is not None and options:
        raise PunchcardError(f"{', '.join(options)}: options build a machine, and here one is given")
    if every is not None and checkpoint is None:
        raise PunchcardError(f"every={every}: checkpoint, the file to write, is not given")
    start = begin(program, machine or build(program, machines=machines, **options), engine=engine, max_steps=max_steps,
                  check=check, every=DEFAULT_EVERY if every is None else every)
    return resume_run(start, checkpoint, input=input, output=output, controls=controls)


@checked
def resume(
    saved: str | Path | Checkpoint,
    machine: AnyMachine | None = None,
    *,
    engine: str | None = None,
    max_steps: int | None = None,
    check: bool | Check | None = None,
    input: Input = b"",
    output: Output | None = None,
    controls: Controls = NO_CONTROLS,
    checkpoint: str | Path | None = None,
    every: int | None = None,
    machines: Registry | None = None,
    **objects: Any,
) -> Report[Any]:
    """Go on with the run in a checkpoint file, to the same last card as if it had never stopped.

    What is not given is as it was: the engine, `max_steps` (all loops of the run counted), `check`, `every`, and the file,
    which is written on. `input` given as bytes is the whole input; what was read is skipped. Function blocks of your own are
    given again as `blocks`, a machine with weights of your own as `machine`.
    """
    if not isinstance(saved, Checkpoint):
        checkpoint = saved if checkpoint is None else checkpoint
        saved = checkpoints.load(saved, machine, machines=machines, **objects)
    elif objects or machine is not None:
        raise PunchcardError(f"{', '.join(objects) or 'machine'}: a checkpoint that is loaded already has its machine")
    before = saved.plan
    plan = Plan(before.max_steps if max_steps is None else max_steps, before.every if every is None else every,
                before.check if check is None else saved.machine.check_mode(check), engine or before.engine)
    return resume_run(replace(saved, plan=plan), checkpoint, input=input, output=output, controls=controls)


@checked
def check(
    program: Any, machine: AnyMachine | None = None, *, engine: str = DEFAULT_ENGINE, max_steps: int | None = 1000,
    **options: Any,
) -> Report[Any]:
    """Run a program in lockstep with the interpreter: the whole state is compared after every loop."""
    return run(program, machine, engine=engine, max_steps=max_steps, check="lockstep", **options)
