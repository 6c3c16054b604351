"""Design "two-layer": one RV32I instruction a loop, in two layers with two heads each, exact in float64.

The scratchpad begins a loop with the instruction that the loop before has fetched, and with a word that is *pending*: the
result of the instruction before, and where it goes.

A. Two heads read the registers x and y. Then the next program counter, the address, the operands of the arithmetic unit, and
   whether the instruction may be executed.
B. One head reads the word at the address. The other stores what is pending and fetches the next instruction, by a store key.
   Then the result, which is pending from here on, where it goes, and what was decoded of the fetched word.

In all heads the scratchpad's key is where the pending word goes, so that it is found as if it were stored. A float64 holds
sums of 32 bits at once, so every sum is one formula.

The store of an instruction is still pending when the next one is fetched. Where it goes to that very word, the old word must
not be executed: a jump to itself is taken in its place. The next loop executes the jump, stores the word, and fetches again.
This costs a loop, and no `fence.i` is needed.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np

from punchcard.card.encoding import Numbers
from punchcard.card.layout import Cards, Layout, persistent_bits
from punchcard.card.packed import PackedCard
from punchcard.errors import SizeError
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.base import (
    PENDING,
    SINK,
    RiscvDesign,
    RiscvSizes,
    looking,
    pending_word,
    register_pointer,
)
from punchcard.machines.riscv.designs.decode import ARITHMETIC, immediate_sources, source_of
from punchcard.machines.riscv.designs.execute import BITWISE, Checks, ResultPlace, arithmetic, as_compared
from punchcard.machines.riscv.designs.fetch import Fetch
from punchcard.machines.riscv.designs.formulas import BRANCHES, BranchFormula, NextCounter, appear, rewrite, vanish
from punchcard.machines.riscv.designs.layout import (
    column_blocks,
    counter_facts,
    instruction_facts,
    operand_blocks,
    passing,
    pending_fact,
    places,
)
from punchcard.machines.riscv.isa import FIELDS, STALL, WORD_BITS, WORD_BYTES, Instruction, operation_of
from punchcard.machines.story import WARMS_UP, Condition, Quote, Sentence, Story, ValuePlace, name
from punchcard.primitives.bits import number
from punchcard.primitives.gated_words import (
    equal_where,
    left_where,
    less_where,
    offset_where,
    right_where,
    sign_where,
    sum_where,
)
from punchcard.primitives.literals import Cube, absent, as_numbers, bits_where, conjunction, step_where
from punchcard.primitives.memory import clip_where, store_factor, store_gap
from punchcard.transformer.build import Part, assign, attend, clear
from punchcard.transformer.expression import Expression, rows, stack
from punchcard.transformer.precision import Precision

FLAGS = ("lawful", "aligned", "reached", "stalls")
PASSING = ("x", "y", "reference", "next", "flag", "brought")
FAR = 4.0
"""So much less does the scratchpad's key score in other columns, whatever it points to: there `nothing` always wins."""


class RiscvTwoLayer(RiscvDesign):
    """About 450 rows."""

    name: ClassVar[str] = "two-layer"
    lags: ClassVar[bool] = True

    def layout(self, sizes: RiscvSizes) -> Layout:
        if sizes.multiply:
            raise SizeError("design 'two-layer' with multiply=True: it has no products and quotients, use 'three-layer'")
        n, length = WORD_BITS, sizes.pointer_bits
        return Layout(
            [
                *column_blocks(sizes),
                persistent_bits("following", n, "pc + 4"),
                persistent_bits("target", n, "pc + immediate, of a jump or a branch"),
                persistent_bits("value", n, "the result of the instruction before, which is stored in this loop"),
                persistent_bits(PENDING, length + 1, "where that goes", places(sizes)),
                *operand_blocks(sizes),
                passing("reference", length + 2, "the low bits of x + immediate"),
                passing("next", n, "the next program counter"),
                passing("flag", len(FLAGS), "about the instruction", dict.fromkeys(FLAGS, 1)),
                passing("brought", n, "the word at the address"),
                passing("fetched", n, "the next instruction, as a head brings it"),
            ],
            sizes.regions,
            [*instruction_facts(sizes), *counter_facts(), pending_fact()],
        )

    def layers(self, sizes: RiscvSizes, layout: Layout, precision: Precision) -> list[Part]:
        memory, address, one, value = (rows(layout, name) for name in ("memory", "address", "inside", "value"))
        length = sizes.pointer_bits
        named = {field: register_pointer(layout, rows(layout, "word")[at : at + 5]) for field, at in FIELDS.items()}
        reference, following = rows(layout, "reference")[2:], rows(layout, "next")[2 : length + 2]
        return [
            self._read(layout, named["rs1"], "x")
            + self._read(layout, named["rs2"], "y")
            + Choose(sizes, layout).part,
            self._read(layout, stack(reference, -one), "brought")
            + attend(query=address + stack(following, -one), key=self._key(layout), value=stack(memory + value, 2 * value),
                     into=rows(layout, "fetched", "memory"), gap=store_gap(length + 1))
            + Complete(sizes, layout).part
            + Decode(sizes, layout, precision.gate).part,
        ]

    def story(self, sizes: RiscvSizes, layout: Layout) -> Story:
        pad, one, two, cell = ValuePlace(0), ValuePlace(0, head=0), ValuePlace(0, head=1), ValuePlace(0, head=1, gives=True)
        value = Quote(pad, "value")
        return (
            (Sentence("{instruction}: head 1 fetches x = {x} from {from_x}, and head 2 y = {y} from {from_y}.",
                      {"x": Quote(pad, "x"), "from_x": name(one), "y": Quote(pad, "y"), "from_y": name(two)},
                      [(WARMS_UP, "The first loop warms up: it executes a jump to the program's first instruction.")]),
             Sentence("The ReLU layer chooses the operands {x} and {y}, the address of a load or a store, and the next "
                      "instruction.", {"x": Quote(pad, "x"), "y": Quote(pad, "y")})),
            (Sentence("Head 1 fetches the word at that address, {word}. Head 2 stores {value}, the result before, in "
                      "{cell}, and fetches the next instruction from {next}.",
                      {"word": Quote(pad, "brought"), "value": replace(value, before=True), "cell": name(cell),
                       "next": name(two), "goal": Quote(pad, PENDING, "unsigned", before=True)},
                      [(Condition("goal", "==", sizes.sink), "Head 1 fetches the word at that address, {word}. Head 2 has "
                        "nothing to store, and fetches the next instruction from {next}.")]),
             Sentence("The ReLU layer computes the result, {value}, which waits to be stored, and decodes the next "
                      "instruction: {coming}.", {"value": value})),
        )

    def _key(self, layout: Layout) -> Expression:
        """A column's own address; in the scratchpad, where the pending word goes."""
        address = rows(layout, "address")
        return store_factor(address.size) * address + rows(layout, PENDING)

    def _read(self, layout: Layout, pointer: Expression, into: str) -> Part:
        """The scratchpad looks for a word, which may be the pending one; any other column looks at `nothing`."""
        query = stack(looking(layout, pointer), -FAR * rows(layout, "outside"))
        return attend(query=query, key=stack(self._key(layout), rows(layout, "inside")),
                      value=rows(layout, "memory") + rows(layout, "value"), into=rows(layout, into),
                      gap=store_gap(pointer.size))

    def following(self, entry: int) -> dict[str, int]:
        return {"target": entry, "following": (entry + WORD_BYTES) % (1 << WORD_BITS),
                f"{PENDING}.position": SINK, f"{PENDING}.space": 1}

    def read(self, sizes: RiscvSizes, layout: Layout, card: Cards) -> tuple[Numbers, Numbers, Numbers]:
        """As if what is pending were stored."""
        if not isinstance(card, PackedCard) and (isinstance(card, list | tuple) or card.ndim == 3):
            each = [self.read(sizes, layout, one) for one in card]
            return np.stack([one[0] for one in each]), np.stack([one[1] for one in each]), np.stack([one[2] for one in each])
        registers, words, counter = super().read(sizes, layout, card)
        column, value = pending_word(layout, card) or (-1, 0)
        for numbers, region in ((registers, layout.region("registers")), (words, layout.region("memory"))):
            if region.start <= column < region.stop:
                numbers[column - region.start] = value
        return registers, words, counter


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

    def _holds(self, branch: BranchFormula, closed: Expression) -> Expression:
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
