"""What the layers take from the instruction set: which bits decide what, as conjunctions of literals.

A fetched word is reduced to its *kind*, a code of few bits, in the layer that fetches it. Instructions that compute alike
have the same kind: addi, add, lui and auipc are one, since what they add is chosen by the pointers. A bit of the kind is a
bit of the word where some other bits are as given:

    operation     bits 2 to 6 of the word; bits 2 and 5 count only where bit 4 is 0
    function      bits 12 to 14 where bit 2 is 0: all formats but U and J
    alternative   bit 30 of R, and of the shifts by an immediate
    extension     bit 25 of R
    special       of a privileged machine: bits 27 to 31 of atomic instructions; bits 20 and 28 tell ecall, ebreak, mret and
                  wfi apart

Everything here is worked out from `isa.INSTRUCTIONS`; kinds and classes are compared with it in the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from punchcard.machines.riscv import isa
from punchcard.machines.riscv.isa import IMMEDIATES, INSTRUCTIONS, WORD_BITS, Format, Instruction
from punchcard.primitives.literals import Code, Cube, decide

Class = TypeVar("Class", bound=Hashable)
KIND: Mapping[str, tuple[tuple[tuple[int, Cube], ...], ...]] = {
    "operation": (((2, {4: 0}),), ((3, {}),), ((4, {}),), ((5, {4: 0}),), ((6, {}),)),
    "function": (((12, {2: 0}),), ((13, {2: 0}),), ((14, {2: 0}),)),
    "alternative": (((30, {4: 1, 2: 0, 5: 1}), (30, {4: 1, 2: 0, 5: 0, 12: 1, 13: 0})),),
    "extension": (((25, {4: 1, 2: 0, 5: 1}),),),
}
"""For each bit of the kind: bits of the word, and what other bits must be for them to count. One of them counts at most."""
ATOMIC: Cube = {3: 1, 5: 1, 6: 0}
"""What tells the opcode of atomic instructions from all others."""
PLAIN_SYSTEM: Cube = {4: 1, 6: 1, 12: 0, 13: 0, 14: 0}
"""What tells ecall, ebreak, mret and wfi from all others."""
PRIVILEGED_KIND: Mapping[str, tuple[tuple[tuple[int, Cube], ...], ...]] = {
    **KIND,
    **{name: tuple(tuple((place, {**cube, 6: 0}) for place, cube in bit) for bit in KIND[name])
       for name in ("alternative", "extension")},
    "special": (((27, ATOMIC), (20, PLAIN_SYSTEM)), ((28, ATOMIC), (28, PLAIN_SYSTEM)),
                *(((place, ATOMIC),) for place in (29, 30, 31))),
}
"""The same where there are control registers: their numbers are in bits 20 to 31, which do not count."""
OPCODE = range(2, 7)
"""The bits of the word that tell opcodes apart; the two below are 1 in all of them."""
ARITHMETIC = (isa.OP, isa.OP_IMM, isa.LUI, isa.AUIPC)


@dataclass(frozen=True)
class Decoder:
    """Which instructions a machine has, with the M extension or without, with traps or without."""

    multiply: bool = False
    privileged: bool = False

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        return tuple(i for i in INSTRUCTIONS
                     if (self.multiply or i.extension != "M") and (self.privileged or not i.privileged))

    @property
    def parts(self) -> dict[str, int]:
        """The parts of a kind, and how many bits each has."""
        return {name: len(bits) for name, bits in self._table.items() if self.multiply or name != "extension"}

    @property
    def kind_bits(self) -> tuple[tuple[tuple[int, Cube], ...], ...]:
        return tuple(bit for name in self.parts for bit in self._table[name])

    @property
    def _table(self) -> Mapping[str, tuple[tuple[tuple[int, Cube], ...], ...]]:
        return PRIVILEGED_KIND if self.privileged else KIND

    @property
    def extension_bits(self) -> Cube:
        """Bits of the word by which the layers see the M extension."""
        ((place, cube),), = self._table["extension"]
        return {**cube, place: 1}

    def kind(self, word: int) -> Code:
        """The kind of a word, in plain Python."""
        def counts(source: int, cube: Cube) -> bool:
            return bool(word >> source & 1) and all(word >> place & 1 == value for place, value in cube.items())

        return tuple(int(any(counts(*term) for term in bit)) for bit in self.kind_bits)

    def classes(self, sort: Callable[[Instruction], Class | None]) -> dict[Class, list[Cube]]:
        """Conjunctions over the kind's bits, by class; instructions without a class may be in any."""
        found: dict[Code, Class] = {}
        for instruction in self.instructions:
            name = sort(instruction)
            if name is not None and found.setdefault(self.kind(instruction.match), name) != name:
                raise ValueError(f"{instruction.name} is {name}, another of its kind {found[self.kind(instruction.match)]}")
        return decide(found)

    def opcodes(self, sort: Callable[[Instruction], Class | None]) -> dict[Class, list[Cube]]:
        """Conjunctions over the word's own bits, by class, where the opcode alone decides it."""
        found = {tuple(i.opcode >> place & 1 for place in OPCODE): name for i in self.instructions
                 if (name := sort(i)) is not None}
        return {name: [{OPCODE[place]: value for place, value in cube.items()} for cube in cubes]
                for name, cubes in decide(found).items()}


def fixed_bits(instruction: Instruction) -> Cube:
    """The bits of the word that make it this instruction."""
    return {place: instruction.match >> place & 1 for place in range(WORD_BITS) if instruction.mask >> place & 1}


def source_of(instruction: Instruction, operand: Literal["x", "y"]) -> Literal["register", "own", "zero"] | None:
    """Where an operand of the arithmetic unit comes from, or None if any word will do.

    x is rs1, of lui 0, of auipc the program counter, which is the scratchpad's own. y is rs2, or the immediate.
    """
    if operand == "x" and instruction.opcode == isa.LUI:
        return "zero"
    if instruction.opcode in (isa.LUI, isa.AUIPC) or (operand == "y" and instruction.opcode == isa.OP_IMM):
        return "own"
    return "register" if {"x": "rs1", "y": "rs2"}[operand] in instruction.uses else None


def immediate_sources(format: Format) -> tuple[int | None, ...]:
    """For each bit of an immediate, the bit of the word that it is, or None if it is 0. The last piece has the sign."""
    sources: list[int | None] = [None] * WORD_BITS
    pieces: Iterable[isa.Piece] = IMMEDIATES.get("I" if format == "shift" else format, ())
    for at, width, low in pieces:
        for k in range(width):
            sources[low + k] = at + k
        if at + width == WORD_BITS:
            sources[low + width :] = [WORD_BITS - 1] * (WORD_BITS - low - width)
    return tuple(sources)
