"""Whether a program needs products and quotients: as its file says, or by the instructions that it has."""

from __future__ import annotations

import numpy as np

from punchcard.machines.riscv.isa import INSTRUCTIONS, WORD_BYTES
from punchcard.machines.riscv.program import RiscvProgram, Segment


def multiplies(program: RiscvProgram) -> bool:
    """Whether to build a machine with the M extension for it. Data that looks like such an instruction counts as one."""
    if program.multiply is not None:
        return program.multiply
    return any(map(_holds_one, program.segments))


def _holds_one(segment: Segment) -> bool:
    first = -segment.address % WORD_BYTES
    words = np.frombuffer(segment.data[first:], dtype="<u4", count=max(0, len(segment.data) - first) // WORD_BYTES)
    return any(bool(np.any(words & one.mask == one.match)) for one in INSTRUCTIONS if one.extension == "M")
