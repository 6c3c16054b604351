"""The instruction set of Minsky machines, as in the paper's appendix on Turing completeness.

    add r           mem[r] = mem[r] + 1, goto the next instruction
    sub r, n        if mem[r] = 0 goto instruction n, else mem[r] = mem[r] - 1 and goto the next
    halt            stop
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from punchcard.machines.assembler import Operation
from punchcard.machines.subleq.isa import HALT, Halt

ADD = Operation("add", ("cell",), about="mem[r] += 1")
SUB = Operation("sub", ("cell", "target"), about="if mem[r] = 0 goto n, else mem[r] -= 1")
OPERATIONS = {operation.mnemonic: operation for operation in (ADD, SUB, HALT)}


@dataclass(frozen=True)
class Add:
    """Increment a register."""

    register: int


@dataclass(frozen=True)
class Sub:
    """Decrement a register, or jump when it is 0."""

    register: int
    target: int


MinskyInstruction: TypeAlias = Add | Sub | Halt


@dataclass(frozen=True)
class MinskyProgram:
    """Instructions, the last of which is a halt, and named registers with their initial values."""

    instructions: tuple[MinskyInstruction, ...]
    registers: tuple[tuple[str, int], ...]
    labels: tuple[tuple[str, int], ...] = ()
