"""Ports of a machine: what a host does between loops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from punchcard.card.layout import Card, Pattern
from punchcard.card.packed_stack import StackedCards
from punchcard.engines import Port, Skip
from punchcard.engines.controls import NumbersAhead
from punchcard.errors import PunchcardError
from punchcard.machines.streams import END_OF_INPUT, FileReader, KeptBytes, Read, TimedInput, Traffic, Write, Writer

if TYPE_CHECKING:
    from punchcard.machines.base import AnyMachine
    from punchcard.machines.running import Mark

BYTE = 0xFF
Answer: TypeAlias = bool | PunchcardError | None


class Host(ABC):
    """Serves the events of a run between loops, and says why it ended, where the card does not.

    Its ports are given the card as the engine has it, a tensor or packed: they use calls of the layout.

    ended   "halted", "reboot" (it asks for a new start), "fault" or "interrupted", once the host has stopped the run
    fault   what went wrong, as the machine's interpreter says it
    errors  what the program wrote to its second stream, where its machine has such a thing
    status  the exit status of a program that has halted, where its machine has such a thing
    looks_every   loops between two calls of `look`, or None if it is never called
    """

    ended: Literal["halted", "reboot", "fault", "interrupted"] | None = None
    fault: Any = None
    status: int | None = None
    looks_every: int | None = None

    def look(self, card: Card) -> None:
        """Look at a card between two parts of a run. It may say that the run ends here."""
        raise NotImplementedError

    @property
    def errors(self) -> bytes:
        return b""

    @property
    @abstractmethod
    def ports(self) -> Mapping[Pattern, Port]:
        """What to call at which pattern."""

    @property
    @abstractmethod
    def traffic(self) -> Traffic:
        """What has passed so far."""

    def begin(self, card: Card) -> Card:
        """The card to begin with, where something was left to do when the run was stopped."""
        return card

    @classmethod
    def serve_many(cls, hosts: Sequence[Host], loops: Sequence[int], cards: StackedCards,
                   rows: Sequence[int]) -> Sequence[Answer]:
        """Serve events on many cards of a batch at once: those in some rows, after so many loops, each with its own host.

        For each card whether its run continues, or the error that ends it; None: its own ports are to be called. Default:
        None for all. A class that has more to say has the same patterns for all programs.
        """
        return [None] * len(rows)


class StreamHost(Host):
    """A host of instructions that read and write bytes, which is called between loops when there is an event on the card.

    The card says with the rows `event` of its scratchpad what there is to do. `last` is the last loop of the run; an
    instruction that will not be executed is not served, and the traffic says that it waits. A `read` that raises
    KeyboardInterrupt, as it does when a wait is given up, ends the run and leaves the card as it was. A run that goes
    on from a mark at which an instruction waited serves it first.
    """

    def __init__(self, machine: AnyMachine, begin: Mark, read: Read, write: Write, last: int) -> None:
        self._layout, self._patterns = machine.layout, machine.events
        self._scratch = machine.layout.region("scratchpad").start
        self._from, self._to, self._last = read, write, last
        forgets = isinstance(write, Writer) and write.forgets
        self._read = KeptBytes(begin.traffic.read, "read", forgets=forgets)
        self._written = KeptBytes(begin.traffic.written, "written", forgets=forgets)
        self._complaints = KeptBytes(b"", "written to standard error", forgets=forgets)
        self._waiting, self._input_ended = begin.traffic.waiting, begin.traffic.input_ended
        self._served, self._over = begin.loops, begin.ended

    @property
    def ports(self) -> Mapping[Pattern, Port]:
        return dict.fromkeys(self._patterns, self)

    @property
    def traffic(self) -> Traffic:
        return Traffic(bytes(self._read), bytes(self._written), self._waiting, self._input_ended)

    @property
    def errors(self) -> bytes:
        return bytes(self._complaints)

    def events(self, card: Card) -> list[str]:
        """The names of the events on a card."""
        word = self._layout.number_at(card, "event", self._scratch)
        return [name for i, name in enumerate(self._layout.place("event").block.parts) if word >> i & 1]

    def begin(self, card: Card) -> Card:
        """The card to begin with: an instruction that waited is served, and a run that has ended says why."""
        if self._over:
            self._serve_instruction(self._last, card)
        if self._over or not self._waiting or self._served >= self._last:
            return card
        given: Card = card.clone() if hasattr(card, "clone") else card.copy()
        self._serve_instruction(self._served, given)
        return given

    def __call__(self, loop: int, card: Card) -> bool | Skip:
        """Look at all events at once; an engine that finds several on one card asks for each."""
        if loop != self._served:
            self._served, self._waiting = loop, False
            self._serve(loop, card)
        return self.ended is None

    def _serve(self, loop: int, card: Card) -> None:
        """Look at all events on a card."""
        self._serve_instruction(loop, card)

    @abstractmethod
    def _serve_instruction(self, loop: int, card: Card) -> None:
        """Serve the next instruction, where a loop is left to execute it; or say why the run ends."""

    def _take(self) -> int:
        """A byte of the input, or its end; once that was read, it stays at its end."""
        value = END_OF_INPUT if self._input_ended else self._from()
        if value not in range(END_OF_INPUT, BYTE + 1):
            raise PunchcardError(f"the input gives {value!r}: it must be a byte, 0 to 255, or -1 at its end")
        self._input_ended = value == END_OF_INPUT  # a terminal could continue after its end: the program must not see that
        return value

    def look_ahead(self, most: int) -> tuple[bytes, bool] | None:
        """Up to so many bytes of input that can be had without waiting, and whether it ends there, or None if unknown."""
        if self._input_ended:
            return b"", True
        return None if self._reader is None else self._reader.ahead(most)

    def take_ahead(self, count: int, ends: int) -> None:
        """An engine has handed over so many of these bytes, and so many times the end."""
        if self._reader is not None:
            self._read.add(self._reader.take(count, ends))
        self._waiting, self._input_ended = False, self._input_ended or ends > 0

    @property
    def bytes_taken(self) -> int:
        """Bytes of the input that this host has read."""
        return 0 if self._reader is None else self._reader.position

    @cached_property
    def _reader(self) -> FileReader | None:
        """The input, if it may be read ahead."""
        source = self._from.untimed if isinstance(self._from, TimedInput) else self._from
        return source if isinstance(source, FileReader) else None


class HostInput(NumbersAhead):
    """The input of a host that is there without waiting."""

    def __init__(self, host: StreamHost) -> None:
        self._host = host

    @property
    def position(self) -> int:
        return self._host.bytes_taken

    def ahead(self, most: int) -> tuple[Sequence[int], bool] | None:
        return self._host.look_ahead(most)

    def take(self, count: int, ends: int) -> None:
        self._host.take_ahead(count, ends)
