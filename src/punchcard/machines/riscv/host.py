"""The host of the RISC-V machine: it serves system calls between loops, and says why a run ends.

The card tells it when to look, by the rows `event`:

    call     the next instruction is ecall or ebreak. The host does what the call asks for, in the registers and the memory
             of the card, and takes the event away; then a loop executes the ecall, which does nothing but continue
    fetch    the program counter is not in the memory
    fault    the last instruction was refused. Nothing of it was done, and the program counter is still there

What the host may change: the words of registers and memory, and that event.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import TYPE_CHECKING, Any, overload

from punchcard.card.layout import Card, Layout
from punchcard.card.packed import PackedCard
from punchcard.card.packed_stack import StackedCards
from punchcard.errors import PunchcardError
from punchcard.machines.ports import Answer, Host, HostInput, StreamHost
from punchcard.machines.riscv.calls import Calls
from punchcard.machines.riscv.designs.base import EVENTS, PENDING, RiscvSizes, pending_word, settle
from punchcard.machines.riscv.isa import MASK, WORD_BYTES, decode, encode
from punchcard.machines.riscv.oracle import RiscvFault, RiscvInterpreter
from punchcard.machines.riscv.program import RiscvProgram, Segment
from punchcard.machines.running import Mark
from punchcard.machines.streams import END_OF_INPUT, Read, Traffic, Write, writer

if TYPE_CHECKING:
    from punchcard.machines.riscv.machine import RiscvMachine

CALL = 1 << EVENTS.index("call")
ECALL = encode("ecall")


class CardGuest:
    """Registers and memory as they are on a card, for `Calls`. A word that is pending counts as stored.

    It is valid until `look` is called, or something else changes the card.
    """

    def __init__(self, layout: Layout, sizes: RiscvSizes, card: Card) -> None:
        self._layout, self._base, self._card = layout, sizes.base, card
        self._registers, self._memory = layout.region("registers").start, layout.region("memory").start
        self._pending: tuple[int, int] | None = None
        self._lags = any(block.name == PENDING for block in layout.blocks)
        self._words: MutableSequence[int] | memoryview = CardWords(layout, card, slice(None))
        if isinstance(card, PackedCard) and card.fields["memory"].flags.writeable:
            self._words = card.fields["memory"].data
        self.look()

    def look(self) -> None:
        """Look at the card anew: a loop was made since."""
        if self._lags:
            self._pending = pending_word(self._layout, self._card)

    def register(self, index: int) -> int:
        at = self._registers + index
        return self._words[at] if self._pending is None else self._number(at)

    def set_register(self, index: int, value: int) -> None:
        if index:
            self._settle()
            self._words[self._registers + index] = value & MASK

    def word(self, index: int) -> int:
        """A word of the memory."""
        return self._number(self._memory + index)

    def load(self, address: int, size: int) -> bytes:
        first, skipped = divmod(address - self._base, WORD_BYTES)
        return self._bytes(first, -(-(skipped + size) // WORD_BYTES))[skipped : skipped + size]

    def store(self, address: int, data: bytes) -> None:
        if not data:
            return
        self._settle()
        first, skipped = divmod(address - self._base, WORD_BYTES)
        count = -(-(skipped + len(data)) // WORD_BYTES)
        words = bytearray(self._bytes(first, count))
        words[skipped : skipped + len(data)] = data
        at = self._memory + first
        self._words[at : at + count] = memoryview(words).cast("I")

    def _bytes(self, first: int, count: int) -> bytes:
        """The bytes of some words."""
        at = self._memory + first
        if self._pending is None and isinstance(self._words, memoryview):
            return self._words[at : at + count].tobytes()
        return b"".join(self._number(at + i).to_bytes(WORD_BYTES, "little") for i in range(count))

    def _number(self, column: int) -> int:
        if self._pending is not None and self._pending[0] == column:
            return self._pending[1]
        return self._words[column]

    def _settle(self) -> None:
        """Store what is pending before anything is changed, so that it is not stored over the change."""
        if self._pending is not None:
            settle(self._layout, self._card)
            self._pending = None


class StackGuest(CardGuest):
    """The same of one of many cards: `turn_to` says which."""

    def __init__(self, layout: Layout, sizes: RiscvSizes, cards: StackedCards, row: int) -> None:
        self._cards, self._arrays = cards, cards.words("memory")
        super().__init__(layout, sizes, cards.card(row))

    def turn_to(self, row: int) -> None:
        self._words = self._arrays[row].data
        if self._lags:
            self._card = self._cards.card(row)
            self.look()


class CardWords(MutableSequence[int]):
    """The words in some columns of a card, by default of its memory, each read when it is asked for, of maybe millions."""

    def __init__(self, layout: Layout, card: Card, columns: slice | None = None) -> None:
        self._layout, self._card = layout, card
        self._columns = range(layout.columns)[columns or layout.region("memory")]

    def __len__(self) -> int:
        return len(self._columns)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> MutableSequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | MutableSequence[int]:
        columns = self._columns[index]
        if isinstance(columns, int):
            return self._layout.number_at(self._card, "memory", columns)
        return [self._layout.number_at(self._card, "memory", column) for column in columns]

    def __setitem__(self, index: Any, word: Any) -> None:
        columns = self._columns[index]
        for column, number in zip(columns, word, strict=True) if isinstance(index, slice) else ((columns, word),):
            self._layout.put_number_at(self._card, "memory", column, number)

    def __delitem__(self, index: int | slice) -> None:
        raise TypeError("a card has as many words as it has")

    def insert(self, index: int, word: int) -> None:
        raise TypeError("a card has as many words as it has")


class RiscvHost(StreamHost):
    """Serves system calls."""

    def __init__(
        self, machine: RiscvMachine, begin: Mark, read: Read, write: Write, last: int, program: RiscvProgram | None
    ) -> None:
        super().__init__(machine, begin, read, write, last)
        self._sizes, self._taken, kept = machine.sizes, bytearray(), begin.traffic.kept
        self._seen: Card | None = None
        self._guest: CardGuest | None = None
        base = self._sizes.base
        self._program = program or RiscvProgram((Segment(base, bytes(WORD_BYTES)),), base, base)
        self._calls = Calls.of(self._program, self._sizes.memory, self._take, self._give, brk=kept[0] if kept else None,
                               input_ended=begin.traffic.input_ended, complain=self._complain, ahead=HostInput(self))

    @property
    def traffic(self) -> Traffic:
        return Traffic(bytes(self._read), bytes(self._written), self._waiting, self._calls.input_ended, (self._calls.brk,))

    def _see(self, card: Card) -> None:
        """Look at a card. An engine shows the same one again and again."""
        if self._guest is not None and card is self._seen:
            self._guest.look()
            return
        self._seen, self._guest = card, CardGuest(self._layout, self._sizes, card)
        self._event, self._word = (self._layout.cell(card, rows, self._scratch) for rows in ("event", "word"))

    def _look(self, card: Card) -> bool:
        """Whether there is a call to serve; anything else ends the run."""
        self._see(card)
        events, word = self._event.get(), decode(self._word.get())
        if events & ~CALL or (events and word is not None and word.instruction.name != "ecall"):
            self.ended, self.fault = "fault", self._fault(card)
            return False
        return bool(events)

    def _fault(self, card: Card) -> RiscvFault | None:
        """What the interpreter says of the instruction at hand: it is put where the card is.

        A word that is pending makes no difference: it is never the instruction itself, and a refused one leaves none.
        """
        layout = self._layout
        at = RiscvInterpreter(self._program, self._sizes.memory, self._calls, multiply=self._sizes.multiply,
                              words=CardWords(layout, card))
        at.registers = layout.numbers(card, "memory", "registers").tolist()
        at.program_counter = layout.number_at(card, "counter", self._scratch)
        return at.fault

    def _serve_instruction(self, loop: int, card: Card) -> None:
        if self._look(card):
            assert self._guest is not None  # it was seen
            if self._serve_call(loop, self._guest):
                self._event.put(self._event.get() & ~CALL)

    def _serve_call(self, loop: int, guest: CardGuest) -> bool:
        """Serve the current call. False: it ends the run, or waits."""
        self.status = self._calls.ending(guest)
        if self.status is not None:
            self.ended = "halted"
            return False
        if loop >= self._last:
            self._waiting = True
            return False
        self._taken.clear()
        try:
            self._calls.serve_one(guest)
        except KeyboardInterrupt:
            self.ended, self._waiting = "interrupted", True
            return False
        if self._taken:
            self._read.add(bytes(self._taken))
        self._waiting = False
        return True

    @classmethod
    def serve_many(cls, hosts: Sequence[Host], loops: Sequence[int], cards: StackedCards,
                   rows: Sequence[int]) -> list[Answer]:
        """Calls, and nothing else: faults are handled elsewhere."""
        own = [host for host in hosts if isinstance(host, RiscvHost)]
        first, events, words = own[0], cards.words("event"), cards.words("word")
        guest = StackGuest(first._layout, first._sizes, cards, rows[0])
        at_calls = (events[rows, first._scratch] == CALL) & (words[rows, first._scratch] == ECALL)
        answers: list[Answer] = []
        done = []
        for host, loop, row, is_at_call in zip(own, loops, rows, at_calls.tolist(), strict=True):
            if not is_at_call or loop == host._served:
                answers.append(None)
                continue
            host._served, host._waiting = loop, False
            guest.turn_to(row)
            try:
                if host._serve_call(loop, guest):
                    done.append(row)
                answers.append(host.ended is None)
            except PunchcardError as error:
                answers.append(error)
        events[done, first._scratch] = 0
        return answers

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
