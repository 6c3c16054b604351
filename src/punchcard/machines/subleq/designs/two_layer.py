"""Design "two-layer": one loop is two layers, with two heads and one.

The scratchpad holds the instruction that was read in the loop before, so the data can be read at once (layer A), and
the same head that stores the result also reads the next instruction (layer B, by a store key). The reset
vector (cell 0, cell -1, first instruction) costs one warm-up loop: it subtracts 0 from -1 and jumps to the start.
"""

from __future__ import annotations

from typing import ClassVar

from punchcard.card.facts import AnyFact, ColumnWords, Fact
from punchcard.card.layout import Card, Layout, RowBlock, persistent_bits
from punchcard.machines.meaning import Meaning
from punchcard.machines.story import WARMS_UP, Condition, Quote, Sentence, Story, ValuePlace, name
from punchcard.machines.subleq.designs.base import (
    EVERY_CELL,
    SCRATCHPAD,
    SubleqContent,
    SubleqDesign,
    SubleqSizes,
    card_facts,
    common_blocks,
    filled,
    halts,
    is_eof,
    is_halt,
    is_instruction,
    pointer_to,
)
from punchcard.machines.subleq.semantics import difference_of, jumps_at
from punchcard.primitives.bits import branch, difference_bits, successor_bits
from punchcard.primitives.memory import ADDRESS_GAP, clip, clip_where, store_factor, store_gap
from punchcard.transformer.build import Part, assign, attend, clear
from punchcard.transformer.expression import rows
from punchcard.transformer.precision import Precision
from punchcard.words.word import Word


class SubleqTwoLayer(SubleqDesign):
    """2 N + 8 L + 1 rows."""

    name: ClassVar[str] = "two-layer"
    warm_up: ClassVar[int] = 1
    halting_register: ClassVar[str] = "pointer.b"
    counter_register: ClassVar[str] = "following"
    counter_offset: ClassVar[int] = 1
    column_pointers: ClassVar[tuple[str, ...]] = (*SubleqDesign.column_pointers, "following")

    def blocks(self, sizes: SubleqSizes) -> list[RowBlock]:
        common = common_blocks(sizes)
        return [
            *(common[name] for name in ("memory", "command", "position", "inside", "pointer")),
            persistent_bits("following", sizes.pointer_bits, "the column after the current instruction's"),
            RowBlock("difference", sizes.word_bits, "mem[b] - mem[a]: bit by bit, then as a word"),
        ]

    def facts(self, sizes: SubleqSizes) -> list[AnyFact]:
        return [
            *card_facts(sizes, self.command_rows),
            *filled(sizes, "scratchpad", "instructions"),
            Fact("scratchpad", lambda column: self._goes_on(sizes, column),
                 "the current instruction surely jumps, as EOF does, or another follows it"),
        ]

    def _goes_on(self, sizes: SubleqSizes, column: ColumnWords) -> Word:
        a, b, c = (column[f"pointer.{x}"] for x in "abc")
        return (is_eof(sizes, a, b) & column.names(c, "instructions")
                | is_instruction(column, a, b, c) & column.names(column["following"], "instructions"))

    def layers(self, sizes: SubleqSizes, layout: Layout, precision: Precision) -> list[Part]:
        memory, _, position, one, pointer, following, difference = (
            rows(layout, block.name) for block in layout.blocks
        )
        pointer_a, pointer_b, pointer_c = (rows(layout, f"pointer.{x}") for x in "abc")
        store_key = store_factor(sizes.pointer_bits) * position + pointer_b
        return [
            # A. The scratchpad reads mem[b] - mem[a]; any other column reads its own word twice, which cancels.
            attend(query=pointer_a + position, key=position, value=-memory, into=difference, gap=ADDRESS_GAP)
            + attend(query=pointer_b + position, key=position, value=memory, into=difference, gap=ADDRESS_GAP)
            + assign(difference, difference_bits(difference, one))
            + assign(following, branch(difference, yes=pointer_c, no=following, one=one)),
            # B. The scratchpad reads the next instruction; the cell that pointer b names takes the difference.
            attend(query=position + following, key=store_key, value=2 * rows(layout, "command", "difference"),
                   into=rows(layout, "pointer", "memory"), gap=store_gap(sizes.pointer_bits))
            + clip(memory)
            + clip_where(one, pointer, precision.gate)
            + clear(difference)
            + assign(following, successor_bits(following, one)),
        ]

    def story(self, sizes: SubleqSizes, layout: Layout) -> Story:
        one, two, cell = ValuePlace(0, head=0), ValuePlace(0, head=1), ValuePlace(0, head=0, gives=True)
        operands = {"a": name(one), "b": name(two), "word_a": Quote(one, "memory"), "word_b": Quote(two, "memory")}
        outcome = {"difference": Quote(SCRATCHPAD, "difference"), "next": pointer_to("following")}
        stored = {"cell": name(cell), "fetched": name(ValuePlace(0, head=0))}
        subtracts = "The ReLU layer subtracts {word_a} from {word_b}: the bits of {difference}."
        cleans, stores = "The ReLU layer makes clean bits of it", "{cell} is {word}"
        holds = ("The scratchpad holds {fetched}: subtract {next_a} from {next_b}, and go to {next_c} if that is not "
                 "positive.")
        return (
            (Sentence("Head 1 fetches mem[{a}] = {word_a} and head 2 mem[{b}] = {word_b} into difference.", operands, [
                (WARMS_UP, "The first loop warms up: its heads fetch the constants {word_a} and {word_b}, not words of the "
                           "program.")]),
             Sentence(f"{subtracts} It is positive, so {{next}} follows.", operands | outcome, [
                 (WARMS_UP, f"{subtracts} It is not positive, so the program begins at {{next}}."),
                 (Condition("difference", "<=", 0), f"{subtracts} It is not positive, so {{next}} is next.")])),
            (Sentence("The head stores {difference} in {cell}, and fetches {fetched} into the scratchpad.",
                      stored | {"difference": Quote(SCRATCHPAD, "difference", before=True)}, [
                          (WARMS_UP, "The head fetches {fetched} into the scratchpad.")]),
             Sentence(f"{cleans}: {stores}. {holds}",
                      stored | {"word": Quote(cell, "memory"), "halts": halts("pointer.b")}
                      | {f"next_{x}": pointer_to(f"pointer.{x}") for x in "abc"}, [
                          (is_halt("halts"), f"{cleans}: {stores}. The scratchpad holds {{fetched}}: halt."),
                          (WARMS_UP, f"{cleans}. {holds}")])),
        )

    def punch(self, sizes: SubleqSizes, layout: Layout, content: SubleqContent, card: Card) -> None:
        super().punch(sizes, layout, content, card)
        start = sizes.instruction_column
        layout.put_numbers(card, "scratchpad", {"pointer.a": [sizes.zero_column], "pointer.b": [sizes.minus_one_column],
                                                "pointer.c": [start], "following": [start]})

    def meaning(self, sizes: SubleqSizes, card: Meaning) -> None:
        """The instruction in the registers is executed, and the one at the next program counter is read."""
        scratchpad = card.only("scratchpad")
        a, b, c = (scratchpad[f"pointer.{x}"] for x in "abc")
        difference = card.lemma(1, "difference", "scratchpad",
                                difference_of(card.read("memory", EVERY_CELL, a), card.read("memory", EVERY_CELL, b)))
        target = card.lemma(1, "following", "scratchpad",
                            jumps_at(difference).choose(c, scratchpad["following"]))
        card.expect("memory", "memory", lambda cell: cell.is_at(b).choose(difference, cell["memory"]))
        card.expect("pointer", "scratchpad", card.read("command", ("instructions",), target))
        card.expect("following", "scratchpad", target + 1)
