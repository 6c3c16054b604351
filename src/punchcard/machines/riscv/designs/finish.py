"""Layer B's feed-forward: the result, where it goes, and the next program counter."""

from __future__ import annotations

from typing import NamedTuple

from punchcard.card.layout import Layout
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.base import HALF, RiscvSizes
from punchcard.machines.riscv.designs.execute import arithmetic
from punchcard.machines.riscv.designs.writing import Gates, appear, rewrite
from punchcard.machines.riscv.isa import WORD_BITS, Instruction
from punchcard.primitives.gated_words import equal_where, lane_where, less_where, merged_where, offset_where, sum_where
from punchcard.primitives.literals import absent, as_numbers, bits_where, conjunction
from punchcard.transformer.build import Part
from punchcard.transformer.expression import Expression, rows, stack

EQUALITY = ("beq", "bne")
TURNED = ("bne", "bge", "bgeu")
"""Branches that are taken where the comparison does not hold."""


class Finish:
    """The formulas of layer B, over the rows of a layout."""

    def __init__(self, sizes: RiscvSizes, layout: Layout) -> None:
        self.sizes, self.layout = sizes, layout
        self.one, self.gates = rows(layout, "inside"), Gates(sizes, layout)
        self.x, self.y, self.value, self.immediate, self.brought = (
            rows(layout, name) for name in ("x", "y", "value", "immediate", "brought"))
        self.reference = rows(layout, "reference.low")
        self.following = stack(rows(layout, "following.low"), rows(layout, "after"))
        self.target = rows(layout, "target")

    @property
    def part(self) -> Part:
        layout, one = self.layout, self.one
        refused = one - conjunction(self._refusal(), one) + self._misses()
        return (
            rewrite(self.value, self._result())
            + appear(rows(layout, "next"), self._next(), one)
            + appear(rows(layout, "goal"), self._goal(), one)
            + rewrite(rows(layout, "event.fault"), refused)
        )

    def _flag(self, name: str) -> Expression:
        return rows(self.layout, f"flag.{name}")

    def _refusal(self) -> Expression:
        """What is absent of what an instruction needs to be executed."""
        good = stack(self._flag("lawful"), self._flag("aligned"), self._flag("reached"))
        return absent(good, {0: 1, 1: 1, 2: 1}, self.one)

    # The result

    def _result(self) -> Expression:
        """The word that is stored."""
        one, total = self.one, 0.0 * self.value

        def sort(instruction: Instruction) -> str | None:
            operation = arithmetic(instruction)
            if operation is not None:
                return operation if operation in ("add", "sub", "compare") else "arithmetic"
            if instruction.opcode in (isa.JAL, isa.JALR):
                return "link"
            return instruction.name if instruction.access_bytes else None

        lawful = absent(self._flag("lawful"), {0: 1}, one)  # a word that is not an instruction may be of any kind
        for name, gate in self.gates.each(sort):
            closed = gate + lawful
            if name == "link":
                total = total + bits_where(self.following, closed, one)
            elif name == "compare":
                total = total + self._wide(less_where(*self._compared(), closed, one), 0)
            elif name in ("add", "sub", "arithmetic"):
                total = total + bits_where(self.value, closed, one) + self._high_sum(name, closed)
            else:
                total = total + self._moved(isa.BY_NAME[name], closed)
        return total

    def _wide(self, bits: Expression, low: int) -> Expression:
        """Bits in the places of a word from `low` on, and 0 in all others."""
        above = WORD_BITS - low - bits.size
        return stack(*[0.0 * self.one] * low, bits, *[0.0 * self.one] * above)

    def _high_sum(self, name: str, closed: Expression) -> Expression:
        """The high half of x + y or x - y; nothing else has one."""
        one, high = self.one, slice(HALF, None)
        if name == "arithmetic":
            return 0.0 * self.value
        carry = as_numbers(self._flag("carry" if name == "add" else "borrow"), one)
        y = self.y[high] if name == "add" else -self.y[high]
        return self._wide(sum_where(self.x[high], y, carry, closed, one), HALF)

    def _compared(self) -> tuple[Expression, Expression, Expression]:
        """The high halves of the operands, as they are compared, and whether the low half of x is not less."""
        high = slice(HALF, WORD_BITS - 1)
        return (stack(self.x[high], self._flag("top")), stack(self.y[high], self._flag("turned")),
                as_numbers(self._flag("borrow"), self.one))

    def _moved(self, instruction: Instruction, closed: Expression) -> Expression:
        """What a load or a store makes of the word that was read."""
        one, size = self.one, 8 * instruction.access_bytes
        lane = self.reference[(size // 8).bit_length() - 1 : 2] if size < WORD_BITS else self.reference[:0]
        if instruction.writes_memory:
            return merged_where(self.brought, self.y, size, lane, closed, one)
        bits = lane_where(self.brought, size, lane, closed, one)
        if size == WORD_BITS:
            return bits
        sign = 0.0 * one if instruction.name in ("lbu", "lhu") else bits[size - 1]
        return stack(bits, *[sign] * (WORD_BITS - size))

    # Where it goes

    def _goal(self) -> Expression:
        """The register that is named, or the word at the address; the sink for x0, for nobody, and where it is refused."""
        one, sizes = self.one, self.sizes
        rd = rows(self.layout, "word")[7:12]
        place = self.reference[2 : sizes.pointer_bits + 2]
        register, to_register, to_memory = (0.0 * part for part in (stack(*[one] * sizes.pointer_bits), one, one))

        def sort(instruction: Instruction) -> str:
            return "memory" if instruction.writes_memory else "register" if "rd" in instruction.uses else "nobody"

        for name, closed in self.gates.each(sort):
            closed = closed + self._refusal()
            if name == "register":
                bits = bits_where(rd, closed, one)
                register = register + stack(bits, *[0.0 * one] * (place.size - bits.size))
                zero = absent(rd, dict.fromkeys(range(rd.size), 0), one)
                to_register = to_register + conjunction(closed, one) - conjunction(closed + zero, one)
            elif name == "memory":
                register = register + bits_where(place, closed, one)
                to_memory = to_memory + conjunction(closed, one)
        lost = one - to_register - to_memory
        sink = stack(*[0.0 * one] * 5, lost, *[0.0 * one] * (place.size - 6))
        return stack(register + sink, one - to_memory)

    # The next program counter

    def _next(self) -> Expression:
        one, total = self.one, 0.0 * self.following
        for way, closed in self.gates.each(_way):
            if isinstance(way, PlainBranch):
                total = total + self._where(way, True, self.target, closed) + self._where(way, False, self.following, closed)
            elif way == "on":
                total = total + bits_where(self.following, closed, one)
            elif way == "jump":
                total = total + bits_where(self.target, closed, one)
            else:
                total = total + self._reference(closed)
        return total

    def _reference(self, closed: Expression) -> Expression:
        """x + immediate, without its lowest bit. The immediate's high part is 0 or -1."""
        one, low = self.one, self.reference
        change = as_numbers(rows(self.layout, "reference.carry"), one) - as_numbers(self.immediate[-1], one)
        high = offset_where(self.x[low.size :], change, -1, 1, closed, one)
        return stack(0.0 * one, bits_where(low[1:], closed, one), high)

    def _where(self, branch: PlainBranch, taken: bool, bits: Expression, closed: Expression) -> Expression:
        """The bits where a branch is taken, or where it is not, and nothing is absent; else 0."""
        one = self.one
        here = closed + (one - as_numbers(bits, one))
        if branch.equality:
            same = 0.5 * (one - self._flag("same"))
            holds = equal_where(self.x[HALF:], self.y[HALF:], here + same, one)
        else:
            holds = less_where(*self._compared(), here, one)
        return holds if branch.turned != taken else bits_where(bits, closed, one) - holds

    def _misses(self) -> Expression:
        """1 where a branch is taken to an address that is not a multiple of four: that is bit 1 of its immediate."""
        total = 0.0 * self.one
        for way, closed in self.gates.each(_way):
            if isinstance(way, PlainBranch):
                total = total + self._where(way, True, self.immediate[1], closed + self._refusal())
        return total


class PlainBranch(NamedTuple):
    """A branch: if by equality, and if it is taken where the comparison does not hold."""

    equality: bool
    turned: bool


def _way(instruction: Instruction) -> PlainBranch | str:
    """Where an instruction goes on."""
    if instruction.opcode == isa.BRANCH:
        return PlainBranch(instruction.name in EQUALITY, instruction.name in TURNED)
    return {isa.JAL: "jump", isa.JALR: "register jump"}.get(instruction.opcode, "on")
