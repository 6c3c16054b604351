"""Reading a FLEQ card: memory, program counter, and the pointers of instructions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from punchcard.card.encoding import decode_unsigned, encode_unsigned
from punchcard.card.layout import Layout, Pattern
from punchcard.machines.fleq.designs.base import POINTERS, FleqSizes
from punchcard.machines.fleq.isa import Array, FleqState


@dataclass(frozen=True)
class FleqReader:
    """A column's content is `data` + `incoming`, one of which is 0 where a column has just been written."""

    sizes: FleqSizes
    layout: Layout

    def read(self, card: Tensor) -> FleqState:
        """The memory columns (rows by columns) and the program counter on a card."""
        return FleqState(self.memory(card), self.program_counter(card))

    def memory(self, card: Tensor) -> Array:
        """The memory columns on a card, rows by columns."""
        content = self.layout.get(card, "data", "memory") + self.layout.get(card, "incoming", "memory")
        return np.asarray(content[: self.sizes.size].to(torch.float64).numpy())

    def program_counter(self, card: Tensor) -> int:
        """The number of the next instruction."""
        column = decode_unsigned(self.layout.get(card, "program_counter", "scratchpad")[..., :1])[0]
        return int(column) - self.sizes.instruction_column

    def next_is(self, instruction: int) -> Pattern:
        """What stands on the card when an instruction is next."""
        bits = encode_unsigned(self.sizes.instruction_column + instruction, self.sizes.pointer_bits)[:, 0]
        return Pattern("program_counter", "scratchpad", tuple(int(bit) for bit in bits))

    def pointers(self, card: Tensor, instruction: int) -> dict[str, int]:
        """The pointers of an instruction on a card, as memory columns and (p) as an instruction's number."""
        place = self.layout.region("instructions").start + instruction
        column = card[self.layout.rows("data"), place] + card[self.layout.rows("incoming"), place]
        found = {}
        for name in POINTERS:
            address = int(decode_unsigned(column[self.sizes.field_rows(name)].unsqueeze(-1))[0])
            found[name] = address - (self.sizes.instruction_column if name == "p" else self.sizes.memory_column)
        return found

    def outside(self, card: Tensor, variables: int) -> Tensor:
        """The contents of all columns but the scratchpad's and the first `variables` of the memory, whole."""
        content = card[self.layout.rows("data")] + card[self.layout.rows("incoming")]
        memory = self.layout.region("memory")
        return torch.cat([content[:, self.layout.region("zero").start : memory.start],
                          content[:, memory.start + variables :]], dim=1)

    def code_among_outside(self, variables: int) -> slice:
        """Where the instructions are in what `outside` gives."""
        start = self.layout.region("instructions").start - self.layout.region("zero").start - variables
        return slice(start, start + self.sizes.instructions)
