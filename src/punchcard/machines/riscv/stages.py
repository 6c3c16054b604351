"""The proof of a RISC-V loop: an instruction is executed, case by case, and the next one is fetched and decoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from punchcard.card.facts import Fact
from punchcard.card.layout import Layout, RowBlock, holding
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.base import SINK, RiscvSizes
from punchcard.machines.riscv.designs.facts import FAULT, address_facts, aligned_fact, goes_to_a_cell
from punchcard.machines.riscv.isa import WORD_BITS, Instruction
from punchcard.machines.riscv.meaning import (
    ELSE,
    Meaning,
    Operands,
    Outcome,
    Word,
    executed,
    immediate_of,
    is_call,
    is_within,
    register,
)
from punchcard.machines.stages import Case, Stage


def instruction_cases(sizes: RiscvSizes) -> tuple[Case, ...]:
    """A case for each instruction, by its fixed bits, and one for words that are none."""
    known = sizes.decoder.instructions
    return (*(Case(one.name, "scratchpad", "word", one.mask, one.match) for one in known),
            Case(ELSE, "scratchpad", "word", 0, 0, tuple((one.mask, one.match) for one in known)))


def middle(layout: Layout, sizes: RiscvSizes, empty: Sequence[str], facts: Sequence[Fact]) -> Layout:
    """A layout in the middle of a loop: rows of bits that are passing hold them in the scratchpad, but for the `empty`."""
    def passing(block: RowBlock) -> RowBlock:
        holds = holding("bits", "scratchpad") if block.within == "bits" and block.name not in empty else block.holds
        return replace(block, holds=holds)

    return Layout([passing(block) for block in layout.blocks], layout.regions, [*address_facts(sizes), *facts])


class ThreeLayerStages:
    """Layers A and B execute an instruction; layer C stores its result, and fetches and decodes the next one.

    With the M extension its layers stand between B and C.
    """

    def __init__(self, sizes: RiscvSizes, layout: Layout, layers: int) -> None:
        self.sizes, self.layout, self.layers = sizes, layout, layers
        self.middle = middle(layout, sizes, ("fetched",), [
            aligned_fact(), aligned_fact("next", FAULT),
            Fact("scratchpad", goes_to_a_cell(sizes, "goal"), "the result goes to a word, to a register but x0, or to the sink")])

    @property
    def stages(self) -> tuple[Stage, ...]:
        last = self.layers - 1
        return (Stage("execute", (0, last), self.layout, self.middle, self._execute, instruction_cases(self.sizes)),
                Stage("fetch", (last, self.layers), self.middle, self.layout, self._fetch))

    def _execute(self, card: Meaning) -> None:
        for block in self.middle.blocks:
            if block.within == "bits" and block.holds:
                card.leave(block.name, "scratchpad")
        if card.case is None:
            return
        scratchpad = card.only("scratchpad")
        word, counter = scratchpad["word"], scratchpad["counter"]
        if card.case == ELSE:
            card.expect("event.fault", "scratchpad", card.number(1, 1))
            self._goes(card, None, word, Outcome(card.both(), counter), word)
            return
        one = isa.BY_NAME[card.case]
        given = operands(card, self.sizes, one, word, counter)
        found = executed(card, self.sizes, one, given)
        card.expect("event.fault", "scratchpad", card.bit(found.refused))
        card.expect("next", "scratchpad", found.next, where=card.negated(found.refused))
        self._goes(card, one, word, found, given.address)

    def _goes(self, card: Meaning, one: Instruction | None, word: Word, found: Outcome, address: Word) -> None:
        """Where the result goes, and what it is, unless it goes to the sink."""
        length = self.sizes.pointer_bits
        nowhere, place, lost = card.number(SINK, length), card.number(SINK, length), card.both()
        space = card.number(1, 1)
        if found.result is not None and one is not None:
            if one.writes_memory:
                lost, place = found.refused, card.part(address, 2, length)
                space = card.bit(found.refused)
            else:
                rd = register(card, word, "rd")
                lost = card.either(found.refused, rd == card.number(0, 5))
                place = card.wide(rd, length)
            card.expect("value", "scratchpad", found.result, where=card.negated(lost))
        card.expect("goal", "scratchpad", card.joined(card.choose(lost, nowhere, place), space))

    def _fetch(self, card: Meaning) -> None:
        scratchpad = card.only("scratchpad")
        goal, value, following, fault = (scratchpad[rows] for rows in ("goal", "value", "next", "event.fault"))
        fetched(card, self.sizes, goal, value, following)
        refused = fault == card.number(1, 1)
        card.expect("counter", "scratchpad", card.choose(refused, scratchpad["counter"], following))
        for rows in ("kind", "immediate", "first", "second", "following", "carried"):
            card.leave(rows, "scratchpad")


def operands(card: Meaning, sizes: RiscvSizes, one: Instruction, word: Word, counter: Word) -> Operands:
    """What an instruction reads: registers by their numbers, and the word of the memory at its address."""
    def read(field: str) -> Word:
        if field not in one.uses:
            return card.number(0, WORD_BITS)
        number = card.wide(register(card, word, field), sizes.pointer_bits)
        return card.named("registers", "address.position", number)["memory"]

    x, y, immediate = read("rs1"), read("rs2"), immediate_of(card, one.format, word)
    address = x + immediate
    loaded = x if not one.access_bytes else read_word(card, sizes, card.part(address, 2, sizes.pointer_bits))
    return Operands(word, counter, x, y, immediate, address, loaded)


def read_word(card: Meaning, sizes: RiscvSizes, position: Word) -> Word:
    """The word at a position of the memory."""
    regions = [region for region in sizes.cells if region in ("memory", "spare")]
    return card.read_named("memory", regions, "address.position", position)


def fetched(card: Meaning, sizes: RiscvSizes, goal: Word, value: Word, following: Word) -> None:
    """A value is stored at a column's address, and the word at the next program counter is read as it is then."""
    for region in sizes.cells:
        card.expect("memory", region, lambda cell: card.choose(cell["address"] == goal, value, cell["memory"]))
    position = card.part(following, 2, sizes.pointer_bits)
    stored = goal == card.joined(position, card.number(0, 1))
    word = card.choose(stored, value, read_word(card, sizes, position))
    card.expect("word", "scratchpad", word)
    card.expect("event.call", "scratchpad", card.bit(is_call(card, word)))
    inside = card.both(is_within(card, sizes, following), card.part(following, 0, 2) == card.number(0, 2))
    card.expect("event.fetch", "scratchpad", card.bit(card.negated(inside)))


def stages_of(sizes: RiscvSizes, layout: Layout, design: Any, layers: int) -> tuple[Stage, ...]:
    """The stages of a design, by its name."""
    return ThreeLayerStages(sizes, layout, layers).stages if design.name == "three-layer" else ()
