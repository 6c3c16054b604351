"""How instructions are written: the operands of each, in the order of the assembler, and a word as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from punchcard.machines.riscv.isa import JALR, LOAD, MASK, REGISTERS, Decoded, Instruction, decode

Operand: TypeAlias = Literal["rd", "rs1", "rs2", "immediate", "address", "target", "upper"]
"""`address` is an offset and rs1, as in 8(sp); `target` where a jump goes; `upper` the upper 20 bits."""

FENCE = 0x0FF0000F
"""`fence` without operands: everything before, everything after."""
FENCE_TSO = 0x8330000F
PAUSE = 0x0100000F
FENCE_I = 0x0000100F
FENCE_SETS = "iorw"
"""What a fence orders: input, output, reads, writes; bits 3 to 0."""


def operands_of(instruction: Instruction) -> tuple[Operand, ...]:
    """The operands in the order in which they are written."""
    if instruction.opcode in (LOAD, JALR):
        return ("rd", "address")
    orders: dict[str, tuple[Operand, ...]] = {
        "R": ("rd", "rs1", "rs2"), "I": ("rd", "rs1", "immediate"), "shift": ("rd", "rs1", "immediate"),
        "S": ("rs2", "address"), "B": ("rs1", "rs2", "target"), "U": ("rd", "upper"), "J": ("rd", "target"),
    }
    return orders.get(instruction.format, ())


def text_of(word: int, address: int | None = None, name: Callable[[int], str] = hex) -> str:
    """A word as assembly text that gives the same word at that address; `.word` where it is not an instruction.

    Where the address is known, a jump's target is written with `name`; else it counts from the instruction.
    """
    decoded = decode(word)
    if decoded is None:
        return f".word {word:#010x}"
    instruction = decoded.instruction
    if instruction.format == "fence":
        return _fence(word)
    written = [_operand(operand, decoded, address, name) for operand in operands_of(instruction)]
    return f"{instruction.name} {', '.join(written)}".rstrip()


def _operand(operand: Operand, decoded: Decoded, address: int | None, name: Callable[[int], str]) -> str:
    immediate = decoded.immediate
    if operand == "address":
        return f"{immediate}({REGISTERS[decoded.rs1]})"
    if operand == "upper":
        return f"{(immediate & MASK) >> 12:#x}"
    if operand == "target":
        relative = f". {'-' if immediate < 0 else '+'} {abs(immediate)}"
        return relative if address is None else name((address + immediate) & MASK)
    if operand == "immediate":
        return str(immediate)
    return REGISTERS[{"rd": decoded.rd, "rs1": decoded.rs1, "rs2": decoded.rs2}[operand]]


def _fence(word: int) -> str:
    plain = {FENCE: "fence", FENCE_TSO: "fence.tso", PAUSE: "pause", FENCE_I: "fence.i"}
    before, after = ("".join(letter for i, letter in enumerate(FENCE_SETS) if word >> last - i & 1) for last in (27, 23))
    if word in plain:
        return plain[word]
    if word & 0xF00FFFFF == 0xF and before and after:
        return f"fence {before}, {after}"
    return f".word {word:#010x}"
