"""The few calls that most people need: load or assemble a program, build a machine for it, run it, check it.

They work for every kind of machine. `machines` is a registry with kinds of your own: `kinds().including(MyMachine)`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from punchcard.arguments import checked
from punchcard.engines import NO_CONTROLS, Controls
from punchcard.errors import PunchcardError
from punchcard.machines import checkpoint as checkpoints
from punchcard.machines.base import AnyMachine
from punchcard.machines.checked_run import begin
from punchcard.machines.checked_run import resume as resume_run
from punchcard.machines.checkpoint import DEFAULT_EVERY, Checkpoint
from punchcard.machines.comparison import Check
from punchcard.machines.registry import Registry, installed
from punchcard.machines.result import Report
from punchcard.machines.running import DEFAULT_ENGINE
from punchcard.machines.streams import Input, Output

if TYPE_CHECKING:
    from punchcard.machines.fleq.isa import FleqProgram
    from punchcard.machines.fleq.machine import FleqMachine
    from punchcard.machines.riscv.machine import RiscvMachine
    from punchcard.machines.riscv.program import RiscvProgram
    from punchcard.machines.subleq.isa import Program
    from punchcard.machines.subleq.machine import SubleqMachine
    from punchcard.machines.von_neumann.isa import Image
    from punchcard.machines.von_neumann.machine import VonNeumannMachine

kinds = installed


@checked
def load(path: str | Path, *, machines: Registry | None = None, **options: Any) -> Any:
    """The program in a file. The extension says which language it is.

    `options` are the language's own, such as `tape` for Brainfuck. Sizes of the machine may be given too: then a text that
    does not fit them is refused, at the place where it does not.
    """
    return (machines or installed()).load(path, **options)


@checked
def assemble(
    text: str, language: str = "subleq", *, source: str = "", machines: Registry | None = None, **options: Any
) -> Any:
    """The program in a text. `language` is a machine's name, for its assembly language, or the extension of a file.

        punchcard.assemble(text)                                 SUBLEQ
        punchcard.assemble(text, "fleq", functions={...})        FLEQ, with functions of your own
        punchcard.assemble(text, ".bf", tape=100)                Brainfuck

    `source` is what errors call the text; `options` are the language's own.
    """
    return (machines or installed()).assemble(text, language, source, **options)


@checked
def disassemble(program: Any, *, machines: Registry | None = None) -> str:
    """A program as text that assembles to the same program."""
    return (machines or installed()).disassemble(program)


if TYPE_CHECKING:
    @overload
    def build(program: Program, *, machines: Registry | None = None, **options: Any) -> SubleqMachine: ...

    @overload
    def build(program: FleqProgram, *, machines: Registry | None = None, **options: Any) -> FleqMachine: ...

    @overload
    def build(program: Image, *, machines: Registry | None = None, **options: Any) -> VonNeumannMachine: ...

    @overload
    def build(program: RiscvProgram, *, machines: Registry | None = None, **options: Any) -> RiscvMachine: ...

    @overload
    def build(program: Any, *, machines: Registry | None = None, **options: Any) -> Any: ...


@checked
def build(program: Any, *, machines: Registry | None = None, **options: Any) -> Any:
    """A machine with room for a program. Only the program's sizes are used; its content never reaches the weights.

    `options` are those of the machine, such as `design` and `precision`; for FLEQ programs `blocks` are your own function
    blocks.
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
    """Run a program on a machine and compare it with a plain interpreter. Default: a machine of the program's sizes.

    max_steps       instructions after which the run stops, default: set by the machine
    check           "end": compare at the end; "lockstep": after every loop, which is slow; False: not at all. Default:
                    SUBLEQ at the end, every instruction of FLEQ with the exact function, the others not at all
    input, output   what the program reads and writes: bytes, a binary file or a function
    controls        functions to call between loops
    checkpoint      a file that the run is kept in, every `every` loops and at its end: see `resume`
    options         of the machine that is built, such as `design`
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
    """Continue the run in a checkpoint file. It ends with the same card as a run that was never stopped.

    Default of `engine`, `max_steps` (all loops of the run counted), `check` and `every`: as before. The file is written on,
    unless `checkpoint` names another. `input` as bytes is the whole input; what was read is skipped. Function blocks of your
    own are given again as `blocks`, a machine with weights of your own as `machine`.
    """
    if not isinstance(saved, Checkpoint):
        checkpoint = saved if checkpoint is None else checkpoint
        saved = checkpoints.load(saved, machine, machines=machines, **objects)
    elif objects or machine is not None:
        raise PunchcardError(f"{', '.join(objects) or 'machine'}: a checkpoint that is loaded already has its machine")
    saved = saved.planned(engine=engine, max_steps=max_steps, check=check, every=every)
    return resume_run(saved, checkpoint, input=input, output=output, controls=controls)


@checked
def check(
    program: Any, machine: AnyMachine | None = None, *, engine: str = DEFAULT_ENGINE, max_steps: int | None = 1000,
    **options: Any,
) -> Report[Any]:
    """Run a program and compare the whole state with the interpreter's after every loop."""
    return run(program, machine, engine=engine, max_steps=max_steps, check="lockstep", **options)
