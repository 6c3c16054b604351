"""A kernel image on a machine of its own: the run before its first loop."""

from __future__ import annotations

from pathlib import Path

from punchcard.machines.checkpoint import Checkpoint, begin
from punchcard.machines.comparison import Check
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.system.bus import Misaligned
from punchcard.machines.riscv.system.image import load_image
from punchcard.machines.running import DEFAULT_ENGINE

DEFAULT_EVERY = 500_000_000
"""Loops between two checkpoints: about half a minute. Each is as large as the memory, and more."""


def begin_boot(
    image: str | Path, *, memory: int | str = "16M", command_line: str | None = None, misaligned: Misaligned = "complete",
    engine: str = DEFAULT_ENGINE, max_steps: int | None = None, check: bool | Check | None = None,
    every: int = DEFAULT_EVERY,
) -> Checkpoint:
    """See `punchcard.boot`. `resume` of a checkpoint makes the loops."""
    program, words = load_image(image, memory=memory, command_line=command_line, misaligned=misaligned)
    machine = RiscvMachine(memory=words, base=program.base, multiply=True, privileged=True)
    return begin(program, machine, engine=engine, max_steps=max_steps, check=check, every=every)
