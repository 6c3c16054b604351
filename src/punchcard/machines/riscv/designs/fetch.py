"""Layer C's feed-forward: the fetched word is decoded, the program counter goes on, and all that was passing is cleared.

Other columns find themselves in this layer's head, so their rows `fetched` hold a word too. Every unit over these rows is
closed there by the row `outside`.
"""

from __future__ import annotations

from punchcard.card.layout import Layout
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.base import HALF, RiscvSizes
from punchcard.machines.riscv.designs.decode import fixed_bits, immediate_sources
from punchcard.machines.riscv.designs.writing import rewrite, vanish
from punchcard.machines.riscv.isa import FIELDS, WORD_BITS, WORD_BYTES, Instruction
from punchcard.primitives.bits import number
from punchcard.primitives.gated_words import from_where, offset_where
from punchcard.primitives.literals import Cube, absent, as_numbers, bits_where, conjunction, step_where
from punchcard.primitives.memory import clip_where
from punchcard.transformer.build import Part, clear
from punchcard.transformer.expression import Expression, rows, stack

PASSING = ("x", "y", "value", "reference", "flag", "after", "target", "brought", "next", "goal")


class Fetch:
    """The formulas of layer C, over the rows of a layout."""

    def __init__(self, sizes: RiscvSizes, layout: Layout, gate: float) -> None:
        self.sizes, self.layout, self.gate = sizes, layout, gate
        self.one, self.outside = rows(layout, "inside"), rows(layout, "outside")
        self.word, self.next, self.counter = (rows(layout, name) for name in ("fetched", "next", "counter"))

    @property
    def part(self) -> Part:
        layout, one = self.layout, self.one
        part = (
            clip_where(1 - one, rows(layout, "memory"), self.gate)
            + rewrite(rows(layout, "word"), self._copied(self.word, {}))
            + rewrite(rows(layout, "kind"), self._kind())
            + rewrite(rows(layout, "immediate"), self._immediate())
            + rewrite(rows(layout, "first"), self._first())
            + rewrite(rows(layout, "second"), self._second())
            + rewrite(self.counter, self._counter())
            + rewrite(rows(layout, "following"), self._following())
            + rewrite(rows(layout, "carried"), self._carried())
            + rewrite(rows(layout, "event.call", "event.fetch"), stack(self._call(), self._astray()))
            + clear(self.word)
        )
        for name in PASSING:
            part = part + vanish(rows(layout, name), one)
        return part

    # The fetched word

    def _closed(self, cube: Cube) -> Expression:
        """What is absent of some bits of the fetched word; in other columns more than a unit can make good."""
        return absent(self.word, cube, self.one) + (len(cube) + 1) * self.outside

    def _copied(self, bits: Expression, cube: Cube) -> Expression:
        """Bits of the fetched word, 0 or 1, where others are as given, else 0."""
        return bits_where(bits, self._closed(cube), self.one)

    def _kind(self) -> Expression:
        bits = []
        for terms in self.sizes.decoder.kind_bits:
            bit = 0.0 * self.one
            for source, cube in terms:
                bit = bit + self._copied(self.word[source], cube)
            bits.append(bit)
        return stack(*bits)

    def _immediate(self) -> Expression:
        """Each bit is one of the word's, by the format of the opcode; formats without an immediate may have any."""
        bits = []
        for i in range(WORD_BITS):
            def sort(instruction: Instruction, i: int = i) -> int | None:
                if instruction.format not in isa.IMMEDIATES:
                    return None
                source = immediate_sources(instruction.format)[i]
                return -1 if source is None else source

            bit = 0.0 * self.one
            for source, cubes in self.sizes.decoder.opcodes(sort).items():
                for cube in cubes if source >= 0 else ():
                    bit = bit + self._copied(self.word[source], cube)
            bits.append(bit)
        return stack(*bits)

    def _first(self) -> Expression:
        """x is rs1; of lui it is x0, of auipc the program counter. Instructions without either may read any register."""
        def sort(instruction: Instruction) -> str | None:
            if instruction.opcode in (isa.LUI, isa.AUIPC):
                return "zero" if instruction.opcode == isa.LUI else "own"
            return "register" if "rs1" in instruction.uses else None

        return self._pointer("rs1", self.sizes.decoder.opcodes(sort))

    def _second(self) -> Expression:
        """y is rs2, or the immediate where the arithmetic unit uses it."""
        def sort(instruction: Instruction) -> str | None:
            if instruction.opcode in (isa.OP_IMM, isa.LUI, isa.AUIPC):
                return "own"
            return "register" if "rs2" in instruction.uses else None

        return self._pointer("rs2", self.sizes.decoder.opcodes(sort))

    def _pointer(self, field: str, classes: dict[str, list[Cube]]) -> Expression:
        """The number of a register, and whether the scratchpad's own rows are meant: then the number is 0."""
        at = FIELDS[field]
        register, own = 0.0 * self.word[at : at + 5], 0.0 * self.one
        for cube in classes["register"]:
            register = register + self._copied(self.word[at : at + 5], cube)
        for cube in classes["own"]:
            own = own + conjunction(self._closed(cube), self.one)
        return stack(register, own)

    def _call(self) -> Expression:
        """1 where the word is ecall or ebreak."""
        return stack(*(conjunction(self._closed(fixed_bits(i)), self.one)
                       for i in self.sizes.decoder.instructions if i.format == "system")).total()

    # The program counter

    def _counter(self) -> Expression:
        """The next one; the same, where the instruction was refused."""
        one, refused = self.one, as_numbers(rows(self.layout, "event.fault"), self.one)
        return bits_where(self.next, refused, one) + bits_where(self.counter, one - refused, one)

    def _following(self) -> Expression:
        """The low half of the next program counter + 4, and the carry."""
        one, low = self.one, self.next[:HALF]
        carry = step_where(number(low, one) + (WORD_BYTES - (1 << HALF)) * one, 0.0 * one, one, WORD_BYTES - 1)
        return stack(offset_where(low, WORD_BYTES * one, WORD_BYTES, WORD_BYTES, 0.0 * one, one), carry)

    def _carried(self) -> Expression:
        """The carry from the low half of the next program counter plus the immediate of a jump or a branch.

        In the low half a sign may be repeated, in all places from its own on.
        """
        one, total = self.one, 0.0 * self.one
        size = 1 << HALF

        def sort(instruction: Instruction) -> tuple[int | None, ...] | None:
            return immediate_sources(instruction.format)[:HALF] if instruction.format in ("J", "B") else None

        for sources, cubes in self.sizes.decoder.opcodes(sort).items():
            form = number(self.next[:HALF], one)
            for place, source in enumerate(sources):
                form = form if source is None else form + 2.0**place * as_numbers(self.word[source], one)
            for cube in cubes:
                total = total + step_where(form - size * one, self._closed(cube), one, size)
        return total

    def _astray(self) -> Expression:
        """1 where the next program counter is not the address of a word of the memory."""
        one, sizes, inside = self.one, self.sizes, 0.0 * self.one
        reach = sizes.reach
        low, most = number(self.next[2:reach], one), (1 << reach - 2) - 1
        for page, first, last in sizes.pages:
            fixed = {0: 0, 1: 0} | {i: page >> i - reach & 1 for i in range(reach, WORD_BITS)}
            missing = absent(self.next, fixed, one)
            inside = inside + from_where(low, first // WORD_BYTES, 0, most, missing, one)
            inside = inside - from_where(low, last // WORD_BYTES, 0, most, missing, one)
        return one - inside
