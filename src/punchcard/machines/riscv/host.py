"""The host of the RISC-V machine: it serves system calls between loops, and says why a run ends.

The card tells it when to look, by the rows `event`:

    call     the next instruction is ecall or ebreak. The host does what the call asks for, in the registers and the memory
             of the card, and takes the event away; then a loop executes the ecall, which does nothing but go on
    fetch    the program counter is not in the memory
    fault    the last instruction was refused. Nothing of it was done, and the program counter is still there

What the host may change: the words of registers and memory, and that event.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from punchcard.card.layout import Card, Layout
from punchcard.card.packed import PackedCard
from punchcard.machines.ports import StreamHost
from punchcard.machines.riscv.calls import Calls
from punchcard.machines.riscv.designs.base import RiscvSizes, pending_word, settle
from punchcard.machines.riscv.isa import MASK, WORD_BYTES, decode
from punchcard.machines.riscv.oracle import RiscvFault, RiscvInterpreter, words_of
from punchcard.machines.riscv.program import RiscvProgram, Segment
from punchcard.machines.running import Mark
from punchcard.machines.streams import END_OF_INPUT, Read, Traffic, Write, writer

if TYPE_CHECKING:
    from punchcard.machines.riscv.machine import RiscvMachine


class CardGuest:
    """Registers and memory as they are on a card, for `Calls`. A word that is pending counts as stored."""

    def __init__(self, layout: Layout, sizes: RiscvSizes, card: Card) -> None:
        self._layout, self._base, self.card = layout, sizes.base, card
        self._registers, self._memory = layout.region("registers").start, layout.region("memory").start
        self._pending = pending_word(layout, card)
        self._place = layout.place("memory")

    def register(self, index: int) -> int:
        return self._number(self._registers + index)

    def set_register(self, index: int, value: int) -> None:
        if index:
            self._settle()
            self._layout.put_number_at(self.card, "memory", self._registers + index, value & MASK)

    def load(self, address: int, size: int) -> bytes:
        first, skipped = divmod(address - self._base, WORD_BYTES)
        count = -(-(skipped + size) // WORD_BYTES)
        return b"".join(self._word(first + i) for i in range(count))[skipped : skipped + size]

    def store(self, address: int, data: bytes) -> None:
        if not data:
            return
        self._settle()
        first, skipped = divmod(address - self._base, WORD_BYTES)
        count = -(-(skipped + len(data)) // WORD_BYTES)
        words = bytearray(b"".join(self._word(first + i) for i in (0, count - 1)))  # all between the two are new
        words[WORD_BYTES:WORD_BYTES] = bytes(WORD_BYTES * (count - 2)) if count > 2 else b""
        words[skipped : skipped + len(data)] = data
        for i in range(count):
            value = int.from_bytes(words[WORD_BYTES * i : WORD_BYTES * (i + 1)], "little")
            self._layout.put_number_at(self.card, "memory", self._memory + first + i, value)

    def _word(self, index: int) -> bytes:
        return self._number(self._memory + index).to_bytes(WORD_BYTES, "little")

    def _number(self, column: int) -> int:
        if self._pending is not None and self._pending[0] == column:
            return self._pending[1]
        if isinstance(self.card, PackedCard):
            return self.card.word(self._place, column)
        return self._layout.number_at(self.card, "memory", column)

    def _settle(self) -> None:
        """Store what is pending before anything is changed, so that it is not stored over the change."""
        if self._pending is not None:
            settle(self._layout, self.card)
            self._pending = None


class RiscvHost(StreamHost):
    """Serves system calls."""

    def __init__(
        self, machine: RiscvMachine, begin: Mark, read: Read, write: Write, last: int, program: RiscvProgram | None
    ) -> None:
        super().__init__(machine, begin, read, write, last)
        self._sizes, self._taken, kept = machine.sizes, bytearray(), begin.traffic.kept
        base = self._sizes.base
        self._program = program or RiscvProgram((Segment(base, bytes(WORD_BYTES)),), base, base)
        self._calls = Calls.of(self._program, self._sizes.memory, self._take, self._give, brk=kept[0] if kept else None,
                               input_ended=begin.traffic.input_ended, complain=self._complain)

    @property
    def traffic(self) -> Traffic:
        return replace(super().traffic, input_ended=self._calls.input_ended, kept=(self._calls.brk,))

    def _look(self, card: Card) -> bool:
        """Whether there is a call to serve; anything else ends the run."""
        events, word = self.events(card), decode(self._layout.number_at(card, "word", self._scratch))
        if {"fetch", "fault"} & set(events) or (events and word is not None and word.instruction.name != "ecall"):
            self.ended, self.fault = "fault", self._fault(card)
            return False
        return bool(events)

    def _fault(self, card: Card) -> RiscvFault | None:
        """What the interpreter says of the instruction at hand: it is put where the card is.

        A word that is pending makes no difference: it is never the instruction itself, and a refused one leaves none.
        """
        layout = self._layout
        at = RiscvInterpreter(self._program, self._sizes.memory, self._calls, multiply=self._sizes.multiply)
        at.memory = words_of(layout.numbers(card, "memory", "memory").astype("<u4").tobytes())
        at.registers = layout.numbers(card, "memory", "registers").tolist()
        at.program_counter = layout.number_at(card, "counter", self._scratch)
        return at.fault

    def _serve_instruction(self, loop: int, card: Card) -> None:
        if not self._look(card):
            return
        guest = CardGuest(self._layout, self._sizes, card)
        self.status = self._calls.ending(guest)
        if self.status is not None:
            self.ended = "halted"
            return
        if loop >= self._last:
            self._waiting = True
            return
        self._taken.clear()
        try:
            self._calls.serve(guest)
        except KeyboardInterrupt:
            self.ended, self._waiting = "interrupted", True
            return
        self._read.add(bytes(self._taken))
        self._waiting = False
        self._layout.put_number_at(card, "event.call", self._scratch, 0)

    def _take(self) -> int:
        value = super()._take()
        if value != END_OF_INPUT:
            self._taken.append(value)
        return value

    def _give(self, byte: int) -> None:
        self._written.add(bytes((byte,)))
        self._to(byte)

    def _complain(self, message: bytes) -> None:
        self._complaints.add(message)
        writer(self._to).complain(message)


def is_served(layout: Layout, card: Card) -> bool:
    """Whether the card is at an ecall that the host has served, and that no loop has executed yet."""
    scratch = layout.region("scratchpad").start
    word = decode(layout.number_at(card, "word", scratch))
    return word is not None and word.instruction.name == "ecall" and not layout.number_at(card, "event.call", scratch)
