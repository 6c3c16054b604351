"""Design "three-layer": one RV32I instruction a loop, in three layers with 2, 1 and 1 heads, exact in float32.

The scratchpad begins a loop with the instruction that the loop before has fetched, and with what was decoded of it.

A. Two heads read the operands x and y. A pointer names a register, or the scratchpad itself: there x is the program counter,
   and y the immediate. Then the whole arithmetic unit, the address, and whether the instruction may be executed at all.
B. One head reads the word at the address. Then the result, where it goes, and the next program counter.
C. One head stores the result and fetches the next instruction by a store key, so an instruction that is stored in this loop
   is fetched as stored. Then the fetched word is decoded.

A sum of words is made in two layers, since 32 bits do not fit a float32: the low half and its carry, then the high half.
The carry of pc + immediate and the low half of pc + 4 are made in C, with the fetched word: so both are complete after A.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from punchcard.card.layout import Layout, persistent_bits
from punchcard.machines.riscv.designs.base import HALF, RiscvDesign, RiscvSizes, looking, register_pointer
from punchcard.machines.riscv.designs.control import control_blocks, control_facts, reset_rows
from punchcard.machines.riscv.designs.control_execute import ControlExecute, ControlFinish
from punchcard.machines.riscv.designs.control_fetch import ControlFetch
from punchcard.machines.riscv.designs.execute import Execute, Finish
from punchcard.machines.riscv.designs.extension import extended, extension_blocks
from punchcard.machines.riscv.designs.fetch import Fetch
from punchcard.machines.riscv.designs.layout import (
    column_blocks,
    half_facts,
    instruction_facts,
    operand_blocks,
    operand_facts,
    passing,
    places,
)
from punchcard.machines.riscv.designs.traps import Traps
from punchcard.machines.riscv.isa import BRANCH, JAL, LOAD, STORE, WORD_BITS, WORD_BYTES
from punchcard.machines.story import WARMS_UP, Condition, Quote, Sentence, Story, ValuePlace, name
from punchcard.primitives.memory import ADDRESS_GAP, store_factor, store_gap
from punchcard.transformer.build import Part, attend
from punchcard.transformer.expression import rows, stack
from punchcard.transformer.precision import Precision

OPERAND_GAP = 1.0
"""Less than the scores differ by: so much does the scratchpad's key score above a register's with the same signs."""
FLAGS = ("carry", "borrow", "same", "top", "turned", "aligned", "reached", "lawful")
PRIVILEGED_FLAGS = ("quiet", "silent")
LOADS, STORES, BRANCHES, JUMPS = (Condition("kind", "==", opcode >> 2) for opcode in (LOAD, STORE, BRANCH, JAL))
"""What `kind.operation` is for them."""


class RiscvThreeLayer(RiscvDesign):
    """About 430 rows."""

    name: ClassVar[str] = "three-layer"

    def layout(self, sizes: RiscvSizes) -> Layout:
        n, length = WORD_BITS, sizes.pointer_bits
        halves, reach = {"low": HALF, "carry": 1}, sizes.reach
        flags = FLAGS + PRIVILEGED_FLAGS * sizes.privileged
        reference = {"low": reach, **({"high": n - reach} if sizes.privileged else {"carry": 1})}
        return Layout(
            [
                *column_blocks(sizes),
                persistent_bits("first", 6, "where x is: a register, or the program counter", {"register": 5, "own": 1}),
                persistent_bits("second", 6, "where y is: a register, or the immediate", {"register": 5, "own": 1}),
                persistent_bits("following", HALF + 1, "pc + 4", halves),
                persistent_bits("carried", 1, "the carry from the low half of pc + immediate"),
                *operand_blocks(sizes),
                passing("value", n, "what the arithmetic unit gives; then the result"),
                passing("reference", sum(reference.values()), "x + immediate", reference),
                passing("flag", len(flags), "about the operands", dict.fromkeys(flags, 1)),
                passing("after", n - HALF, "the high half of pc + 4"),
                passing("target", n, "pc + immediate"),
                passing("brought", n, "the word at the address"),
                passing("fetched", n, "the next instruction, as a head brings it"),
                passing("next", n, "the next program counter"),
                passing("goal", length + 1, "where the result goes", places(sizes)),
                *extension_blocks(sizes),
                *control_blocks(sizes),
            ],
            sizes.regions,
            [*instruction_facts(sizes), *operand_facts(sizes), *half_facts(sizes), *control_facts(sizes)],
        )

    def layers(self, sizes: RiscvSizes, layout: Layout, precision: Precision) -> list[Part]:
        memory, one, brought = (rows(layout, name) for name in ("memory", "inside", "brought"))
        value, goal, address = (rows(layout, name) for name in ("value", "goal", "address"))
        length, low = sizes.pointer_bits, rows(layout, "reference.low")
        fetched = rows(layout, "next")[2 : length + 2]
        execute, finish, fetch = ((ControlExecute, ControlFinish, ControlFetch) if sizes.privileged
                                  else (Execute, Finish, Fetch))
        return extended(sizes, layout, [
            self._operand(layout, "first", "counter", "x")
            + self._operand(layout, "second", "immediate", "y")
            + execute(sizes, layout).part,
            attend(query=looking(layout, stack(low[2 : length + 2], -one)), key=address, value=memory, into=brought,
                   gap=ADDRESS_GAP)
            + finish(sizes, layout).part,
            *([Traps(sizes, layout).part] if sizes.privileged else []),
            attend(query=address + stack(fetched, -one), key=store_factor(length + 1) * address + goal,
                   value=stack(memory + value, 2 * value), into=rows(layout, "fetched", "memory"), gap=store_gap(length + 1))
            + fetch(sizes, layout, precision.gate).part,
        ])

    def story(self, sizes: RiscvSizes, layout: Layout) -> Story:
        pad, one, two, cell = ValuePlace(0), ValuePlace(0, head=0), ValuePlace(0, head=1), ValuePlace(0, head=0, gives=True)
        value, kind = Quote(pad, "value"), Quote(pad, "kind.operation", "unsigned")
        first = (Sentence("{instruction}: head 1 fetches x = {x} from {from_x}, and head 2 y = {y} from {from_y}.",
                          {"x": Quote(pad, "x"), "from_x": name(one), "y": Quote(pad, "y"), "from_y": name(two)},
                          [(WARMS_UP, "The first loop warms up: it executes a jump to the program's first instruction.")]),
                 Sentence("The ReLU layer is the arithmetic unit: it computes with {x} and {y}, in two halves.",
                          {"x": Quote(pad, "x", before=True), "y": Quote(pad, "y", before=True), "kind": kind},
                          [(LOADS, "The ReLU layer adds {x} and {y}: that is the address to load from."),
                           (STORES, "The ReLU layer adds the offset to {x}: that is the address to store at."),
                           (BRANCHES, "The ReLU layer compares {x} and {y}: that decides the branch."),
                           (JUMPS, "The ReLU layer adds the offset to the program counter: that is where to jump.")]))
        unused = "loads nothing: the word that the head brings, {word} from {place}, is not used."
        second = (Sentence("{instruction} " + unused,
                           {"word": Quote(pad, "brought"), "place": name(one), "kind": kind},
                           [(WARMS_UP, "The jump " + unused),
                            (LOADS, "The head fetches the word at that address: {word}, from {place}."),
                            (STORES, "The head fetches the word at that address, {word} from {place}: some of its bytes "
                             "may stay.")]),
                  Sentence("The result is {value}. The ReLU layer also chooses where it goes, and the next instruction.",
                           {"value": value, "kind": kind},
                           [(BRANCHES, "The ReLU layer chooses the next instruction. A branch has no result."),
                            (STORES, "The ReLU layer puts the stored bytes in their place: the word is {value} then.")]))
        traps = (None, Sentence("The ReLU layer looks for traps and interrupts."))
        third = (Sentence("The head stores {value} in {cell}, and fetches the next instruction from {next}.",
                          {"value": replace(value, before=True), "cell": name(cell), "next": name(one),
                           "goal": Quote(pad, "goal", "unsigned", before=True)},
                          [(Condition("goal", "==", sizes.sink),
                            "Nothing is stored. The head fetches the next instruction from {next}.")]),
                 Sentence("The ReLU layer decodes it: {coming}."))
        between = len(extended(sizes, layout, [Part()] * 3)) - 3 if sizes.multiply else 0
        steps = [(None, Sentence("The ReLU layer continues with a product and a quotient, digit by digit."))] * between
        return (first, second, *steps, *([traps] if sizes.privileged else []), third)

    def _operand(self, layout: Layout, pointer: str, own: str, into: str) -> Part:
        """A register, or rows of the scratchpad itself: its key is the pointer to x0, but for the bit `own`.

        That bit counts twice in the scratchpad's key. With it the scratchpad scores L + 3 and any other column L at most;
        without it a register scores L + 2, all other columns L at most, and the scratchpad L - 1.
        """
        one, outside = rows(layout, "inside"), rows(layout, "outside")
        register, itself = rows(layout, f"{pointer}.register"), rows(layout, f"{pointer}.own")
        query = stack(looking(layout, register_pointer(layout, register)), itself - outside)
        zero = register_pointer(layout, stack(*[-one] * register.size))
        key = stack(rows(layout, "address") + zero, 2 * one - outside)
        return attend(query=query, key=key, value=rows(layout, "memory") + rows(layout, own), into=rows(layout, into),
                      gap=OPERAND_GAP)

    def control(self, sizes: RiscvSizes, entry: int) -> dict[str, int]:
        return reset_rows(sizes, entry) if sizes.privileged else {}

    def following(self, entry: int) -> dict[str, int]:
        low = (entry + WORD_BYTES) % (1 << HALF)
        return {"following.low": low, "following.carry": int(low < WORD_BYTES)}
