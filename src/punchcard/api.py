"""The few calls that most people need: load or assemble a program, build a machine for it, run it, check it.

SUBLEQ programs run on a `SubleqMachine`, FLEQ programs on a `FleqMachine`; the calls below take either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

from punchcard.checks.lockstep import Comparison, compare
from punchcard.checks.step_errors import Auditor, FleqReport, audited_run
from punchcard.engines import Watch
from punchcard.errors import PunchcardError
from punchcard.machines.checkpoint import DEFAULT_EVERY, Checkpoint, Plan, Writer
from punchcard.machines.checkpoint import load as load_checkpoint
from punchcard.machines.files import disassemble, load
from punchcard.machines.fleq.blocks.block import Block
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.machine import FleqMachine, pointer_constants
from punchcard.machines.fleq.text import assembler as fleq_language
from punchcard.machines.running import DEFAULT_ENGINE, At, Mark
from punchcard.machines.subleq import oracle
from punchcard.machines.subleq import text as subleq_language
from punchcard.machines.subleq.isa import Program
from punchcard.machines.subleq.machine import DEFAULT_MAX_STEPS, Result, SubleqMachine

__all__ = ["FleqReport", "Report", "assemble", "assemble_fleq", "begin", "build", "check", "disassemble", "load", "resume",
           "run"]

assemble = subleq_language.assemble
assemble_fleq = fleq_language.assemble


@dataclass(frozen=True)
class Report:
    """A run on the transformer, and whether the plain interpreter says the same (None: it was not asked)."""

    result: Result
    agrees: bool | None
    differences: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.result.halted and self.agrees is not False


@overload
def build(program: Program, **options: Any) -> SubleqMachine: ...
@overload
def build(program: FleqProgram, **options: Any) -> FleqMachine: ...
def build(program: Program | FleqProgram, **options: Any) -> SubleqMachine | FleqMachine:
    """A machine with room for a program. Only the program's sizes are used; its content never reaches the weights.

    For a FLEQ program the sizes are its memory columns, instructions, largest operand, declared range, and the functions
    that it calls. `blocks` adds function blocks of your own.
    """
    sizes = {name: value for name, value in options.items() if value is not None}
    if isinstance(program, Program):
        sizes.setdefault("memory", len(program.memory))
        sizes.setdefault("instructions", len(program.instructions))
        return SubleqMachine(**sizes)
    blocks: tuple[Block, ...] = sizes.pop("blocks", ())
    own = {block.name: block for block in blocks}
    names = sizes.get("functions") or program.used_functions() or ("add",)
    sizes["functions"] = [own.get(name, name) if isinstance(name, str) else name for name in names]
    sizes.setdefault("size", program.size)
    sizes.setdefault("memory", max(1, program.columns + len(pointer_constants(program))))
    sizes.setdefault("instructions", len(program.instructions))
    sizes.setdefault("range", program.range)
    return FleqMachine(**sizes)


@overload
def run(program: Program, machine: SubleqMachine | None = None, **options: Any) -> Report: ...
@overload
def run(program: FleqProgram, machine: FleqMachine | None = None, **options: Any) -> FleqReport: ...
def run(
    program: Program | FleqProgram,
    machine: SubleqMachine | FleqMachine | None = None,
    *,
    engine: str = DEFAULT_ENGINE,
    max_steps: int = DEFAULT_MAX_STEPS,
    check: bool = True,
    watch: Watch | None = None,
    interrupted: Callable[[], bool] | None = None,
    progress: Callable[[int], None] | None = None,
    checkpoint: str | Path | None = None,
    every: int | None = None,
    **options: Any,
) -> Report | FleqReport:
    """Run a program on a machine (by default one built to its sizes) and compare it with the interpreter.

    A SUBLEQ run is compared at its end. In a FLEQ run every instruction is compared with the exact function as well, which
    enters Python after every loop; with check=False a fast engine runs undisturbed. `checkpoint` is a file that the
    run is kept in after every `every` loops, when it is interrupted and at its end: see `resume`.
    """
    if machine is not None and options:
        raise PunchcardError(f"{', '.join(options)}: options build a machine, and here one is given")
    if every is not None and checkpoint is None:
        raise PunchcardError(f"every={every}: checkpoint, the file to write, is not given")
    plan = Plan(max_steps, DEFAULT_EVERY if every is None else every, check)
    start = begin(program, machine or build(program, **options), plan)
    return _run_from(start, checkpoint, engine=engine, watch=watch, interrupted=interrupted, progress=progress)


def begin(
    program: Program | FleqProgram, machine: SubleqMachine | FleqMachine, plan: Plan | None = None
) -> Checkpoint:
    """A run before its first loop; `resume` makes it."""
    if isinstance(program, Program) != isinstance(machine, SubleqMachine):
        raise PunchcardError(f"a {type(program).__name__} does not run on a {type(machine).__name__}")
    card = machine.punch(program)  # type: ignore[arg-type]
    return Checkpoint(machine, program, Mark(card), plan or Plan(DEFAULT_MAX_STEPS))


def resume(
    saved: str | Path | Checkpoint,
    machine: SubleqMachine | FleqMachine | None = None,
    *,
    blocks: Sequence[Block] = (),
    engine: str | None = None,
    max_steps: int | None = None,
    check: bool | None = None,
    watch: Watch | None = None,
    interrupted: Callable[[], bool] | None = None,
    progress: Callable[[int], None] | None = None,
    checkpoint: str | Path | None = None,
    every: int | None = None,
) -> Report | FleqReport:
    """Go on with the run in a checkpoint file, to the same last card as if it had never stopped.

    What is not given is as it was: the engine that made the loops before, `max_steps` (all loops of the run counted),
    `check`, `every`, and the file, which is written on. Function blocks of your own are given again as `blocks`, a machine
    with weights of your own as `machine`.
    """
    if not isinstance(saved, Checkpoint):
        checkpoint = saved if checkpoint is None else checkpoint
        saved = load_checkpoint(saved, machine, blocks=blocks)
    plan = Plan(saved.plan.max_steps if max_steps is None else max_steps, saved.plan.every if every is None else every,
                saved.plan.check if check is None else check)
    return _run_from(replace(saved, plan=plan), checkpoint, engine=engine or saved.mark.engine or DEFAULT_ENGINE,
                     watch=watch, interrupted=interrupted, progress=progress)


def _run_from(start: Checkpoint, path: str | Path | None, *, engine: str, **how: Any) -> Report | FleqReport:
    """Run on from a mark, keeping checkpoints if there is a file for them, and compare as the plan says."""
    machine, program, plan = start.machine, start.program, start.plan
    writer = None if path is None else Writer(path, machine, program, plan, engine)
    if writer is not None:
        writer.write(start.mark, start.audit)  # so that a file that cannot be written is known before a long run
    how |= {"engine": engine, "max_steps": plan.max_steps, "begin": start.mark}
    if writer is not None:
        how["keep"] = At(plan.every, writer.write)
    if isinstance(program, FleqProgram) and isinstance(machine, FleqMachine):
        if not plan.check:
            return FleqReport(machine.run(program, **how), None, None, None, "", None)
        auditor = Auditor(machine, program, start.mark.card, start.audit)
        if writer is not None:
            how["keep"] = At(plan.every, lambda mark: writer.write(mark, auditor.audit))
        return audited_run(machine, program, auditor=auditor, **how)
    if isinstance(program, Program) and isinstance(machine, SubleqMachine):
        result = machine.run(program, **how)
        if not plan.check:
            return Report(result, None)
        differences = _differences(program, result, oracle.run(program, machine.sizes.word_bits, result.steps))
        return Report(result, not differences, differences)
    raise PunchcardError(f"a {type(program).__name__} does not run on a {type(machine).__name__}")


def check(
    program: Program,
    machine: SubleqMachine | None = None,
    *,
    engine: str = DEFAULT_ENGINE,
    max_steps: int = 1000,
    **options: Any,
) -> Comparison:
    """Run a SUBLEQ program in lockstep with the interpreter: memory and program counter after every loop."""
    if machine is not None and options:
        raise PunchcardError(f"{', '.join(options)}: options build a machine, and here one is given")
    if not isinstance(program, Program):
        raise PunchcardError("check is for SUBLEQ programs: `run` compares every instruction of a FLEQ program")
    return compare(machine or build(program, **options), [program], max_steps, engine)


def _differences(program: Program, result: Result, expected: oracle.Outcome) -> tuple[str, ...]:
    found = [
        f"{name} is {is_}, the interpreter has {should}"
        for name, is_, should in zip(program.cell_names(), result.state.memory, expected.state.memory, strict=True)
        if is_ != should
    ]
    if result.state.program_counter != expected.state.program_counter:
        found.append(f"the program counter is {result.state.program_counter}, the interpreter's "
                     f"{expected.state.program_counter}")
    if result.steps != expected.steps:
        found.append(f"{result.steps} instructions were executed, the interpreter stops after {expected.steps}")
    if result.halted != expected.halted:
        found.append(f"halted is {result.halted}, the interpreter's {expected.halted}")
    return tuple(found)
