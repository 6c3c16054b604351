"""Layer B's feed-forward: the result, where it goes, and the next program counter."""

from __future__ import annotations

from punchcard.card.layout import Layout
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.base import HALF, RiscvSizes
from punchcard.machines.riscv.designs.execute import arithmetic
from punchcard.machines.riscv.designs.formulas import Branch, LayerFormulas, NextCounter, appear, rewrite
from punchcard.machines.riscv.isa import WORD_BITS, Instruction
from punchcard.primitives.gated_words import equal_where, lane_where, less_where, merged_where, offset_where, sum_where
from punchcard.primitives.literals import absent, as_numbers, bits_where, conjunction
from punchcard.transformer.build import Part
from punchcard.transformer.expression import Expression, stack


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
        """The register that is named, or the word at the address; the sink for x0, for nobody, and where it is refused."""
        one, length, rd = self.one, self.sizes.pointer_bits, self.word[7:12]
        place = self.reference[2 : length + 2]
        register, to_register, to_memory = (0.0 * part for part in (stack(*[one] * length), one, one))

        def sort(instruction: Instruction) -> str:
            return "memory" if instruction.writes_memory else "register" if "rd" in instruction.uses else "nobody"

        for name, closed in self.gates(sort):
            closed = closed + self._refusal()
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


class Finish(NextCounter, ResultPlace):
    """The formulas of layer B."""

    def __init__(self, sizes: RiscvSizes, layout: Layout) -> None:
        super().__init__(sizes, layout)
        self.value, self.reference, self.target = (self.rows(name) for name in ("value", "reference.low", "target"))
        self.following = stack(self.rows("following.low"), self.rows("after"))

    @property
    def part(self) -> Part:
        one, refusal = self.one, self._refusal()
        return (
            rewrite(self.value, self._result())
            + appear(self.rows("next"), self._next(), one)
            + appear(self.rows("goal"), self._goal(), one)
            + rewrite(self.rows("event.fault"), one - conjunction(refusal, one) + self._misses(self._way, refusal))
        )

    def _flag(self, name: str) -> Expression:
        return self.rows(f"flag.{name}")

    # The result

    def _result(self) -> Expression:
        """The word that is stored."""
        one = self.one
        lawful = absent(self._flag("lawful"), {0: 1}, one)  # a word that is not an instruction may be of any kind

        def sort(instruction: Instruction) -> str | None:
            operation = arithmetic(instruction)
            if operation is not None:
                return operation if operation in ("add", "sub", "compare") else "arithmetic"
            if instruction.opcode in (isa.JAL, isa.JALR):
                return "link"
            return instruction.name if instruction.access_bytes else None

        def word(name: str, gate: Expression) -> Expression:
            closed = gate + lawful
            if name == "link":
                return bits_where(self.following, closed, one)
            if name == "compare":
                return self._wide(less_where(*self._compared(), closed, one), 0)
            if name == "arithmetic":
                return bits_where(self.value, closed, one)
            if name in ("add", "sub"):
                return bits_where(self.value, closed, one) + self._high_sum(name, closed)
            return self._moved(isa.BY_NAME[name], closed)

        return self.total(sort, word)

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

    def _way(self, instruction: Instruction) -> Branch | str:
        """Layer A has turned the highest bits, so that signs make no difference here."""
        way = super()._way(instruction)
        return way._replace(signed=False) if isinstance(way, Branch) else way

    def _holds(self, branch: Branch, closed: Expression) -> Expression:
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
