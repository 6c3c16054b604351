"""Layer B of the two-layer design: the result, where it goes, and what was decoded of the fetched word.

A float64 holds sums of 32 bits at once, so every sum is one formula.
"""

from __future__ import annotations

from punchcard.card.layout import Layout
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.base import PENDING, RiscvSizes
from punchcard.machines.riscv.designs.choose import as_compared
from punchcard.machines.riscv.designs.decode import ARITHMETIC, immediate_sources
from punchcard.machines.riscv.designs.execute import BITWISE, arithmetic
from punchcard.machines.riscv.designs.fetch import Fetch
from punchcard.machines.riscv.designs.finish import ResultPlace
from punchcard.machines.riscv.designs.formulas import rewrite, vanish
from punchcard.machines.riscv.isa import STALL, WORD_BITS, WORD_BYTES, Instruction, operation_of
from punchcard.primitives.gated_words import left_where, less_where, offset_where, right_where, sign_where, sum_where
from punchcard.primitives.literals import Cube, as_numbers, bits_where, conjunction
from punchcard.primitives.memory import clip_where
from punchcard.transformer.build import Part, assign, clear
from punchcard.transformer.expression import Expression, stack

PASSING = ("x", "y", "reference", "next", "flag", "brought")


class Complete(ResultPlace):
    """The result and where it goes."""

    def __init__(self, sizes: RiscvSizes, layout: Layout) -> None:
        super().__init__(sizes, layout)
        self.reference = self.rows("reference")

    @property
    def part(self) -> Part:
        return (
            rewrite(self.rows("value"), self._result())
            + rewrite(self.rows(PENDING), self._goal())
            + rewrite(self.rows("event.fault"), self.one - conjunction(self._refusal(), self.one))
        )

    def _result(self) -> Expression:
        """The word that will be stored."""
        def sort(instruction: Instruction) -> str | None:
            if instruction.opcode in (isa.JAL, isa.JALR):
                return "link"
            if instruction.access_bytes:
                return instruction.name
            operation = arithmetic(instruction)
            return {"compare": operation_of(instruction), "sra": "srl"}.get(operation, operation) if operation else None

        def word(name: str, closed: Expression) -> Expression:
            if name == "link":
                return bits_where(self.rows("following"), closed, self.one)
            if isa.BY_NAME[name].opcode in ARITHMETIC:
                return self._arithmetic(name, closed)
            return self._moved(isa.BY_NAME[name], closed)

        # What comes in from above in an arithmetic shift, which is else a shift to the right like the other.
        sign = self.total(arithmetic, lambda name, closed: (
            sign_where(self.x, self.y[:5], closed, self.one) if name == "sra" else None))
        return sign + self.total(sort, word)

    def _arithmetic(self, name: str, closed: Expression) -> Expression:
        """One operation of the arithmetic unit."""
        x, y, one, amount = self.x, self.y, self.one, self.y[:5]
        if name in BITWISE:
            return BITWISE[name](x, y, closed, one)
        if name in ("add", "sub"):
            return sum_where(x, y, 0.0 * one, closed, one) if name == "add" else sum_where(x, -y, one, closed, one)
        if name in ("slt", "sltu"):
            less = less_where(as_compared(x, name == "slt"), as_compared(y, name == "slt"), one, closed, one)
            return stack(less, *[0.0 * one] * (WORD_BITS - 1))
        return left_where(x, amount, closed, one) if name == "sll" else right_where(x, amount, closed, one)


class Decode(Fetch):
    """What is made of the fetched word, and the program counter."""

    @property
    def part(self) -> Part:
        one, stalled = self.one, self._stalled
        jump = [float(STALL >> i & 1) * stalled for i in range(WORD_BITS)]
        kind = [float(bit) * stalled for bit in self.sizes.decoder.kind(STALL)]
        part = (
            clip_where(1 - one, self.rows("memory"), self.gate)
            + rewrite(self.word, self._copied(self.fetched, {}) + stack(*jump))
            + rewrite(self.kind, self._kind() + stack(*kind))
            + rewrite(self.immediate, self._immediate())
            + self._counted()
            + rewrite(self.rows("following"), self._following())
            + rewrite(self.rows("target"), self._target() + bits_where(self.next, one - stalled, one))
            + rewrite(self.rows("event.call", "event.fetch"), stack(self._call(), self._astray()))
            + clear(self.fetched)
        )
        return sum((vanish(self.rows(name), one) for name in PASSING), part)

    @property
    def _stalled(self) -> Expression:
        """1 if a jump to itself is taken in place of the fetched word."""
        return as_numbers(self.rows("flag.stalls"), self.one)

    def _closed(self, cube: Cube) -> Expression:
        return super()._closed(cube) + self._stalled

    def _counted(self) -> Part:
        """The next program counter; where the instruction is refused, the same."""
        one, counter, refusal = self.one, self.counter, self._refusal()
        return assign(counter, counter + 2 * bits_where(self.next, refusal, one) - 2 * bits_where(counter, refusal, one))

    def _following(self) -> Expression:
        """The next program counter + 4."""
        return offset_where(self.next, WORD_BYTES * self.one, WORD_BYTES, WORD_BYTES, 0.0 * self.one, self.one)

    def _target(self) -> Expression:
        """The next program counter plus the immediate of a jump or of a branch."""
        def sort(instruction: Instruction) -> tuple[int | None, ...] | None:
            return immediate_sources(instruction.format) if instruction.format in ("J", "B") else None

        total = 0.0 * self.next
        for sources, cubes in self.sizes.decoder.opcodes(sort).items():
            immediate = stack(*(-self.one if source is None else self.fetched[source] for source in sources))
            for cube in cubes:
                total = total + sum_where(self.next, immediate, 0.0 * self.one, self._closed(cube), self.one)
        return total
