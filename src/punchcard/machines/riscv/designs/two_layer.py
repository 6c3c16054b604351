"""Design "two-layer": one RV32I instruction a loop, in two layers with two heads each, exact in float64.

The scratchpad begins a loop with the instruction that the loop before has fetched, and with a word that is *pending*: the
result of the instruction before, and where it goes.

A. Two heads read the registers x and y. Then the next program counter, the address, the operands of the arithmetic unit, and
   whether the instruction may be executed.
B. One head reads the word at the address. The other stores what is pending and fetches the next instruction, by a store key.
   Then the result, which is pending from here on, where it goes, and what was decoded of the fetched word.

In all heads the scratchpad's key is where the pending word goes, so that it is found as if it were stored.

The store of an instruction is still pending when the next one is fetched. Where it goes to that very word, the old word must
not be executed: a jump to itself is taken in its place. The next loop executes the jump, stores the word, and fetches again.
This costs a loop, and no `fence.i` is needed.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from punchcard.card.encoding import Numbers
from punchcard.card.layout import Card, Cards, Layout
from punchcard.card.packed import PackedCard
from punchcard.errors import SizeError
from punchcard.machines.riscv.designs.base import (
    PENDING,
    SINK,
    RiscvDesign,
    RiscvSizes,
    looking,
    pending_word,
    register_pointer,
)
from punchcard.machines.riscv.designs.choose import Choose
from punchcard.machines.riscv.designs.complete import Complete, Decode
from punchcard.machines.riscv.designs.layout import (
    column_blocks,
    instruction_facts,
    kept,
    operand_blocks,
    passing,
    pending_fact,
    places,
    whole_facts,
)
from punchcard.machines.riscv.isa import FIELDS, STALL, WORD_BITS, WORD_BYTES
from punchcard.primitives.memory import store_factor, store_gap
from punchcard.transformer.build import Part, attend
from punchcard.transformer.expression import Expression, rows, stack
from punchcard.transformer.precision import Precision

FLAGS = ("lawful", "aligned", "reached", "stalls")
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
                kept("following", n, "pc + 4"),
                kept("target", n, "pc + immediate, of a jump or a branch"),
                kept("value", n, "the result of the instruction before, which is stored in this loop"),
                kept(PENDING, length + 1, "where that goes", places(sizes)),
                *operand_blocks(),
                passing("reference", length + 2, "the low bits of x + immediate"),
                passing("next", n, "the next program counter"),
                passing("flag", len(FLAGS), "about the instruction", dict.fromkeys(FLAGS, 1)),
                passing("brought", n, "the word at the address"),
                passing("fetched", n, "the next instruction, as a head brings it"),
            ],
            sizes.regions,
            [*instruction_facts(sizes), *whole_facts(), pending_fact(sizes)],
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

    def reset(self, sizes: RiscvSizes, layout: Layout, entry: int, card: Card) -> None:
        kind = sum(bit << i for i, bit in enumerate(sizes.decoder.kind(STALL)))
        layout.put_numbers(card, "scratchpad", {
            "kind": [kind], "word": [STALL], "counter": [entry], "target": [entry],
            "following": [(entry + WORD_BYTES) % (1 << WORD_BITS)],
            f"{PENDING}.position": [SINK], f"{PENDING}.space": [1]})

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
