"""Reading a FLEQ card: memory, program counter, and the pointers of instructions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from punchcard.card.encoding import decode_unsigned, encode_unsigned
from punchcard.card.layout import Card, Layout, Pattern
from punchcard.machines.fleq.designs.base import POINTERS, FleqDesign, FleqSizes
from punchcard.machines.fleq.isa import Array, FleqState


@dataclass(frozen=True)
class FleqReader:
    """What a design's cards say, as a program's state has it."""

    design: FleqDesign

    @property
    def sizes(self) -> FleqSizes:
        return self.design.sizes

    @property
    def layout(self) -> Layout:
        return self.design.card

    def read(self, card: Card) -> FleqState:
        """The memory columns (rows by columns) and the program counter on a card."""
        return FleqState(self.memory(card), self.program_counter(card))

    def memory(self, card: Card) -> Array:
        """The memory columns on a card, rows by columns."""
        return self.design.memory(card)

    def program_counter(self, card: Card) -> int:
        """The number of the next instruction."""
        return int(self.design.counter(card))

    def next_is(self, instruction: int) -> Pattern:
        """What is on the card when an instruction is next."""
        bits = encode_unsigned(self.sizes.instruction_column + instruction, self.sizes.pointer_bits)[:, 0]
        return Pattern("program_counter", "scratchpad", tuple(int(bit) for bit in bits))

    def instruction(self, card: Card, number: int) -> Array:
        """The column of an instruction on a card, as an array of its own."""
        return self._content(card, "instructions")[:, number : number + 1].copy()

    def pointers(self, card: Card, number: int) -> dict[str, int]:
        """The pointers of an instruction on a card, as memory columns and (p) as an instruction's number."""
        return self.pointers_in(self.instruction(card, number))

    def pointers_in(self, column: Array) -> dict[str, int]:
        """The same, of an instruction's column."""
        found = {}
        for name in POINTERS:
            address = int(decode_unsigned(column[self.sizes.field_rows(name)])[0])
            found[name] = address - (self.sizes.instruction_column if name == "p" else self.sizes.memory_column)
        return found

    def outside(self, card: Card, variables: int) -> Array:
        """The contents of all columns but the scratchpad's and the first `variables` of the memory, whole."""
        zero, unit, memory, code = (self._content(card, region) for region in FleqSizes.OUTSIDE)
        return np.concatenate([zero, unit, memory[:, variables:], code], axis=1)

    def _content(self, card: Card, region: str) -> Array:
        """Data, and what has just been written."""
        return self.layout.array(card, "data", region) + self.layout.array(card, "incoming", region)

    def code_among_outside(self, variables: int) -> slice:
        """Where the instructions are in what `outside` gives."""
        start = self.layout.region("instructions").start - self.layout.region("zero").start - variables
        return slice(start, start + self.sizes.instructions)
