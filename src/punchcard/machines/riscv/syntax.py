"""How instructions are written: the operands of each, in the order of the assembler, and a word as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from punchcard.machines.riscv import csrs
from punchcard.machines.riscv.isa import AMO, JALR, LOAD, MASK, REGISTERS, Decoded, Instruction, decode

Operand: TypeAlias = Literal["rd", "rs1", "rs2", "immediate", "address", "place", "target", "upper", "csr"]
"""`address` is an offset and rs1, as in 8(sp); `place` rs1 alone, as in (a0); `target` where a jump goes; `upper` the upper
20 bits; `csr` the name or the number of a control register."""

FENCE = 0x0FF0000F
"""`fence` without operands: everything before, everything after."""
FENCE_TSO = 0x8330000F
PAUSE = 0x0100000F
FENCE_I = 0x0000100F
FENCE_SETS = "iorw"
"""What a fence orders: input, output, reads, writes; bits 3 to 0."""
UNIMPLEMENTED = 0xC0001073
"""`unimp`: a write to the register cycle, which is illegal everywhere."""
ORDERINGS = {".aqrl": 3 << 25, ".aq": 2 << 25, ".rl": 1 << 25}
"""What may follow the name of an atomic instruction, and its bits: what it orders. One hart orders everything."""


def operands_of(instruction: Instruction) -> tuple[Operand, ...]:
    """The operands in the order in which they are written."""
    if instruction.opcode in (LOAD, JALR):
        return ("rd", "address")
    orders: dict[str, tuple[Operand, ...]] = {
        "R": ("rd", "rs1", "rs2"), "I": ("rd", "rs1", "immediate"), "shift": ("rd", "rs1", "immediate"),
        "S": ("rs2", "address"), "B": ("rs1", "rs2", "target"), "U": ("rd", "upper"), "J": ("rd", "target"),
        "atomic": ("rd", "rs2", "place"), "reserve": ("rd", "place"), "csr": ("rd", "csr", "rs1"),
        "csr immediate": ("rd", "csr", "immediate"),
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
    if word == UNIMPLEMENTED:
        return "unimp"
    written = [_operand(operand, decoded, address, name) for operand in operands_of(instruction)]
    return f"{instruction.name}{_ordering(instruction, word)} {', '.join(written)}".rstrip()


def _operand(operand: Operand, decoded: Decoded, address: int | None, name: Callable[[int], str]) -> str:
    immediate = decoded.immediate
    if operand == "address":
        return f"{immediate}({REGISTERS[decoded.rs1]})"
    if operand == "place":
        return f"({REGISTERS[decoded.rs1]})"
    if operand == "csr":
        return csrs.BY_NUMBER[decoded.csr].name if decoded.csr in csrs.BY_NUMBER else f"{decoded.csr:#x}"
    if operand == "upper":
        return f"{(immediate & MASK) >> 12:#x}"
    if operand == "target":
        relative = f". {'-' if immediate < 0 else '+'} {abs(immediate)}"
        return relative if address is None else name((address + immediate) & MASK)
    if operand == "immediate":
        return str(immediate)
    return REGISTERS[{"rd": decoded.rd, "rs1": decoded.rs1, "rs2": decoded.rs2}[operand]]


def _ordering(instruction: Instruction, word: int) -> str:
    bits = word & ORDERINGS[".aqrl"] if instruction.opcode == AMO else 0
    return next((suffix for suffix, value in ORDERINGS.items() if value == bits), "")


def _fence(word: int) -> str:
    plain = {FENCE: "fence", FENCE_TSO: "fence.tso", PAUSE: "pause", FENCE_I: "fence.i"}
    before, after = ("".join(letter for i, letter in enumerate(FENCE_SETS) if word >> last - i & 1) for last in (27, 23))
    if word in plain:
        return plain[word]
    if word & 0xF00FFFFF == 0xF and before and after:
        return f"fence {before}, {after}"
    return f".word {word:#010x}"
