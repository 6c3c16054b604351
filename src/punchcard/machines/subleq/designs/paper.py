"""Design "paper": the nine layers of the paper's SUBLEQ proof, corrected. At most two heads a layer."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import ClassVar

from punchcard.card.facts import AnyFact
from punchcard.card.layout import Card, Layout, RowBlock, holding
from punchcard.machines.meaning import Meaning
from punchcard.machines.story import Condition, Quote, Sentence, Story, ValuePlace, name
from punchcard.machines.subleq.designs.base import (
    COUNTER_FACT,
    EVERY_CELL,
    SCRATCHPAD,
    SubleqContent,
    SubleqDesign,
    SubleqSizes,
    card_facts,
    common_blocks,
    halts,
    is_halt,
    pointer_to,
)
from punchcard.machines.subleq.semantics import difference_of, jumps_at
from punchcard.primitives.bits import correct, flip_bits, increment_bits, select, sum_bits, word_flag
from punchcard.primitives.memory import read, write
from punchcard.transformer.build import Part, assign, clear
from punchcard.transformer.expression import rows
from punchcard.transformer.precision import Precision


class SubleqPaper(SubleqDesign):
    """The seven steps of the proof. Flag and program counter + 1 share a layer, which makes it nine and not ten."""

    name: ClassVar[str] = "paper"
    warm_up: ClassVar[int] = 0
    halting_register: ClassVar[str] = "pointer.b"

    def blocks(self, sizes: SubleqSizes) -> list[RowBlock]:
        n, common = sizes.word_bits, common_blocks(sizes)
        return [
            common["command"],
            RowBlock("memory", n, "the program's words", holds=holding("bits", *EVERY_CELL), changes=("memory",)),
            RowBlock("read_a", n, "mem[a], then -mem[a]"),
            RowBlock("read_b", n, "mem[b], then the difference, then the flag"),
            *(common[name] for name in ("pointer", "program_counter", "position", "inside")),
            RowBlock("v_new", max(3 * sizes.pointer_bits, 2 * n), "what attention has just moved"),
        ]

    def facts(self, sizes: SubleqSizes) -> list[AnyFact]:
        return [*card_facts(sizes, self.command_rows), COUNTER_FACT]

    def layers(self, sizes: SubleqSizes, layout: Layout, precision: Precision) -> list[Part]:
        n, length = sizes.word_bits, sizes.pointer_bits
        command, memory, read_a, read_b, pointer, pc, position, one, v_new = (
            rows(layout, block.name) for block in layout.blocks
        )
        pointer_a, pointer_b, pointer_c = (rows(layout, f"pointer.{x}") for x in "abc")
        flag, rest = read_b[:1], read_b[1:]
        read_at, write_at = (partial(f, position=position, inside=one, gate=precision.gate) for f in (read, write))
        return [
            # Step 1: read the instruction.
            read_at(pointer=pc, source=command, into=pointer, via=v_new[: 3 * length]),
            # Step 2: read the data, a head for each operand.
            read_at(pointer=pointer_a, source=memory, into=read_a, via=v_new[:n])
            + read_at(pointer=pointer_b, source=memory, into=read_b, via=v_new[n : 2 * n]),
            # Step 3: subtract, as mem[b] + (not mem[a] + 1).
            assign(read_a, flip_bits(read_a)),
            assign(read_a, increment_bits(read_a, one)),
            assign(read_b, sum_bits(read_b, read_a, one)) + clear(read_a),
            # Step 4: write the result back.
            write_at(pointer=pointer_b, source=read_b, into=memory, via=v_new[:n]),
            # Step 5: branch.
            assign(flag, word_flag(read_b, one)) + clear(rest) + assign(pc, increment_bits(pc, one)),
            assign(pc, select(flag, yes=pointer_c, no=pc, one=one)) + clear(flag),
            # Step 6: correct errors.
            assign(memory, correct(memory)) + assign(pointer, correct(pointer)) + assign(pc, correct(pc)),
            # Step 7, program termination, is the EOF instruction on the card: it changes nothing and jumps to itself.
        ]

    def story(self, sizes: SubleqSizes, layout: Layout) -> Story:
        one, two, cell = ValuePlace(0, head=0), ValuePlace(0, head=1), ValuePlace(0, head=0, gives=True)
        pointers = {x: pointer_to(f"pointer.{x}") for x in "abc"} | {"halts": halts("pointer.b")}
        read_a, read_b = (Quote(SCRATCHPAD, f"read_{x}") for x in "ab")
        was_a, was_b = (replace(quote, before=True) for quote in (read_a, read_b))
        counter, halting = {"next": pointer_to("program_counter")}, {"halts": halts("pointer.b")}
        tests = "The ReLU layer sets a flag: {difference} is"
        counts = "It also counts on, to {following}, which the next layer keeps or replaces."
        return (
            (Sentence("The program counter names {fetched}: the head fetches it.", {"fetched": name(one)}),
             Sentence("The ReLU layer puts it into pointer: subtract {a} from {b}, and go to {c} if that is not positive.",
                      pointers, [(is_halt("halts"), "The ReLU layer puts it into pointer: halt.")])),
            (Sentence("Head 1 fetches mem[{a}] = {word_a} and head 2 mem[{b}] = {word_b}.",
                      {"a": name(one), "b": name(two), "word_a": Quote(one, "memory"), "word_b": Quote(two, "memory")}),
             Sentence("The ReLU layer puts them into the scratchpad: read_a = {word_a}, read_b = {word_b}.",
                      {"word_a": read_a, "word_b": read_b})),
            (None, Sentence("The ReLU layer flips the bits of read_a: {word_a} becomes {flipped}.",
                            {"word_a": was_a, "flipped": read_a})),
            (None, Sentence("The ReLU layer adds 1: read_a is {negative}.", {"negative": read_a})),
            (None, Sentence("The ReLU layer adds {negative} to {word_b}: read_b is the difference, {difference}.",
                            {"negative": was_a, "word_b": was_b, "difference": read_b})),
            (Sentence("The head carries {difference} from the scratchpad to {cell}.",
                      {"difference": read_b, "cell": name(cell)}),
             Sentence("The ReLU layer stores it: {cell} is {word}.", {"cell": name(cell), "word": Quote(cell, "memory")})),
            (None, Sentence(f"{tests} positive, so it is 0. {counts}",
                            {"difference": was_b, "following": counter["next"], **halting}, [
                                (is_halt("halts"), f"{tests} not positive, so it is 1: a halt goes to itself."),
                                (Condition("difference", "<=", 0), f"{tests} not positive, so it is 1. {counts}")])),
            (None, Sentence("The flag is 0: the ReLU layer keeps the count, and {next} follows.",
                            {"flag": Quote(SCRATCHPAD, "read_b", "numbers", before=True, height=1), **counter}, [
                                (Condition("flag", "==", 1), "The flag is 1: the ReLU layer replaces the count by pointer "
                                                             "c, so {next} follows.")])),
            (None, Sentence("The ReLU layer corrects errors: every bit is exactly 1 or -1. Next is {next}.", counter)),
        )

    def punch(self, sizes: SubleqSizes, layout: Layout, content: SubleqContent, card: Card) -> None:
        super().punch(sizes, layout, content, card)
        layout.put_numbers(card, "scratchpad", {"program_counter": [sizes.instruction_column]})
        # Overwritten by the first read; any pointers will do.
        layout.put(card, "pointer", "scratchpad", -1.0)

    def meaning(self, sizes: SubleqSizes, card: Meaning) -> None:
        """The instruction at the program counter is read and executed."""
        counter = card.only("scratchpad")["program_counter"]
        command = card.at("instructions", counter)
        a, b, c = (command[f"command.{x}"] for x in "abc")
        difference = card.lemma(5, "read_b", "scratchpad",
                                difference_of(card.read("memory", EVERY_CELL, a), card.read("memory", EVERY_CELL, b)))
        card.expect("memory", "memory", lambda cell: cell.is_at(b).choose(difference, cell["memory"]))
        card.expect("pointer", "scratchpad", command["command"])
        card.expect("program_counter", "scratchpad", jumps_at(difference).choose(c, counter + 1))
