"""The sizes of a von Neumann machine, and what its addresses mean."""

from __future__ import annotations

from dataclasses import dataclass

from punchcard.card.encoding import pointer_bits

INSTRUCTION = 3
"""The words of an instruction."""


@dataclass(frozen=True)
class AddressMap:
    """The sizes of a machine, and what its addresses mean. All numbers are unsigned.

    `first_port` is the least address that is a port for data, `output_port` the one whose cell a store may go to without
    the host, `halts_from` the least program counter that halts. `port_cells` are the addresses of the port columns.
    """

    word_bits: int
    memory: int
    first_port: int
    output_port: int
    halts_from: int
    port_cells: tuple[int, ...]
    input_cell: int
    destination_first: bool
    ports_branch: bool

    @property
    def pointer_bits(self) -> int:
        """L: the bits that name a cell."""
        return pointer_bits(self.memory)

    @property
    def spare(self) -> int:
        """How many columns fill the memory up to 2^L."""
        return (1 << self.pointer_bits) - self.memory

    @property
    def data_end(self) -> int:
        """The least address that is not a cell for data."""
        return min(self.memory, self.first_port)

    @property
    def code_end(self) -> int:
        """The least program counter that has no instruction: it halts, or one of its three words is beyond the memory."""
        return min(self.memory - INSTRUCTION + 1, self.halts_from)

    @property
    def source(self) -> str:
        """Which operand is subtracted."""
        return "b" if self.destination_first else "a"

    @property
    def destination(self) -> str:
        """Which operand is subtracted from, and stored to."""
        return "a" if self.destination_first else "b"
