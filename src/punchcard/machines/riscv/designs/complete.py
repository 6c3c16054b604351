"""Layer B of the two-layer design: the result, where it goes, and what was decoded of the fetched word.

A float64 holds sums of 32 bits at once, so every sum is one formula.
"""

from __future__ import annotations

from punchcard.card.layout import Layout
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.base import RiscvSizes
from punchcard.machines.riscv.designs.choose import as_compared
from punchcard.machines.riscv.designs.decode import ARITHMETIC, immediate_sources
from punchcard.machines.riscv.designs.execute import BITWISE, arithmetic
from punchcard.machines.riscv.designs.fetch import Fetch
from punchcard.machines.riscv.designs.finish import Finish
from punchcard.machines.riscv.designs.pending import PENDING
from punchcard.machines.riscv.designs.writing import Gates, rewrite, vanish
from punchcard.machines.riscv.isa import STALL, WORD_BITS, WORD_BYTES, Instruction, operation_of
from punchcard.primitives.gated_words import left_where, less_where, offset_where, right_where, sign_where, sum_where
from punchcard.primitives.literals import Cube, absent, as_numbers, bits_where, conjunction
from punchcard.primitives.memory import clip_where
from punchcard.transformer.build import Part, assign, clear
from punchcard.transformer.expression import Expression, rows, stack

PASSING = ("x", "y", "reference", "next", "flag", "brought")


class Complete(Finish):
    """The result and where it goes, over the rows of a layout."""

    def __init__(self, sizes: RiscvSizes, layout: Layout) -> None:
        self.sizes, self.layout = sizes, layout
        self.one, self.gates = rows(layout, "inside"), Gates(sizes, layout)
        self.x, self.y, self.value, self.immediate, self.brought, self.reference, self.following = (
            rows(layout, name) for name in ("x", "y", "value", "immediate", "brought", "reference", "following"))

    @property
    def part(self) -> Part:
        refused = self.one - conjunction(self._refusal(), self.one)
        return (
            rewrite(rows(self.layout, "value"), self._result())
            + rewrite(rows(self.layout, PENDING), self._goal())
            + rewrite(rows(self.layout, "event.fault"), refused)
        )

    def _result(self) -> Expression:
        """The word that will be stored."""
        one, total = self.one, self._sign()

        def sort(instruction: Instruction) -> str | None:
            if instruction.opcode in (isa.JAL, isa.JALR):
                return "link"
            if instruction.access_bytes:
                return instruction.name
            operation = arithmetic(instruction)
            return {"compare": operation_of(instruction), "sra": "srl"}.get(operation, operation) if operation else None

        for name, closed in self.gates.each(sort):
            if name == "link":
                total = total + bits_where(self.following, closed, one)
            elif isa.BY_NAME[name].opcode in ARITHMETIC:
                total = total + self._arithmetic(name, closed)
            else:
                total = total + self._moved(isa.BY_NAME[name], closed)
        return total

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
        if name == "sll":
            return left_where(x, amount, closed, one)
        return right_where(x, amount, closed, one)

    def _sign(self) -> Expression:
        """What comes in from above in an arithmetic shift, which is else a shift to the right like the other."""
        return sum((sign_where(self.x, self.y[:5], closed, self.one)
                    for name, closed in self.gates.each(arithmetic) if name == "sra"), 0.0 * self.value)


class Decode(Fetch):
    """What is made of the fetched word, and the program counter, over the rows of a layout."""

    @property
    def part(self) -> Part:
        layout, one, stalled = self.layout, self.one, self._stalled
        jump = [float(STALL >> i & 1) * stalled for i in range(WORD_BITS)]
        kind = [float(bit) * stalled for bit in self.sizes.decoder.kind(STALL)]
        part = (
            clip_where(1 - one, rows(layout, "memory"), self.gate)
            + rewrite(rows(layout, "word"), self._copied(self.word, {}) + stack(*jump))
            + rewrite(rows(layout, "kind"), self._kind() + stack(*kind))
            + rewrite(rows(layout, "immediate"), self._immediate())
            + self._counted()
            + rewrite(rows(layout, "following"), self._following())
            + rewrite(rows(layout, "target"), self._target() + bits_where(self.next, one - stalled, one))
            + rewrite(rows(layout, "event.call", "event.fetch"), stack(self._call(), self._astray()))
            + clear(self.word)
        )
        for name in PASSING:
            part = part + vanish(rows(layout, name), one)
        return part

    @property
    def _stalled(self) -> Expression:
        """1 if a jump to itself is taken in place of the fetched word."""
        return as_numbers(rows(self.layout, "flag.stalls"), self.one)

    def _closed(self, cube: Cube) -> Expression:
        return super()._closed(cube) + self._stalled

    def _counted(self) -> Part:
        """The next program counter; where the instruction is refused, the same."""
        one, counter = self.one, rows(self.layout, "counter")
        good = stack(*(rows(self.layout, f"flag.{name}") for name in ("lawful", "aligned", "reached")))
        refusal = absent(good, {0: 1, 1: 1, 2: 1}, one)
        return assign(counter, counter + 2 * bits_where(self.next, refusal, one) - 2 * bits_where(counter, refusal, one))

    def _following(self) -> Expression:
        """The next program counter + 4."""
        return offset_where(self.next, WORD_BYTES * self.one, WORD_BYTES, WORD_BYTES, 0.0 * self.one, self.one)

    def _target(self) -> Expression:
        """The next program counter plus the immediate of a jump or of a branch."""
        total = 0.0 * self.next

        def sort(instruction: Instruction) -> tuple[int | None, ...] | None:
            return immediate_sources(instruction.format) if instruction.format in ("J", "B") else None

        for sources, cubes in self.sizes.decoder.opcodes(sort).items():
            immediate = stack(*(-self.one if source is None else self.word[source] for source in sources))
            for cube in cubes:
                total = total + sum_where(self.next, immediate, 0.0 * self.one, self._closed(cube), self.one)
        return total
