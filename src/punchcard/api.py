"""The few calls that most people need: load or assemble a program, build a machine for it, run it, check it.

They work for every kind of machine. `machines` is a registry with kinds of your own: `kinds().including(MyMachine)`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from punchcard.arguments import checked
from punchcard.engines import NO_CONTROLS, Controls
from punchcard.errors import ProgramError, PunchcardError
from punchcard.machines import checkpoint as checkpoints
from punchcard.machines.base import AnyMachine
from punchcard.machines.checkpoint import DEFAULT_EVERY, Checkpoint
from punchcard.machines.comparison import Check
from punchcard.machines.kind import refuse_options
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
P = TypeVar("P")

if TYPE_CHECKING:
    @overload
    def load(path: str | Path, expected: type[P], *, machines: Registry | None = None, **options: Any) -> P: ...

    @overload
    def load(path: str | Path, expected: None = None, *, machines: Registry | None = None, **options: Any) -> Any: ...


@checked
def load(path: str | Path, expected: type[P] | None = None, *, machines: Registry | None = None, **options: Any) -> Any:
    """Load a program from a file. The file's extension chooses the language.

        program = punchcard.load("examples/multiply.subleq")
        program = punchcard.load("examples/newton.fleq", punchcard.FleqProgram)

    expected   the class that the program must have, which a type checker then knows. Default: any
    options    options of the language, such as `tape` for Brainfuck; also sizes of the machine, such as `memory`. If the
               program does not fit these sizes, the error names the line
    machines   a registry with your own kinds of machines

    Returns a `Program`, `FleqProgram`, `Image` or `RiscvProgram`. Raises `ProgramError` if the file cannot be read, is not a
    valid program, or is not a program of the expected class.
    """
    program = (machines or installed()).load(path, **options)
    if expected is not None and not isinstance(program, expected):
        raise ProgramError(f"{str(path)!r}: the program is of class {type(program).__name__}, not {expected.__name__}")
    return program


if TYPE_CHECKING:
    @overload
    def assemble(text: str, language: Literal["subleq"] = "subleq", *, source: str = "", machines: None = None,
                 **options: Any) -> Program: ...

    @overload
    def assemble(text: str, language: Literal["fleq"], *, source: str = "", machines: None = None,
                 **options: Any) -> FleqProgram: ...

    @overload
    def assemble(text: str, language: Literal["von-neumann"], *, source: str = "", machines: None = None,
                 **options: Any) -> Image: ...

    @overload
    def assemble(text: str, language: Literal["riscv"], *, source: str = "", machines: None = None,
                 **options: Any) -> RiscvProgram: ...

    @overload
    def assemble(text: str, language: str, *, source: str = "", machines: Registry | None = None,
                 **options: Any) -> Any: ...


@checked
def assemble(
    text: str, language: str = "subleq", *, source: str = "", machines: Registry | None = None, **options: Any
) -> Any:
    """Assemble a program from text.

        punchcard.assemble(text)                                 SUBLEQ
        punchcard.assemble(text, "fleq", functions={...})        FLEQ, with your own functions
        punchcard.assemble(text, ".bf", tape=100)                Brainfuck

    language   the name of a machine, for its assembly language, or a file extension
    source     name of the text in error messages
    machines   a registry with your own kinds of machines
    options    options of the language

    Returns a program, as `load` does. Raises `ProgramError` if the text is not a valid program.
    """
    return (machines or installed()).assemble(text, language, source, **options)


@checked
def disassemble(program: Any, *, machines: Registry | None = None) -> str:
    """Return a program as assembly text. `assemble` turns this text into the same program."""
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
    """Build a machine that is large enough for a program. Only its sizes are used: the weights do not depend on the program.

        machine = punchcard.build(program, design="two-layer", precision="float32")

    options    options of the machine, such as `design` and `precision`; FLEQ machines also take `blocks`, a list of your own
               function blocks
    machines   a registry with your own kinds of machines

    Returns a `Machine`.
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
    """Run a program on a machine, and compare the run with a plain interpreter.

        report = punchcard.run(program, design="two-layer")
        report.result.memory["product"], report.agrees

    machine         default: built for the program, with `options` such as `design`
    engine          the engine that applies the model, default: "auto", the fastest one that can run it
    max_steps       instructions after which the run stops, default: set by the machine
    check           "end": compare at the end; "lockstep": compare after every loop, which is slow; False: do not compare.
                    Default: SUBLEQ is compared at the end, each FLEQ instruction with the exact function, others not
    input           what the program reads: bytes, a binary file, or a function
    output          where the program's output goes: a binary file, or a function. The result has the bytes in any case
    controls        functions to call between loops: see `Controls`
    checkpoint      file to save the run to, every `every` loops (default: 1,000,000) and at the end: see `resume`

    Returns a `Report`.
    """
    if machine is not None:
        refuse_options(options)
    if every is not None and checkpoint is None:
        raise PunchcardError(f"every={every}: checkpoint, the file to write, is missing")
    start = checkpoints.begin(program, machine or build(program, machines=machines, **options), engine=engine,
                              max_steps=max_steps, check=check, every=DEFAULT_EVERY if every is None else every)
    return checkpoints.resume(start, checkpoint, input=input, output=output, controls=controls)


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
    """Continue a run from a checkpoint file. It ends with the same card as a run that was never stopped.

        punchcard.run(program, checkpoint="run.checkpoint", max_steps=1000)
        punchcard.resume("run.checkpoint", max_steps=2000)

    machine      needed only if you changed the weights of the machine; pass the changed machine
    engine, max_steps, check, every
                 default: as in the saved run. `max_steps` also counts the instructions before the checkpoint
    input        if bytes: the whole input, from its beginning; what the program has read is skipped
    checkpoint   file to save to, default: the same file
    objects      what a file cannot hold because it is code: your own function blocks, as `blocks`

    Returns a `Report`.
    """
    if not isinstance(saved, Checkpoint):
        checkpoint = saved if checkpoint is None else checkpoint
        saved = checkpoints.load(saved, machine, machines=machines, **objects)
    elif objects or machine is not None:
        raise PunchcardError(f"{', '.join(objects) or 'machine'}: a loaded checkpoint already has its machine")
    saved = saved.planned(engine=engine, max_steps=max_steps, check=check, every=every)
    return checkpoints.resume(saved, checkpoint, input=input, output=output, controls=controls)


@checked
def boot(
    image: str | Path,
    *,
    memory: int | str = "16M",
    command_line: str | None = None,
    misaligned: Literal["complete", "trap"] = "complete",
    engine: str = DEFAULT_ENGINE,
    max_steps: int | None = None,
    check: bool | Check | None = None,
    input: Input = b"",
    output: Output | None = None,
    controls: Controls = NO_CONTROLS,
    checkpoint: str | Path | None = None,
    every: int | None = None,
) -> Report[Any]:
    """Boot a kernel image on a RISC-V machine with traps, a timer and a serial port, until it is switched off.

        report = punchcard.boot("Image", input=b"root\\nuname -a\\npoweroff\\n")
        report.result.output

    image          a flat kernel image, also packed with gzip, or an ELF file
    memory         bytes of memory, a power of two, also as text. The image is at its beginning, a device tree near its end
    command_line   what the kernel is called with, default: its console is the serial port
    misaligned     "complete": the host completes misaligned loads and stores, as firmware would; "trap": the kernel does
    input          lines to type: bytes or a binary file. Each line is typed when the machine waits for input
    output         where the console's bytes go: a binary file, or a function. The result has the bytes in any case
    checkpoint     file to save the run to, every `every` loops (default: 500,000,000) and at the end: see `resume`

    Other arguments are those of `run`. Returns a `Report`. `report.result.reason` is "halted" if the machine was switched
    off, and "reboot" if it asks for a new start.
    """
    if every is not None and checkpoint is None:
        raise PunchcardError(f"every={every}: checkpoint, the file to write, is missing")
    from punchcard.machines.riscv.boot import DEFAULT_EVERY as BOOT_EVERY
    from punchcard.machines.riscv.boot import begin_boot
    from punchcard.machines.riscv.system.script import typed

    start = begin_boot(image, memory=memory, command_line=command_line, misaligned=misaligned, engine=engine,
                       max_steps=max_steps, check=check, every=BOOT_EVERY if every is None else every)
    return checkpoints.resume(start, checkpoint, input=typed(input), output=output, controls=controls)


@checked
def check(
    program: Any, machine: AnyMachine | None = None, *, engine: str = DEFAULT_ENGINE, max_steps: int | None = 1000,
    **options: Any,
) -> Report[Any]:
    """Run a program, and compare its whole state with the interpreter's after every loop.

    The same as `run(..., check="lockstep")`, but `max_steps` is 1000 by default. Returns a `Report`.
    """
    return run(program, machine, engine=engine, max_steps=max_steps, check="lockstep", **options)
