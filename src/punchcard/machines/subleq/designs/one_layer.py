"""Design "one-layer": one loop is a single layer with three heads.

One attention cannot follow a pointer that it has just read. So every instruction column keeps the words of its two
operands beside it (the caches), refreshed in every loop by its own attention, and the scratchpad keeps the last result
and its address (the store buffer) for the one loop that it takes to reach the memory and the caches.

In one loop, with w the buffered word and p its address:

    head          column          finds                                    takes
    fetch/store   scratchpad      instruction pc                           b, c, next, cache_b - cache_a
                  cell p          the scratchpad                           w
                  other columns   itself                                   nothing that stays
    operand x     instruction     the cell x names, or the scratchpad      the cell's word, or w
                                  when x = p
                  scratchpad      instruction pc when its x = p,           cache_x
                                  else itself                              w

The scratchpad's difference is cache_b - cache_a + (a = p ? cache_a : w) - (b = p ? cache_b : w), which is mem[b] - mem[a]:

    neither pending      cache_b - cache_a + w - w              only a pending    cache_b - w
    both (so a = b)      0                                      only b pending    w - cache_a

A cell's own command a and b name itself, so that its operand heads also find one column and not all of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from punchcard.card.facts import AnyFact, ColumnWords, Copies, Fact, Holds
from punchcard.card.layout import Card, Cards, Layout, RowBlock, holding, persistent_bits
from punchcard.machines.display_values import Pending
from punchcard.machines.meaning import Meaning
from punchcard.machines.story import Quote, Sentence, Story, ValuePlace, name
from punchcard.machines.subleq.designs.base import (
    CONSTANTS,
    COUNTER_FACT,
    EVERY_CELL,
    OUTSIDE,
    SCRATCHPAD,
    Reading,
    SubleqContent,
    SubleqDesign,
    SubleqSizes,
    card_facts,
    common_blocks,
    filled,
    halts,
    is_halt,
    own_numbers,
    pointer_to,
)
from punchcard.machines.subleq.semantics import difference_of, jumps_at
from punchcard.primitives.bits import branch, difference_bits
from punchcard.primitives.memory import clip, clip_where, store_factor, store_gap
from punchcard.transformer.build import Part, assign, attend, clear
from punchcard.transformer.expression import Rows, rows, stack
from punchcard.transformer.precision import Precision
from punchcard.words.word import Word, any_of


class SubleqOneLayer(SubleqDesign):
    """5 N + 9 L + 1 rows."""

    name: ClassVar[str] = "one-layer"
    warm_up: ClassVar[int] = 0
    halting_register: ClassVar[str] = "store_address"
    command_rows: ClassVar[tuple[str, str, str]] = ("operands.a", "operands.b", "targets.c")
    word_rows: ClassVar[tuple[str, ...]] = ("memory", "cache_a", "cache_b")
    words_alone: ClassVar[bool] = False
    column_pointers: ClassVar[tuple[str, ...]] = (
        "operands.a", "operands.b", "targets.c", "targets.next", "position", "program_counter", "store_address", "chosen.c",
        "chosen.next")
    pending: ClassVar[Pending | None] = Pending("store_address", "position", "store", 0)

    def blocks(self, sizes: SubleqSizes) -> list[RowBlock]:
        n, length, common = sizes.word_bits, sizes.pointer_bits, common_blocks(sizes)
        outside, targets = holding("bits", *OUTSIDE), {"c": length, "next": length}
        return [
            common["memory"],
            RowBlock("operands", 2 * length, "the columns that a and b name", {"a": length, "b": length}, outside),
            RowBlock("targets", 2 * length, "c and the following instruction", targets, holding("bits", "instructions")),
            *(RowBlock(f"cache_{x}", n, f"mem[{x}], as of the loop before", holds=outside,
                       changes=("memory", "instructions")) for x in "ab"),
            *(common[name] for name in ("position", "inside", "program_counter")),
            persistent_bits("store_address", length, "the cell that waits for its word"),
            persistent_bits("store", n, "the word"),
            RowBlock("difference", n, "mem[b] - mem[a], bit by bit"),
            RowBlock("chosen", 2 * length, "c and next of the instruction", targets),
        ]

    def facts(self, sizes: SubleqSizes) -> list[AnyFact]:
        """The caches hold what the memory holds, without the word that waits; a constant waits for nothing but itself."""
        counts = {region.name: region.size for region in sizes.regions}
        following = [*range(sizes.instruction_column + 1, sizes.columns), sizes.columns - 1]

        def waiting(column: ColumnWords) -> Word:
            address, word = column["store_address"], column["store"]
            return any_of(column.names(address, "memory"), *(address.equals(sizes.zero_column + i) & word.equals(number)
                                                             for i, number in enumerate(CONSTANTS)))

        return [
            *card_facts(sizes, self.command_rows),
            *filled(sizes, "scratchpad", "instructions"),
            *(Holds(f"operands.{x}", region, range(first, first + counts[region]))
              for x in "ab" for region, first in (("constants", sizes.zero_column), ("memory", sizes.memory_column))),
            Holds("targets.next", "instructions", following),
            *(Copies(f"cache_{x}", region, "memory", f"operands.{x}") for x in "ab" for region in OUTSIDE),
            COUNTER_FACT,
            Fact("scratchpad", waiting, "the word that waits goes to a cell, or is the constant that is there"),
        ]

    def layers(self, sizes: SubleqSizes, layout: Layout, precision: Precision) -> list[Part]:
        (memory, _, targets, cache_a, cache_b, position, one, pc, store_address, store, difference, chosen) = (
            rows(layout, block.name) for block in layout.blocks
        )
        operand_a, operand_b, chosen_c, chosen_next, next_one = (
            rows(layout, name) for name in ("operands.a", "operands.b", "chosen.c", "chosen.next", "targets.next")
        )
        length = sizes.pointer_bits
        store_key = store_factor(length) * position + store_address

        def read_operand(pointer: Rows, cache: Rows, sign: int) -> Part:
            return attend(
                query=stack(pointer, pc, store_address, one),
                key=stack(store_key, position, pointer, (2 * length - 1) * one),
                value=stack(2 * (memory + store + one), sign * (store + cache)),  # `one` undoes the scratchpad's -1
                into=rows(layout, cache.name, "difference"),
                gap=min(1.0, store_gap(length)),
            )

        fetch_and_store = attend(
            query=position + pc,
            key=store_key,
            value=stack(2 * operand_b, targets, cache_b - cache_a, 2 * store),
            into=rows(layout, "store_address", "chosen", "difference", "memory"),
            gap=store_gap(length),
        )
        return [
            fetch_and_store
            + read_operand(operand_a, cache_a, sign=+1)
            + read_operand(operand_b, cache_b, sign=-1)
            + assign(store, difference_bits(difference, one))
            + clear(difference)
            # An instruction column has read its own `next`: take it out again.
            + assign(pc, branch(difference, yes=chosen_c, no=chosen_next, one=one) - next_one)
            + clear(chosen)
            + clip(memory)
            + clip_where(one, store_address, precision.gate)
            + clip_where(1 - one, cache_a, precision.gate)
            + clip_where(1 - one, cache_b, precision.gate)
        ]

    def story(self, sizes: SubleqSizes, layout: Layout) -> Story:
        instruction = ValuePlace(0, head=0)
        return ((
            Sentence("Head 1 stores the waiting {waiting} in {waits}, and fetches {fetched}. Heads 2 and 3 bring {waiting} "
                     "to every instruction that uses {waits}.",
                     {"waiting": Quote(SCRATCHPAD, "store", before=True), "waits": pointer_to("store_address", before=True),
                      "fetched": name(instruction)}),
            Sentence("The ReLU layer subtracts {a} from {b}: {difference} waits for {b}. Next is {next}.",
                     {"a": Quote(instruction, "operands.a", names=True), "b": pointer_to("store_address"),
                      "difference": Quote(SCRATCHPAD, "store"), "next": pointer_to("program_counter"),
                      "halts": halts("store_address")},
                     [(is_halt("halts"), "The instruction is a halt: it changes nothing.")]),
        ),)

    def punch(self, sizes: SubleqSizes, layout: Layout, content: SubleqContent, card: Card) -> None:
        super().punch(sizes, layout, content, card)
        words = np.zeros(sizes.columns, dtype=np.int64)
        for region, numbers in (("constants", CONSTANTS), ("memory", content.words)):
            start = layout.region(region).start
            words[start : start + len(numbers)] = numbers
        for i, part in enumerate("ab"):
            layout.put_numbers(card, "instructions", {f"cache_{part}": words[content.commands[:, i]]}, signed=True)
            for region in EVERY_CELL:
                layout.put_numbers(card, region, {f"operands.{part}": own_numbers(layout, region)})
        following = np.minimum(own_numbers(layout, "instructions") + 1, sizes.columns - 1)
        layout.put_numbers(card, "instructions", {"targets.next": following})
        layout.put_numbers(card, "scratchpad", {"program_counter": [sizes.instruction_column],
                                                "store_address": [sizes.zero_column], "store": [0]})

    def read(self, sizes: SubleqSizes, layout: Layout, card: Cards, cells: int | None = None) -> Reading:
        found = super().read(sizes, layout, card, cells)
        pending = layout.numbers(card, "store", "scratchpad", signed=True)
        address = layout.numbers(card, "store_address", "scratchpad")
        return replace(found, words=np.where(own_numbers(layout, "memory")[:cells] == address, pending, found.words))

    def meaning(self, sizes: SubleqSizes, card: Meaning) -> None:
        """The word that waits reaches its cell and the caches; the instruction at the program counter makes the next one."""
        scratchpad = card.only("scratchpad")
        counter, waits, word = (scratchpad[name] for name in ("program_counter", "store_address", "store"))
        command = card.at("instructions", counter)
        a, b = command["operands.a"], command["operands.b"]

        def stored(pointer: Word) -> Word:
            return pointer.equals(waits).choose(word, card.read("memory", EVERY_CELL, pointer))

        minuend, subtrahend = card.difference(1, "difference", "scratchpad", stored(b), stored(a))
        difference = difference_of(subtrahend, minuend)
        for region in EVERY_CELL:
            for rows_name in ("memory", "cache_a", "cache_b"):
                card.expect(rows_name, region, lambda cell: cell.is_at(waits).choose(word, cell["memory"]))
        card.expect("cache_a", "instructions", lambda column: stored(column["operands.a"]))
        card.expect("cache_b", "instructions", lambda column: stored(column["operands.b"]))
        card.expect("store_address", "scratchpad", b)
        card.expect("store", "scratchpad", difference)
        card.expect("program_counter", "scratchpad",
                    jumps_at(difference).choose(command["targets.c"], command["targets.next"]))
