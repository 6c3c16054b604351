"""Layer A's feed-forward: the arithmetic unit, the address, and whether the instruction may be executed.

Every alternative is closed by the literals of the instruction's kind, so that one of them gives the value and all others 0.
"""

from __future__ import annotations

from collections.abc import Hashable

from punchcard.card.layout import Layout
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.base import HALF, RiscvSizes
from punchcard.machines.riscv.designs.decode import ARITHMETIC, fixed_bits
from punchcard.machines.riscv.designs.writing import Gates, appear
from punchcard.machines.riscv.isa import Instruction, operation_of
from punchcard.primitives.bits import number
from punchcard.primitives.gated_words import (
    and_where,
    carry_where,
    from_where,
    left_where,
    offset_where,
    or_where,
    right_where,
    sign_where,
    sum_where,
    xor_where,
)
from punchcard.primitives.literals import absent, as_numbers, conjunction, step_where, zero_where
from punchcard.transformer.build import Part
from punchcard.transformer.expression import Expression, rows, stack

BITWISE = {"and": and_where, "or": or_where, "xor": xor_where}


def arithmetic(instruction: Instruction) -> str | None:
    """The operation of the arithmetic unit that an instruction needs. None: any will do."""
    if instruction.opcode not in ARITHMETIC or instruction.extension == "M":
        return None
    if instruction.opcode in (isa.LUI, isa.AUIPC):
        return "add"
    name = operation_of(instruction)
    return "compare" if name in ("slt", "sltu") else name


class Execute:
    """The formulas of layer A, over the rows of a layout."""

    def __init__(self, sizes: RiscvSizes, layout: Layout) -> None:
        self.sizes, self.layout = sizes, layout
        self.one = rows(layout, "inside")
        self.gates = Gates(sizes, layout)
        self.x, self.y, self.immediate, self.counter, self.word = (
            rows(layout, name) for name in ("x", "y", "immediate", "counter", "word"))

    @property
    def part(self) -> Part:
        layout, one, open_ = self.layout, self.one, 0.0 * self.one
        low = slice(0, HALF)
        x, y = self.x, self.y
        reach = slice(0, self.sizes.reach)
        carries = {
            "carry": carry_where(x[low], y[low], open_, open_, one),
            "borrow": carry_where(x[low], -y[low], one, open_, one),
            "same": zero_where(number(x[low], one) - number(y[low], one), open_, one, 1 << HALF),
            "top": self._turned(x[-1]), "turned": self._turned(y[-1]),
            "aligned": one - self._misaligned(), "reached": self._reached(), "lawful": self._lawful(),
        }
        reference, immediate = x[reach], self.immediate[reach]
        return (
            appear(rows(layout, "value"), self._value(), one)
            + appear(rows(layout, "reference.low"), sum_where(reference, immediate, open_, open_, one), one)
            + appear(rows(layout, "reference.carry"), carry_where(reference, immediate, open_, open_, one), one)
            + appear(rows(layout, "flag"), stack(*(carries[name] for name in self._flags())), one)
            + appear(rows(layout, "after"), self._after(), one)
            + appear(rows(layout, "target"), self._target(), one)
        )

    def _flags(self) -> list[str]:
        return list(next(block for block in self.layout.blocks if block.name == "flag").parts)

    def _value(self) -> Expression:
        """The bits of the arithmetic unit's value; of sums the low half."""
        x, y, one, low = self.x, self.y, self.one, slice(0, HALF)
        amount = y[:5]
        zeros = stack(*[0.0 * one] * (x.size - HALF))
        total = 0.0 * x
        for name, closed in self.gates.each(arithmetic):
            if name == "add":
                total = total + stack(sum_where(x[low], y[low], 0.0 * one, closed, one), zeros)
            elif name == "sub":
                total = total + stack(sum_where(x[low], -y[low], one, closed, one), zeros)
            elif name in BITWISE:
                total = total + BITWISE[name](x, y, closed, one)
            elif name == "sll":
                total = total + left_where(x, amount, closed, one)
            elif name in ("srl", "sra"):
                total = total + right_where(x, amount, closed, one)
                if name == "sra":
                    total = total + sign_where(x, amount, closed, one)
        return total

    def _after(self) -> Expression:
        """The high half of pc + 4, with the carry that the loop before has left."""
        one = self.one
        carry = as_numbers(rows(self.layout, "following.carry"), one)
        return offset_where(self.counter[HALF:], carry, 0, 1, 0.0 * one, one)

    def _target(self) -> Expression:
        """pc + immediate: both halves, since the loop before has left the carry between them."""
        one, closed = self.one, 0.0 * self.one
        carry = as_numbers(rows(self.layout, "carried"), one)
        return stack(sum_where(self.counter[:HALF], self.immediate[:HALF], closed, closed, one),
                     sum_where(self.counter[HALF:], self.immediate[HALF:], carry, closed, one))

    def _turned(self, top: Expression) -> Expression:
        """The highest bit of an operand as it is compared: turned, where numbers are signed."""
        one = self.one
        sort = {"slt": True, "slti": True, "blt": True, "bge": True}
        total = 0.0 * one
        for signed, closed in self.gates.each(lambda i: sort.get(i.name, False)):
            total = total + conjunction(closed + 0.5 * (one + top if signed else one - top), one)
        return total

    def _lawful(self) -> Expression:
        """1 where the word is an instruction: a unit for each, and no two hold at once.

        The kind follows from the word. Its literals change nothing, but show which instructions it leaves.
        """
        one, decoder = self.one, self.sizes.decoder
        units = []
        for instruction in decoder.instructions:
            kind = dict(enumerate(decoder.kind(instruction.match)))
            missing = absent(self.word, fixed_bits(instruction), one) + absent(self.gates.kind, kind, one)
            units.append(conjunction(missing, one))
        return stack(*units).total()

    def _alignment(self, instruction: Instruction) -> Hashable:
        """What must be aligned."""
        if instruction.opcode in (isa.JAL, isa.JALR):
            return "jump" if instruction.opcode == isa.JAL else "register jump"
        return {2: "half", 4: "word"}.get(instruction.access_bytes, "any")

    def _misaligned(self) -> Expression:
        """1 where the address of a load, a store or a jump is not a multiple of what it must be."""
        one, x, immediate = self.one, self.x, self.immediate
        last = as_numbers(x[0], one) + as_numbers(immediate[0], one)  # 0 to 2: the lowest bit of the address is its parity
        two = last + 2 * as_numbers(x[1], one) + 2 * as_numbers(immediate[1], one)  # 0 to 6
        ranges = {"half": (last, ((1, 2),)), "word": (two, ((1, 4), (5, 7))), "register jump": (two, ((2, 4), (6, 7)))}

        total = 0.0 * one
        for name, closed in self.gates.each(self._alignment):
            if name == "jump":
                total = total + conjunction(closed + 0.5 * (one - immediate[1]), one)
            elif name in ranges:
                form, spans = ranges[name]
                for first, after in spans:
                    total = total + step_where(form - first * one, closed, one, 6)
                    if after < 7:
                        total = total - step_where(form - after * one, closed, one, 6)
        return total

    def _reached(self) -> Expression:
        """1 where the address of a load or a store is in the memory; for all other instructions 1.

        The address is v = x_low + immediate_low, and x_high, less 1 where the immediate is negative, and more 1 where v is
        2^reach or more. So where the memory has the bytes first to last of a page, the address is one of them if

            x_high       immediate is not negative          immediate is negative
            page         first <= v < last                  first <= v - 2^reach < last
            page - 1     first <= v - 2^reach < last        never
            page + 1     never                              first <= v < last

        x is 0 in other columns. That all units are closed there too keeps the bound on their sums small.
        """
        one, sizes, outside = self.one, self.sizes, rows(self.layout, "outside")
        size, high = 1 << sizes.reach, self.x[sizes.reach :]
        v = number(self.x[: sizes.reach], one) + number(self.immediate[: sizes.reach], one)
        total = 0.0 * one
        for access, closed in self.gates.each(lambda i: i.access_bytes > 0):
            if not access:
                total = total + conjunction(closed, one)
                continue
            for page, first, last in sizes.pages:
                for negative, more, over in ((0, 0, 0), (1, 0, size), (0, -1, size), (1, 1, 0)):
                    wanted = (page + more) % (1 << high.size)
                    here = closed + absent(high, {j: wanted >> j & 1 for j in range(high.size)}, one)
                    here = here + absent(self.immediate[-1], {0: negative}, one) + high.size * outside
                    total = total + from_where(v, over + first, 0, 2 * size - 2, here, one)
                    total = total - from_where(v, over + last, 0, 2 * size - 2, here, one)
        return total
