"""The feed-forwards of layers A and B.

A. The arithmetic unit, the address, and whether the instruction may be executed.
B. The result, where it goes, and the next program counter.

Every alternative is closed by the literals of the instruction's kind, so that one of them gives the value and all others 0.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from punchcard.card.layout import Layout
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.base import HALF, RiscvSizes
from punchcard.machines.riscv.designs.decode import ARITHMETIC, fixed_bits
from punchcard.machines.riscv.designs.formulas import BranchFormula, LayerFormulas, NextCounter, appear, rewrite
from punchcard.machines.riscv.isa import WORD_BITS, Instruction, operation_of
from punchcard.primitives.bits import number
from punchcard.primitives.gated_words import (
    and_where,
    carry_where,
    equal_where,
    from_where,
    lane_where,
    left_where,
    less_where,
    merged_where,
    offset_where,
    or_where,
    right_where,
    sign_where,
    sum_where,
    xor_where,
)
from punchcard.primitives.literals import absent, as_numbers, bits_where, conjunction, step_where, zero_where
from punchcard.transformer.build import Part
from punchcard.transformer.expression import Expression, stack

BITWISE = {"and": and_where, "or": or_where, "xor": xor_where}


def arithmetic(instruction: Instruction) -> str | None:
    """The operation of the arithmetic unit that an instruction needs, or None if any will do."""
    if instruction.opcode not in ARITHMETIC or instruction.extension == "M":
        return None
    if instruction.opcode in (isa.LUI, isa.AUIPC):
        return "add"
    name = operation_of(instruction)
    return "compare" if name in ("slt", "sltu") else name


def as_compared(word: Expression, signed: bool) -> Expression:
    """Two's complement is compared as unsigned numbers are, with the highest bit turned."""
    return stack(word[:-1], -word[-1]) if signed else word


class Checks(LayerFormulas):
    """Whether an instruction is one, and what it uses is aligned."""

    def _lawful(self) -> Expression:
        """1 where the word is an instruction: a unit for each, and no two hold at once.

        The kind follows from the word. Its literals change nothing, but show which instructions it leaves.
        """
        one, decoder = self.one, self.sizes.decoder
        units = []
        for instruction in decoder.instructions:
            kind = dict(enumerate(decoder.kind(instruction.match)))
            missing = absent(self.word, fixed_bits(instruction), one) + absent(self.kind, kind, one)
            units += [conjunction(each, one) for each in self._permitted(instruction, missing)]
        return stack(*units).total()

    def _permitted(self, instruction: Instruction, missing: Expression) -> list[Expression]:
        """What is absent for a word, which is this instruction where nothing is `missing`, to be allowed: no two at once."""
        return [missing]

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

        def wrong(name: Hashable, closed: Expression) -> Expression | None:
            if name == "jump":
                return conjunction(closed + 0.5 * (one - immediate[1]), one)
            form, spans = ranges.get(str(name), (one, ()))
            steps = [sign * step_where(form - place * one, closed, one, 6)
                     for span in spans for sign, place in zip((1, -1), span, strict=True) if place < 7]
            return sum(steps, 0.0 * one)

        return self.total(self._alignment, wrong)


class Execute(Checks):
    """The formulas of layer A."""

    @property
    def part(self) -> Part:
        one, flags = self.one, self._flags()
        return (
            appear(self.rows("value"), self._value(), one)
            + self._address()
            + appear(self.rows(*(f"flag.{name}" for name in flags)), stack(*flags.values()), one)
            + appear(self.rows("after"), self._after(), one)
            + appear(self.rows("target"), self._target(), one)
        )

    def _flags(self) -> dict[str, Expression]:
        """About the operands, 0 or 1."""
        one, open_, low = self.one, 0.0 * self.one, slice(0, HALF)
        x, y = self.x, self.y
        return {
            "carry": carry_where(x[low], y[low], open_, open_, one),
            "borrow": carry_where(x[low], -y[low], one, open_, one),
            "same": zero_where(number(x[low], one) - number(y[low], one), open_, one, 1 << HALF),
            "top": self._turned(x[-1]), "turned": self._turned(y[-1]),
            "aligned": one - self._misaligned(), "reached": self._reached(), "lawful": self._lawful(),
        }

    def _address(self) -> Part:
        """The low bits of the address, and the carry."""
        one, open_ = self.one, 0.0 * self.one
        reference, immediate = self.x[: self.sizes.reach], self.immediate[: self.sizes.reach]
        return (appear(self.rows("reference.low"), sum_where(reference, immediate, open_, open_, one), one)
                + appear(self.rows("reference.carry"), carry_where(reference, immediate, open_, open_, one), one))

    def _value(self) -> Expression:
        """The bits of the arithmetic unit's value; of sums the low half."""
        x, y, one, low, amount = self.x, self.y, self.one, slice(0, HALF), self.y[:5]
        zeros = stack(*[0.0 * one] * (x.size - HALF))

        def value(name: str, closed: Expression) -> Expression | None:
            if name in BITWISE:
                return BITWISE[name](x, y, closed, one)
            if name == "add":
                return stack(sum_where(x[low], y[low], 0.0 * one, closed, one), zeros)
            if name == "sub":
                return stack(sum_where(x[low], -y[low], one, closed, one), zeros)
            if name == "sll":
                return left_where(x, amount, closed, one)
            if name == "sra":
                return right_where(x, amount, closed, one) + sign_where(x, amount, closed, one)
            return right_where(x, amount, closed, one) if name == "srl" else None

        return self.total(arithmetic, value)

    def _after(self) -> Expression:
        """The high half of pc + 4, with the carry that the loop before has left."""
        one = self.one
        carry = as_numbers(self.rows("following.carry"), one)
        return offset_where(self.counter[HALF:], carry, 0, 1, 0.0 * one, one)

    def _target(self) -> Expression:
        """pc + immediate: both halves, since the loop before has left the carry between them."""
        one, closed = self.one, 0.0 * self.one
        carry = as_numbers(self.rows("carried"), one)
        return stack(sum_where(self.counter[:HALF], self.immediate[:HALF], closed, closed, one),
                     sum_where(self.counter[HALF:], self.immediate[HALF:], carry, closed, one))

    def _turned(self, top: Expression) -> Expression:
        """The highest bit of an operand as it is compared: turned, where numbers are signed."""
        one = self.one
        return self.total(lambda i: i.name in ("slt", "slti", "blt", "bge"), lambda signed, closed: conjunction(
            closed + 0.5 * (one + top if signed else one - top), one))

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
        one, sizes, outside = self.one, self.sizes, self.rows("outside")
        size, high = 1 << sizes.reach, self.x[sizes.reach :]
        v = number(self.x[: sizes.reach], one) + number(self.immediate[: sizes.reach], one)

        def inside(access: bool, closed: Expression) -> Expression:
            if not access:
                return conjunction(closed, one)
            total = 0.0 * one
            for page, first, last in sizes.pages:
                for negative, more, over in ((0, 0, 0), (1, 0, size), (0, -1, size), (1, 1, 0)):
                    wanted = (page + more) % (1 << high.size)
                    here = closed + absent(high, {j: wanted >> j & 1 for j in range(high.size)}, one)
                    here = here + absent(self.immediate[-1], {0: negative}, one) + high.size * outside
                    total = total + from_where(v, over + first, 0, 2 * size - 2, here, one)
                    total = total - from_where(v, over + last, 0, 2 * size - 2, here, one)
            return total

        return self.total(lambda i: i.access_bytes > 0, inside)


class ResultPlace(LayerFormulas):
    """What a load or a store makes of a word, and where a result goes."""

    reference: Expression

    def _moved(self, instruction: Instruction, closed: Expression) -> Expression:
        """What a load or a store makes of the word that was read."""
        one, size, brought = self.one, 8 * instruction.access_bytes, self.rows("brought")
        lane = self.reference[(size // 8).bit_length() - 1 : 2] if size < WORD_BITS else self.reference[:0]
        if instruction.writes_memory:
            return merged_where(brought, self.y, size, lane, closed, one)
        bits = lane_where(brought, size, lane, closed, one)
        if size == WORD_BITS:
            return bits
        sign = 0.0 * one if instruction.name in ("lbu", "lhu") else bits[size - 1]
        return stack(bits, *[sign] * (WORD_BITS - size))

    def _goal(self) -> Expression:
        """The register that is named, or the word at the address; the sink for x0, for no result, and if it is refused."""
        one, length, rd = self.one, self.sizes.pointer_bits, self.word[7:12]
        place = self.reference[2 : length + 2]
        register, to_register, to_memory = (0.0 * part for part in (stack(*[one] * length), one, one))

        for name, closed in self._goals():
            if name == "register":
                bits = bits_where(rd, closed, one)
                register = register + stack(bits, *[0.0 * one] * (length - bits.size))
                zero = absent(rd, dict.fromkeys(range(rd.size), 0), one)
                to_register = to_register + conjunction(closed, one) - conjunction(closed + zero, one)
            elif name == "memory":
                register = register + bits_where(place, closed, one)
                to_memory = to_memory + conjunction(closed, one)
        lost = one - to_register - to_memory
        sink = stack(*[0.0 * one] * 5, lost, *[0.0 * one] * (length - 6))
        return stack(register + sink, one - to_memory)

    def _goals(self) -> Iterator[tuple[str, Expression]]:
        """Where results go, each with what is absent for it."""
        def sort(instruction: Instruction) -> str:
            return "memory" if instruction.writes_memory else "register" if "rd" in instruction.uses else "nobody"

        for name, closed in self.gates(sort):
            yield name, closed + self._refusal()


class Finish(NextCounter, ResultPlace):
    """The formulas of layer B."""

    def __init__(self, sizes: RiscvSizes, layout: Layout) -> None:
        super().__init__(sizes, layout)
        self.value, self.reference, self.target = (self.rows(name) for name in ("value", "reference.low", "target"))
        self.following = stack(self.rows("following.low"), self.rows("after"))

    @property
    def part(self) -> Part:
        one, refusal = self.one, self._refusal()
        fault = one - conjunction(refusal, one) + self._misses(self._way, refusal)
        return self._results + rewrite(self.rows("event.fault"), fault)

    @property
    def _results(self) -> Part:
        return (rewrite(self.value, self._result()) + appear(self.rows("next"), self._next(), self.one)
                + appear(self.rows("goal"), self._goal(), self.one))

    def _flag(self, name: str) -> Expression:
        return self.rows(f"flag.{name}")

    # The result

    def _result(self) -> Expression:
        """The word that is stored."""
        return self.total(self._result_sort, lambda name, gate: self._result_of(name, gate + self._unlawful()))

    def _result_sort(self, instruction: Instruction) -> str | None:
        """How the result of an instruction is made, or None if it has none."""
        operation = arithmetic(instruction)
        if operation is not None:
            return operation if operation in ("add", "sub", "compare") else "arithmetic"
        if instruction.opcode in (isa.JAL, isa.JALR):
            return "link"
        return instruction.name if instruction.access_bytes else None

    def _result_of(self, name: str, closed: Expression) -> Expression:
        """A result, where nothing is absent."""
        one = self.one
        if name == "link":
            return bits_where(self.following, closed, one)
        if name == "compare":
            return self._wide(less_where(*self._compared(), closed, one), 0)
        if name == "arithmetic":
            return bits_where(self.value, closed, one)
        if name in ("add", "sub"):
            return bits_where(self.value, closed, one) + self._high_sum(name, closed)
        return self._moved(isa.BY_NAME[name], closed)

    def _wide(self, bits: Expression, low: int) -> Expression:
        """Bits in the places of a word from `low` on, and 0 in all others."""
        above = WORD_BITS - low - bits.size
        return stack(*[0.0 * self.one] * low, bits, *[0.0 * self.one] * above)

    def _high_sum(self, name: str, closed: Expression) -> Expression:
        """The high half of x + y or x - y."""
        carry = as_numbers(self._flag("carry" if name == "add" else "borrow"), self.one)
        y = self.y[HALF:] if name == "add" else -self.y[HALF:]
        return self._wide(sum_where(self.x[HALF:], y, carry, closed, self.one), HALF)

    def _compared(self) -> tuple[Expression, Expression, Expression]:
        """The high halves of the operands, as they are compared, and whether the low half of x is not less."""
        high = slice(HALF, WORD_BITS - 1)
        return (stack(self.x[high], self._flag("top")), stack(self.y[high], self._flag("turned")),
                as_numbers(self._flag("borrow"), self.one))

    # The next program counter

    def _way(self, instruction: Instruction) -> BranchFormula | str:
        """Layer A has turned the highest bits, so that signs make no difference here."""
        way = super()._way(instruction)
        return way._replace(signed=False) if isinstance(way, BranchFormula) else way

    def _holds(self, branch: BranchFormula, closed: Expression) -> Expression:
        if not branch.equality:
            return less_where(*self._compared(), closed, self.one)
        same = 0.5 * (self.one - self._flag("same"))
        return equal_where(self.x[HALF:], self.y[HALF:], closed + same, self.one)

    def _reference(self, closed: Expression) -> Expression:
        """The immediate's high part is 0 or -1."""
        one, low = self.one, self.reference
        change = as_numbers(self.rows("reference.carry"), one) - as_numbers(self.immediate[-1], one)
        high = offset_where(self.x[low.size :], change, -1, 1, closed, one)
        return stack(0.0 * one, bits_where(low[1:], closed, one), high)
