"""Layer A of the two-layer design: the next program counter, the address, the operands, and what may be done."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal

from punchcard.card.layout import Layout
from punchcard.machines.riscv.designs.base import RiscvSizes
from punchcard.machines.riscv.designs.decode import source_of
from punchcard.machines.riscv.designs.execute import Checks
from punchcard.machines.riscv.designs.formulas import BRANCHES, Branch, NextCounter, appear, rewrite
from punchcard.machines.riscv.isa import WORD_BITS, WORD_BYTES, Instruction
from punchcard.primitives.bits import number
from punchcard.primitives.gated_words import equal_where, less_where, sum_where
from punchcard.primitives.literals import absent, bits_where, conjunction, step_where
from punchcard.transformer.build import Part
from punchcard.transformer.expression import Expression, stack


def as_compared(word: Expression, signed: bool) -> Expression:
    """Two's complement is compared as unsigned numbers are, with the highest bit turned."""
    return stack(word[:-1], -word[-1]) if signed else word


class Choose(NextCounter, Checks):
    """The formulas of layer A."""

    def __init__(self, sizes: RiscvSizes, layout: Layout) -> None:
        super().__init__(sizes, layout)
        self.following, self.target = self.rows("following"), self.rows("target")

    @property
    def part(self) -> Part:
        one, low = self.one, slice(0, self.sizes.pointer_bits + 2)
        misses = self._misses(self._alignment, 0.0 * one)
        flags = {"lawful": self._lawful(), "aligned": one - self._misaligned() - misses, "reached": self._reached(),
                 "stalls": self._stalls()}
        return (
            rewrite(self.x, self._operand("x", self.x, self.counter))
            + rewrite(self.y, self._operand("y", self.y, self.immediate))
            + appear(self.rows("reference"), sum_where(self.x[low], self.immediate[low], 0.0 * one, 0.0 * one, one), one)
            + appear(self.rows("next"), self._next(), one)
            + appear(self.rows(*(f"flag.{name}" for name in flags)), stack(*flags.values()), one)
        )

    def _operand(self, operand: Literal["x", "y"], register: Expression, own: Expression) -> Expression:
        """An operand of the arithmetic unit."""
        classes = self.sizes.decoder.opcodes(lambda i: source_of(i, operand))
        return sum((bits_where(own if source == "own" else register, absent(self.word, cube, self.one), self.one)
                    for source, cubes in classes.items() for cube in cubes if source != "zero"), 0.0 * register)

    # The next program counter

    def _holds(self, branch: Branch, closed: Expression) -> Expression:
        one, x, y = self.one, as_compared(self.x, branch.signed), as_compared(self.y, branch.signed)
        return equal_where(x, y, closed, one) if branch.equality else less_where(x, y, one, closed, one)

    def _reference(self, closed: Expression) -> Expression:
        return stack(0.0 * self.one, sum_where(self.x, self.immediate, 0.0 * self.one, closed, self.one)[1:])

    # What may be done

    def _alignment(self, instruction: Instruction) -> Hashable:
        """Branches have a class of their own, so that no word is misaligned in two ways at once, whatever it is."""
        return BRANCHES.get(instruction.name) or super()._alignment(instruction)

    def _reached(self) -> Expression:
        """1 where the address of a load or a store is in the memory; for all other instructions 1.

        The sum of x and the immediate is the address, or 2^32 more.
        """
        one, size, address = self.one, 1 << WORD_BITS, number(self.x, self.one) + number(self.immediate, self.one)

        def inside(access: bool, closed: Expression) -> Expression:
            ends = [(sign, over + end) for over in (0, size) for sign, end in ((1, self.sizes.base), (-1, self.sizes.end))]
            return conjunction(closed, one) if not access else sum(
                (sign * step_where(address - end * one, closed, one, 2 * size) for sign, end in ends), 0.0 * one)

        return self.total(lambda i: i.access_bytes > 0, inside)

    def _stalls(self) -> Expression:
        """1 where the instruction stores to the word of the next one, which is then pc + 4.

        The low bits of x and of the immediate sum up to those of pc + 4, and at most 3 more, or to 2^(L + 2) more than that.
        """
        one, size = self.one, 4 << self.sizes.pointer_bits
        low, total = slice(0, self.sizes.pointer_bits + 2), 0.0 * self.one
        ahead = number(self.x[low], one) + number(self.immediate[low], one) - number(self.following[low], one)
        for closed in self.open_for(lambda i: i.writes_memory):
            for first in (0, size):
                total = total + step_where(ahead - first * one, closed, one, 2 * size)
                total = total - step_where(ahead - (first + WORD_BYTES) * one, closed, one, 2 * size)
        return total
