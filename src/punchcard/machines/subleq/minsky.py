"""Minsky machines: `.minsky` text, and their translation to SUBLEQ, which shows SUBLEQ Turing complete.

The instruction set, as in the paper's appendix on Turing completeness:

    add r           mem[r] = mem[r] + 1, goto the next instruction
    sub r, n        if mem[r] = 0 goto instruction n, else mem[r] = mem[r] - 1 and goto the next
    halt            stop

Registers are declared under `.data` with their initial values. A text without `.data` needs no `.code` either; its
registers are those that it uses, and start at 0.

The paper's translation has every operand pair the wrong way round against its own definition of SUBLEQ. Right is, with cells
c_-1, c_0, c_+1 that hold -1, 0 and 1, a helper cell b, and the translation beginning at instruction j:

    add a       j      subleq c_-1, a, j+1       a = a + 1
    sub a, n    j      subleq b, b, j+1          b = 0
                j+1    subleq a, b, j+3          b = -a; to j+3 when a >= 0
                j+2    subleq c_+1, a, j+5       a < 0: a = a - 1, done
                j+3    subleq c_0, a, n'         a >= 0: to n' when a = 0
                j+4    subleq c_+1, a, j+5       a > 0: a = a - 1, done
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from punchcard.machines.assembler import Operation, Symbol, parse
from punchcard.machines.subleq.isa import HALT, Halt, Instruction, Program, Subleq

ADD = Operation("add", ("cell",))  # mem[r] += 1
SUB = Operation("sub", ("cell", "target"))  # if mem[r] = 0 goto n, else mem[r] -= 1
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
_LENGTHS = {Add: 1, Sub: 5, Halt: 1}


@dataclass(frozen=True)
class MinskyProgram:
    """Instructions, the last of which is a halt, and named registers with their initial values."""

    instructions: tuple[MinskyInstruction, ...]
    registers: tuple[tuple[str, int], ...]
    labels: tuple[tuple[str, int], ...] = ()


def assemble(text: str, source: str = "") -> MinskyProgram:
    """The machine of a `.minsky` text."""
    parsed = parse(text, OPERATIONS, source, declares=True)
    for symbol in parsed.symbols.values():
        if symbol.size != 1 or parsed.values[symbol.address] < 0:
            raise parsed.symbol_tokens[symbol.name].error(
                f"register {symbol.name!r}: a register holds one integer, 0 or more", source)
    made = {ADD: Add, SUB: Sub, HALT: Halt}
    instructions: list[MinskyInstruction] = [made[operation](*operands) for operation, operands, _ in parsed.statements]
    if not isinstance(instructions[-1], Halt) or len(instructions) in parsed.labels.values():
        instructions.append(Halt())
    registers = tuple((s.name, parsed.values[s.address]) for s in parsed.symbols.values())
    return MinskyProgram(tuple(instructions), registers, tuple(parsed.labels.items()))


def translate(machine: MinskyProgram) -> Program:
    """The SUBLEQ program that does what the Minsky machine does."""
    names = [name for name, _ in machine.registers]
    values = [value for _, value in machine.registers]
    helpers = {"c_minus_one": -1, "c_zero": 0, "c_plus_one": 1, "helper": 0}
    minus_one, zero, plus_one, helper = range(len(names), len(names) + len(helpers))
    starts = [0]
    for instruction in machine.instructions:
        starts.append(starts[-1] + _LENGTHS[type(instruction)])
    code: list[Instruction] = []
    for j, instruction in zip(starts, machine.instructions, strict=False):
        if isinstance(instruction, Add):
            code.append(Subleq(minus_one, instruction.register, j + 1))
        elif isinstance(instruction, Sub):
            a = instruction.register
            code += [
                Subleq(helper, helper, j + 1),
                Subleq(a, helper, j + 3),
                Subleq(plus_one, a, j + 5),
                Subleq(zero, a, starts[instruction.target]),
                Subleq(plus_one, a, j + 5),
            ]
        else:
            code.append(Halt())
    for name in helpers:
        names.append(_fresh(name, names))
    symbols = [Symbol(name, address) for address, name in enumerate(names)]
    return Program.create(code, [*values, *helpers.values()], symbols,
                          {name: starts[target] for name, target in machine.labels})


def _fresh(name: str, taken: list[str]) -> str:
    while name in taken:
        name = f"_{name}"
    return name
