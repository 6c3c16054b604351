"""Layer A of the two-layer design: the next program counter, the address, the operands, and what may be done."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from punchcard.card.layout import Layout
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.base import RiscvSizes
from punchcard.machines.riscv.designs.execute import Execute
from punchcard.machines.riscv.designs.writing import appear, rewrite
from punchcard.machines.riscv.isa import WORD_BITS, WORD_BYTES, Instruction
from punchcard.primitives.bits import number
from punchcard.primitives.gated_words import equal_where, less_where, sum_where
from punchcard.primitives.literals import absent, bits_where, conjunction, step_where
from punchcard.transformer.build import Part
from punchcard.transformer.expression import Expression, rows, stack

FLAGS = ("lawful", "aligned", "reached", "stalls")


class SignedBranch(NamedTuple):
    """A branch: by equality, or with signs; and whether it is taken where the comparison does not hold."""

    equality: bool
    signed: bool
    turned: bool


BRANCHES = {
    "beq": SignedBranch(True, False, False), "bne": SignedBranch(True, False, True),
    "blt": SignedBranch(False, True, False), "bge": SignedBranch(False, True, True),
    "bltu": SignedBranch(False, False, False), "bgeu": SignedBranch(False, False, True),
}


def way_of(instruction: Instruction) -> SignedBranch | str:
    """Where an instruction goes on."""
    return BRANCHES.get(instruction.name) or {isa.JAL: "jump", isa.JALR: "register jump"}.get(instruction.opcode, "on")


def as_compared(word: Expression, signed: bool) -> Expression:
    """Two's complement is compared as unsigned numbers are, with the highest bit turned."""
    return stack(word[:-1], -word[-1]) if signed else word


class Choose(Execute):
    """The formulas of layer A, over the rows of a layout."""

    def __init__(self, sizes: RiscvSizes, layout: Layout) -> None:
        super().__init__(sizes, layout)
        self.following, self.target = rows(layout, "following"), rows(layout, "target")

    @property
    def part(self) -> Part:
        layout, one, low = self.layout, self.one, slice(0, self.sizes.pointer_bits + 2)
        flags = {"lawful": self._lawful(), "aligned": one - self._misaligned() - self._misses(), "reached": self._reached(),
                 "stalls": self._stalls()}
        return (
            rewrite(rows(layout, "x"), self._first())
            + rewrite(rows(layout, "y"), self._second())
            + appear(rows(layout, "reference"), sum_where(self.x[low], self.immediate[low], 0.0 * one, 0.0 * one, one), one)
            + appear(rows(layout, "next"), self._next(), one)
            + appear(rows(layout, "flag"), stack(*(flags[name] for name in FLAGS)), one)
        )

    # The operands of the arithmetic unit

    def _first(self) -> Expression:
        """rs1; of lui 0, of auipc the program counter."""
        def sort(instruction: Instruction) -> str | None:
            other = "register" if "rs1" in instruction.uses else None
            return {isa.LUI: "zero", isa.AUIPC: "own"}.get(instruction.opcode, other)

        return self._operand(sort, self.x, self.counter)

    def _second(self) -> Expression:
        """rs2, or the immediate where the arithmetic unit uses it."""
        def sort(instruction: Instruction) -> str | None:
            if instruction.opcode in (isa.OP_IMM, isa.LUI, isa.AUIPC):
                return "own"
            return "register" if "rs2" in instruction.uses else None

        return self._operand(sort, self.y, self.immediate)

    def _operand(self, sort: Callable[[Instruction], str | None], register: Expression, own: Expression) -> Expression:
        total = 0.0 * register
        for name, cubes in self.sizes.decoder.opcodes(sort).items():
            for cube in cubes if name != "zero" else ():
                closed = absent(self.word, cube, self.one)
                total = total + bits_where(own if name == "own" else register, closed, self.one)
        return total

    # The next program counter

    def _next(self) -> Expression:
        one, total = self.one, 0.0 * self.following
        for way, closed in self.gates.each(way_of):
            if isinstance(way, SignedBranch):
                total = total + self._where(way, True, self.target, closed) + self._where(way, False, self.following, closed)
            elif way == "register jump":
                total = total + stack(0.0 * one, sum_where(self.x, self.immediate, 0.0 * one, closed, one)[1:])
            else:
                total = total + bits_where(self.target if way == "jump" else self.following, closed, one)
        return total

    def _where(self, branch: SignedBranch, taken: bool, bits: Expression, closed: Expression) -> Expression:
        """The bits where a branch is taken, or where it is not, and nothing is absent; else 0."""
        one, x, y = self.one, as_compared(self.x, branch.signed), as_compared(self.y, branch.signed)
        here = closed + 0.5 * (one - bits)
        holds = equal_where(x, y, here, one) if branch.equality else less_where(x, y, one, here, one)
        return holds if branch.turned != taken else bits_where(bits, closed, one) - holds

    # What may be done

    def _alignment(self, instruction: Instruction) -> Hashable:
        """Branches have a class of their own, so that no word is misaligned in two ways at once, whatever it is."""
        return BRANCHES.get(instruction.name) or super()._alignment(instruction)

    def _misses(self) -> Expression:
        """1 where a branch is taken to an address that is not a multiple of four: that is bit 1 of its immediate."""
        total = 0.0 * self.one
        for way, closed in self.gates.each(self._alignment):
            if isinstance(way, SignedBranch):
                total = total + self._where(way, True, self.immediate[1], closed)
        return total

    def _reached(self) -> Expression:
        """1 where the address of a load or a store is in the memory; for all other instructions 1.

        The sum of x and the immediate is the address, or 2^32 more.
        """
        one, size = self.one, 1 << WORD_BITS
        address, total = number(self.x, one) + number(self.immediate, one), 0.0 * one
        for access, closed in self.gates.each(lambda i: i.access_bytes > 0):
            if not access:
                total = total + conjunction(closed, one)
                continue
            for over in (0, size):
                total = total + step_where(address - (over + self.sizes.base) * one, closed, one, 2 * size)
                total = total - step_where(address - (over + self.sizes.end) * one, closed, one, 2 * size)
        return total

    def _stalls(self) -> Expression:
        """1 where the instruction stores to the word of the next one, which is then pc + 4.

        The low bits of x and of the immediate sum up to those of pc + 4, and at most 3 more, or to 2^(L + 2) more than that.
        """
        one, size = self.one, 4 << self.sizes.pointer_bits
        low, total = slice(0, self.sizes.pointer_bits + 2), 0.0 * self.one
        ahead = number(self.x[low], one) + number(self.immediate[low], one) - number(self.following[low], one)
        for stores, closed in self.gates.each(lambda i: i.writes_memory):
            for first in (0, size) if stores else ():
                total = total + step_where(ahead - first * one, closed, one, 2 * size)
                total = total - step_where(ahead - (first + WORD_BYTES) * one, closed, one, 2 * size)
        return total
