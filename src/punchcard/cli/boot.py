"""The command `boot`: a kernel on a looped transformer, with this terminal as its console.

The console's bytes go to standard output as they come, remarks to standard error. Exit status: 0 when the machine was
switched off, or left by Ctrl-A x; 1 when the run ended otherwise; 2 for bad input.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from punchcard.budget import format_bytes
from punchcard.cli.keyboard import KEYS, Keyboard, standard_input
from punchcard.cli.options import checkpoint_option, given_flags, json_option, memory_option, resume_option, stats_option
from punchcard.cli.terminal import check_run_files, handling, input_file, interruptible, remark
from punchcard.errors import PunchcardError
from punchcard.machines.streams import Input, writer

if TYPE_CHECKING:
    from punchcard.machines.checkpoint import Checkpoint
    from punchcard.machines.result import Report
    from punchcard.machines.riscv.system.bus import Misaligned


@click.command()
@click.argument("image", type=click.Path(path_type=Path), required=False)
@click.option("--memory", metavar="SIZE", default="16M", show_default=True,
              help="Bytes of the machine's memory, a power of two, such as 16M.")
@click.option("--command-line", metavar="TEXT", help="What the kernel is called with.  [default: its console is ours]")
@click.option("--input", "input_", metavar="FILE",
              help="Lines to type, each when the machine waits for input.  [default: standard input]")
@click.option("--misaligned", type=click.Choice(["complete", "trap"]), default="complete", show_default=True,
              help="Misaligned loads and stores: the host completes them, or the kernel gets a trap.")
@click.option("--max-steps", type=click.IntRange(0), help="Stop after this many instructions.")
@click.option("--engine", metavar="NAME", help="The engine that applies the model.  [default: auto]")
@checkpoint_option
@click.option("--every", type=click.IntRange(1), metavar="K", help="Loops between two checkpoints.  [default: 500000000]")
@resume_option
@memory_option
@json_option
@stats_option
def boot(
    image: Path | None, memory: str, command_line: str | None, input_: str | None, misaligned: Misaligned,
    max_steps: int | None, engine: str | None, checkpoint: str | None, every: int | None, resume: str | None, as_json: bool,
    stats: str | None,
) -> int:
    """Boot a kernel on a looped transformer: RV32IMA with machine and user mode, a timer and a serial port.

    IMAGE is a flat kernel image, also packed with gzip, or an ELF file. With --resume no IMAGE is needed. This terminal is
    the machine's console; Ctrl-A x leaves it.
    """
    check_run_files(checkpoint, resume, stats, image, input_)
    saved = _saved(resume) if resume is not None else _begun(image, memory, command_line, misaligned, every, checkpoint)
    checkpoint = checkpoint or resume
    saved = saved.planned(engine=engine, max_steps=max_steps, every=every)
    sizes = saved.machine.sizes
    remark(f"{title_of(image, resume)}: a looped transformer of {len(saved.machine.weights.layers)} layers and "
           f"{saved.machine.layout.columns:,} columns, {format_bytes(sizes.end - sizes.base)} of memory")
    forgets = checkpoint is None and stats is None and not as_json
    report, has_left = _run(saved, checkpoint, input_=input_, silent=as_json, forgets=forgets)

    from punchcard.cli import display

    status = display.show_report(saved.program, saved.machine, report, as_json=as_json, stats=stats, checkpoint=checkpoint,
                                 name=title_of(image, resume))
    return 0 if has_left else status


def title_of(image: Path | None, resume: str | None) -> str:
    """What the command is about, for its remarks."""
    return str(image or resume)


def _begun(
    image: Path | None, memory: str, command_line: str | None, misaligned: Misaligned, every: int | None,
    checkpoint: str | None,
) -> Checkpoint:
    """The run of an image before its first loop."""
    if image is None:
        raise click.UsageError("Missing argument 'IMAGE': a kernel image, or --resume with a checkpoint.")
    if every is not None and checkpoint is None:
        raise PunchcardError("--every needs --checkpoint FILE")
    from punchcard.machines.riscv.boot import begin_boot

    return begin_boot(image, memory=memory, command_line=command_line, misaligned=misaligned)


def _saved(path: str) -> Checkpoint:
    """The run in a checkpoint, whose image and machine are what they are."""
    if flags := given_flags("image", "memory", "command_line", "misaligned"):
        name = "IMAGE" if flags[0] == "FILE" else flags[0]
        raise PunchcardError(f"{name} cannot be used with --resume: the checkpoint has the image and the machine")
    from punchcard.machines.checkpoint import load

    saved = load(path)
    if not saved.machine.polls_input:
        raise PunchcardError(f"{path!r} is a run of {saved.program!r}, not of a kernel: use punchcard run --resume")
    return saved


def _run(saved: Checkpoint, checkpoint: str | None, *, input_: str | None, silent: bool,
         forgets: bool) -> tuple[Report[Any], bool]:
    """Make the run, from the beginning again where the machine asks for that; whether its person has left."""
    from punchcard.cli.console import CompileNote, Screen, raw_terminal
    from punchcard.engines import Controls
    from punchcard.machines.checkpoint import begin, resume
    from punchcard.machines.riscv.system.script import Script

    descriptor = standard_input() if input_ is None else None
    is_terminal = descriptor is not None and os.isatty(descriptor)
    with ExitStack() as stack:
        keyboard: Keyboard | None = None

        def stop(*signal_and_frame: object) -> None:
            """As Ctrl-C: after the current loop, and what was done is kept."""
            os.kill(os.getpid(), signal.SIGINT)

        if is_terminal:
            assert descriptor is not None
            stack.enter_context(raw_terminal(descriptor))
            remark(KEYS)
            if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
                stack.enter_context(handling(stop, signal.SIGHUP))
        interrupted, _ = stack.enter_context(interruptible(keeps=checkpoint is not None))
        source: Input
        if input_ is None:
            keyboard = stack.enter_context(Keyboard(
                descriptor, has_keys=is_terminal, leave=stop, show=remark, stops=interrupted))
            source = keyboard if is_terminal else Script(keyboard)
        else:
            file = stack.enter_context(input_file(input_))
            source = Script(file) if file is not None else b""
        note = stack.enter_context(CompileNote(saved.machine.engine_cache.count))
        console: Any = sys.stdout.buffer
        if sys.stdout.isatty() and not silent:
            console = Screen(sys.stdout.buffer, stop, before=note.clear)
            stack.callback(console.end_line)
        output = writer(None if silent else console, forgets=forgets)
        controls = Controls(interrupted=interrupted)
        report = resume(saved, checkpoint, input=source, output=output, controls=controls)
        while report.result.reason == "reboot":
            output.flush()
            plan = saved.plan
            left = None if plan.max_steps is None else max(0, plan.max_steps - report.result.steps)
            saved = replace(begin(saved.program, saved.machine), plan=replace(plan, max_steps=left))
            report = resume(saved, checkpoint, input=source, output=output, controls=controls)
        return report, keyboard is not None and keyboard.has_left
