"""What the designs of the RISC-V machine share: sizes, columns, addresses, and how a card is punched and read.

An address on the card is L position bits and a bit `space`: memory or register. The columns are the scratchpad, 2^L words
of memory (those beyond the memory's end are `spare`), 32 registers, `sink` and `nothing`. What goes to x0, or is discarded,
goes to the sink, so x0 is never stored to. `nothing` holds no word: in the reading heads all columns but the scratchpad look
at it, so that a head brings 0 there.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from punchcard.card.encoding import Numbers, pointer_bits
from punchcard.card.layout import Card, Cards, Layout, Pattern, Region
from punchcard.errors import SizeError
from punchcard.machines.design import Design, event_patterns
from punchcard.machines.riscv.designs.decode import Decoder
from punchcard.machines.riscv.isa import STALL, WORD_BITS, WORD_BYTES
from punchcard.machines.riscv.kind import MOST_BITS
from punchcard.transformer.expression import Expression, rows, stack

REGISTER_COUNT = 32
SINK, NOTHING = 32, 33
"""Addresses in the space of registers."""
LEAST_BITS = 6
HALF = 16
"""Sums of words are made in two layers: so many low bits, then the rest."""
PENDING = "pending"
"""Where results lag: the rows of the scratchpad that say where the last result goes, which the next loop stores. `SINK` in
the space of registers: nothing is pending."""
EVENTS = ("call", "fetch", "fault")
"""The next instruction is ecall or ebreak; it is not in the memory; it was refused, and nothing of it was done."""
PRIVILEGED_EVENTS = ("bus", "wait")
"""Of a privileged machine: an access is for the host to serve, or to refuse; the next instruction is wfi."""


@dataclass(frozen=True)
class RiscvSizes:
    """A machine with `memory` words from the address `base` on. A word at address a has the position a / 4 modulo 2^L.

    `privileged`: with traps, control registers and atomic instructions.
    """

    memory: int
    base: int = 0
    multiply: bool = False
    privileged: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.memory <= 1 << MOST_BITS:
            raise SizeError(f"memory={self.memory}: it must be an integer, 1 to {1 << MOST_BITS}")
        if self.base % WORD_BYTES or not 0 <= self.base <= self.end <= 1 << WORD_BITS:
            raise SizeError(f"base={self.base:#x}: with a memory of {self.memory} words it must be a multiple of "
                            f"{WORD_BYTES}, 0 to {(1 << WORD_BITS) - WORD_BYTES * self.memory:#x}")

    @property
    def pointer_bits(self) -> int:
        """L: the bits that name a column of the memory."""
        return max(LEAST_BITS, pointer_bits(self.memory))

    @property
    def sink(self) -> int:
        """The address of the column that takes discarded results, in rows: its position, then 1 for its space."""
        return SINK + (1 << self.pointer_bits)

    @property
    def spare(self) -> int:
        return (1 << self.pointer_bits) - self.memory

    @property
    def reach(self) -> int:
        """The low bits of an address, which are made first: all that point into the memory, and half a word at least."""
        return max(HALF, self.pointer_bits + 2)

    @property
    def pages(self) -> list[tuple[int, int, int]]:
        """Where the memory is: high bits of an address, and the low bits from and to, for each page of 2^reach bytes."""
        size = 1 << self.reach
        return [(page, max(0, self.base - page * size), min(size, self.end - page * size))
                for page in range(self.base // size, (self.end - 1) // size + 1)]

    @property
    def end(self) -> int:
        """The address after the last byte."""
        return self.base + WORD_BYTES * self.memory

    @property
    def events(self) -> tuple[str, ...]:
        """What a host looks at between two loops."""
        return PRIVILEGED_EVENTS if self.privileged else EVENTS

    @property
    def decoder(self) -> Decoder:
        return Decoder(self.multiply, self.privileged)

    @property
    def cells(self) -> tuple[str, ...]:
        """The regions that hold words."""
        return ("memory", *(("spare",) if self.spare else ()), "registers", "sink")

    @property
    def regions(self) -> list[Region]:
        about = "from the memory's end to 2^L words, which no program may use"
        return [
            Region("scratchpad", 1, "where the computation happens"),
            Region("memory", self.memory, "the words"),
            *([Region("spare", self.spare, about)] if self.spare else []),
            Region("registers", REGISTER_COUNT, "x0 to x31"),
            Region("sink", 1, "takes what goes to x0, or to nobody"),
            Region("nothing", 1, "holds no word: what all columns but the scratchpad read"),
        ]


@dataclass(frozen=True)
class RiscvContent:
    """What is punched: the words of the memory, all others being 0, the registers, and where to begin."""

    words: Sequence[int] | Numbers
    registers: Sequence[int]
    entry: int


class RiscvDesign(Design[RiscvSizes]):
    """What both designs have in common."""

    warm_up: ClassVar[int] = 1
    """The reset vector jumps to the entry."""
    idle: ClassVar[int] = 1
    lags: ClassVar[bool] = False
    """Whether the result of an instruction is stored in the loop after."""

    def weights(self, sizes: RiscvSizes, layout: Layout) -> int:
        return 30 * layout.width**2

    def events(self, sizes: RiscvSizes) -> tuple[Pattern, ...]:
        return event_patterns(len(sizes.events))

    def punch(self, sizes: RiscvSizes, layout: Layout, content: RiscvContent, card: Card) -> None:
        """Words, registers, addresses, and the reset vector on a blank card."""
        positions = (sizes.base // WORD_BYTES + np.arange(1 << sizes.pointer_bits)) % (1 << sizes.pointer_bits)
        numbers: dict[str, tuple[Sequence[int] | Numbers, Numbers]] = {
            "memory": (content.words, positions[: sizes.memory]), "spare": ((), positions[sizes.memory :]),
            "registers": (content.registers, np.arange(REGISTER_COUNT)), "sink": ((), np.array([SINK])),
        }
        for region in sizes.cells:
            layout.put_numbers(card, region, {"memory": numbers[region][0]}, rest=0)
        for region in (*sizes.cells, "nothing"):
            addresses = numbers[region][1] if region != "nothing" else np.array([NOTHING])
            layout.put_numbers(card, region, {"address.position": addresses})
            layout.put(card, "address.space", region, -1.0 if region in ("memory", "spare") else 1.0)
            layout.put(card, "outside", region, 1.0)
        layout.put(card, "inside", "scratchpad", 1.0)
        for block in layout.blocks:
            if block.holds.get("scratchpad") == "bits":
                layout.put(card, block.name, "scratchpad", -1.0)
        self.reset(sizes, layout, content.entry, card)

    def reset(self, sizes: RiscvSizes, layout: Layout, entry: int, card: Card) -> None:
        """The scratchpad before the first loop, in which all bits are 0: a jump to itself, at the entry."""
        kind = sum(bit << i for i, bit in enumerate(sizes.decoder.kind(STALL)))
        numbers = {"kind": kind, "word": STALL, "counter": entry, **self.following(entry), **self.control(sizes, entry)}
        layout.put_numbers(card, "scratchpad", {name: [number] for name, number in numbers.items()})

    def control(self, sizes: RiscvSizes, entry: int) -> dict[str, int]:
        """What a privileged machine begins with."""
        return {}

    @abstractmethod
    def following(self, entry: int) -> dict[str, int]:
        """What follows from an address of such a jump."""

    def read(self, sizes: RiscvSizes, layout: Layout, card: Cards) -> tuple[Numbers, Numbers, Numbers]:
        """Registers, words and the program counter, of a card or of each card of a batch."""
        return (layout.numbers(card, "memory", "registers"), layout.numbers(card, "memory", "memory"),
                layout.numbers(card, "counter", "scratchpad")[..., 0])


def register_pointer(layout: Layout, register: Expression) -> Expression:
    """A pointer to a register, by the five bits of its number."""
    one, above = rows(layout, "inside"), rows(layout, "address.position").size - register.size
    return stack(register, *[-one] * above, one)


def looking(layout: Layout, pointer: Expression) -> Expression:
    """A query by address: the scratchpad's own pointer; any other column looks at `nothing`."""
    outside, places = rows(layout, "outside"), range(rows(layout, "address.position").size)
    nothing = [*(1.0 if NOTHING >> j & 1 else -1.0 for j in places), 1.0]
    return pointer + stack(*(bit * outside for bit in nothing))


def pending_word(layout: Layout, card: Card) -> tuple[int, int] | None:
    """The column of a register or a word of the memory that is behind, and what will be stored there.

    Who looks at a card between two loops must see it as if it were stored; who changes a card stores it first.
    """
    if all(block.name != PENDING for block in layout.blocks):
        return None
    scratch, memory = layout.region("scratchpad").start, layout.region("memory")
    position = layout.number_at(card, f"{PENDING}.position", scratch)
    value = layout.number_at(card, "value", scratch)
    if layout.number_at(card, f"{PENDING}.space", scratch):
        return (layout.region("registers").start + position, value) if position < SINK else None
    first = layout.number_at(card, "address.position", memory.start)
    column = memory.start + (position - first) % (1 << layout.place("address.position").size)
    return column, value


def settle(layout: Layout, card: Card) -> None:
    """Store what is pending, and let nothing be pending."""
    found = pending_word(layout, card)
    if found is None:
        return
    scratch = layout.region("scratchpad").start
    layout.put_number_at(card, "memory", *found)
    layout.put_number_at(card, f"{PENDING}.position", scratch, SINK)
    layout.put_number_at(card, f"{PENDING}.space", scratch, 1)
