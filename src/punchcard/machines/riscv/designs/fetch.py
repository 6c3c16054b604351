"""Layer C's feed-forward: the fetched word is decoded, the program counter continues, and all that was passing is cleared.

Other columns find themselves in this layer's head, so their rows `fetched` hold a word too. Every unit over these rows is
closed there by the row `outside`.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from punchcard.card.layout import Layout
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.base import HALF, RiscvSizes
from punchcard.machines.riscv.designs.decode import fixed_bits, immediate_sources, source_of
from punchcard.machines.riscv.designs.formulas import LayerFormulas, rewrite, vanish
from punchcard.machines.riscv.isa import FIELDS, WORD_BITS, WORD_BYTES, Instruction
from punchcard.primitives.bits import number
from punchcard.primitives.gated_words import from_where, offset_where
from punchcard.primitives.literals import Cube, absent, as_numbers, bits_where, conjunction, step_where
from punchcard.primitives.memory import clip_where
from punchcard.transformer.build import Part, clear
from punchcard.transformer.expression import Expression, stack

PASSING = ("x", "y", "value", "reference", "flag", "after", "target", "brought", "next", "goal")


class Fetch(LayerFormulas):
    """The formulas of layer C."""

    passing: ClassVar[tuple[str, ...]] = PASSING
    """Rows that are cleared."""

    def __init__(self, sizes: RiscvSizes, layout: Layout, gate: float) -> None:
        super().__init__(sizes, layout)
        self.gate, self.outside, self.fetched, self.next = gate, *map(self.rows, ("outside", "fetched", "next"))

    @property
    def part(self) -> Part:
        part = (
            clip_where(1 - self.one, self.rows("memory"), self.gate)
            + rewrite(self.word, self._copied(self.fetched, {}))
            + rewrite(self.kind, self._kind())
            + rewrite(self.immediate, self._immediate())
            + rewrite(self.rows("first"), self._pointer("x"))
            + rewrite(self.rows("second"), self._pointer("y"))
            + rewrite(self.counter, self._counter())
            + rewrite(self.rows("following"), self._following())
            + rewrite(self.rows("carried"), self._carried())
            + self._events()
            + clear(self.fetched)
        )
        return sum((vanish(self.rows(name), self.one) for name in self.passing), part)

    def _events(self) -> Part:
        """What the host must look at."""
        return rewrite(self.rows("event.call", "event.fetch"), stack(self._call(), self._astray()))

    # The fetched word

    def _closed(self, cube: Cube) -> Expression:
        """What is absent of some bits of the fetched word; in other columns more than a unit can make good."""
        return absent(self.fetched, cube, self.one) + (len(cube) + 1) * self.outside

    def _copied(self, bits: Expression, cube: Cube) -> Expression:
        """Bits of the fetched word, 0 or 1, where others are as given, else 0."""
        return bits_where(bits, self._closed(cube), self.one)

    def _kind(self) -> Expression:
        return stack(*(sum((self._copied(self.fetched[source], cube) for source, cube in terms), 0.0 * self.one)
                       for terms in self.sizes.decoder.kind_bits))

    def _immediate(self) -> Expression:
        """Each bit is one of the word's, by the format of the opcode; formats without an immediate may have any."""
        def bit(place: int) -> Expression:
            def sort(instruction: Instruction) -> int | None:
                if instruction.format not in isa.IMMEDIATES:
                    return None
                source = immediate_sources(instruction.format)[place]
                return -1 if source is None else source

            classes = self.sizes.decoder.opcodes(sort)
            return sum((self._copied(self.fetched[source], cube) for source, cubes in classes.items() for cube in cubes
                        if source >= 0), 0.0 * self.one)

        return stack(*map(bit, range(WORD_BITS)))

    def _pointer(self, operand: Literal["x", "y"]) -> Expression:
        """The number of a register, and whether the scratchpad's own rows are meant: then the number is 0."""
        classes, at = self.sizes.decoder.opcodes(lambda i: source_of(i, operand)), FIELDS["rs1" if operand == "x" else "rs2"]
        number = self.fetched[at : at + 5]
        register = sum((self._copied(number, cube) for cube in classes["register"]), 0.0 * number)
        own = sum((conjunction(self._closed(cube), self.one) for cube in classes["own"]), 0.0 * self.one)
        return stack(register, own)

    def _call(self) -> Expression:
        """1 where the word is ecall or ebreak."""
        return stack(*(conjunction(self._closed(fixed_bits(i)), self.one)
                       for i in self.sizes.decoder.instructions if i.format == "system")).total()

    # The program counter

    def _counter(self) -> Expression:
        """The next one; the same, where the instruction was refused."""
        one, refused = self.one, as_numbers(self.rows("event.fault"), self.one)
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
                form = form if source is None else form + 2.0**place * as_numbers(self.fetched[source], one)
            for cube in cubes:
                total = total + step_where(form - size * one, self._closed(cube), one, size)
        return total

    def _astray(self) -> Expression:
        """1 where the next program counter is not the address of a word of the memory."""
        return self.one - self._inside(0.0 * self.one)

    def _inside(self, closed: Expression) -> Expression:
        """1 where it is, and nothing is absent."""
        one, sizes, inside = self.one, self.sizes, 0.0 * self.one
        reach = sizes.reach
        low, most = number(self.next[2:reach], one), (1 << reach - 2) - 1
        for page, first, last in sizes.pages:
            fixed = {0: 0, 1: 0} | {i: page >> i - reach & 1 for i in range(reach, WORD_BITS)}
            missing = absent(self.next, fixed, one) + closed
            inside = inside + from_where(low, first // WORD_BYTES, 0, most, missing, one)
            inside = inside - from_where(low, last // WORD_BYTES, 0, most, missing, one)
        return inside
