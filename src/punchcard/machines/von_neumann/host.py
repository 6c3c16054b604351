"""The host of the von Neumann machine: it serves the ports between loops, and says why a run ends.

The card tells it when to look (the rows `event`) and at what (the fetched words and the program counter, in the scratchpad).
It reads no cell of the memory. What it may change:

    the port cells                                    to hand over an input, and to empty the output once it is written
    the fetched operands, of an input instruction     to let the source be read from the input cell, and, where an input
                                                      sets its cell, to let the old value be read from the empty output cell
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from punchcard.card.layout import Card, Layout, Pattern
from punchcard.engines import Port
from punchcard.engines.controls import OutputBuffer
from punchcard.errors import PunchcardError
from punchcard.machines.ports import Host
from punchcard.machines.running import Mark
from punchcard.machines.streams import END_OF_INPUT, Read, Traffic, Write
from punchcard.machines.von_neumann.addresses import INSTRUCTION, AddressMap
from punchcard.machines.von_neumann.design import VonNeumannDesign
from punchcard.machines.von_neumann.isa import Dialect, Fault, Operand

BYTE = 0xFF
OUTPUT = "output"
"""The event that an instruction has stored at the output port."""


class VonNeumannHost(Host):
    """Called between loops when there is an event on the card.

    `last` is the last loop of the run; no input is read for an instruction that will not be executed, and the traffic says
    that it waits. A `read` that raises KeyboardInterrupt, as it does when somebody gives up waiting, ends the run and
    leaves the card as it was. A run that goes on from a mark at which an instruction waited gives it its input first.
    """

    def __init__(
        self, layout: Layout, sizes: AddressMap, dialect: Dialect, patterns: Sequence[Pattern], begin: Mark, read: Read,
        write: Write, last: int,
    ) -> None:
        self._layout, self._sizes, self._dialect, self._patterns = layout, sizes, dialect, patterns
        self._from, self._to, self._last = read, write, last
        self._read, self._written = bytearray(begin.traffic.read), bytearray(begin.traffic.written)
        self._waiting, self._input_ended = begin.traffic.waiting, begin.traffic.input_ended
        self._served, self._over = begin.loops, begin.ended
        self._scratch = layout.region("scratchpad").start
        self._ports = {address: layout.region("ports").start + i for i, address in enumerate(sizes.port_cells)}

    @property
    def ports(self) -> Mapping[Pattern, Port]:
        """An output alone goes to an output buffer; an output with another event, or any other event, is served here."""
        names = VonNeumannDesign.event_names
        alone = Pattern("event", "scratchpad", tuple(1 if name == OUTPUT else -1 for name in names))
        others = [pattern for name, pattern in zip(names, self._patterns, strict=True) if name != OUTPUT]
        buffer = OutputBuffer(self._layout, "memory", self._ports[self._sizes.output_port], 0, self._write)
        return {alone: buffer, **dict.fromkeys(others, self)}

    @property
    def traffic(self) -> Traffic:
        return Traffic(bytes(self._read), bytes(self._written), self._waiting, self._input_ended)

    def begin(self, card: Card) -> Card:
        """The card to begin with: an instruction that waited is given its input, and a run that has ended says why."""
        if self._over and "counter" in self._events(card):
            self._leave_code(self._counter(card))
        elif self._over:
            self._look_at_operands(card)
        if self._over or not self._waiting or self._served >= self._last:
            return card
        given = card.clone() if hasattr(card, "clone") else card.copy()
        self._serve_operands(self._served, given)
        return given

    def __call__(self, loop: int, card: Card) -> bool:
        """Look at all events at once; an engine that finds several on one card asks for each."""
        if loop != self._served:
            self._served, self._waiting = loop, False
            self._serve(loop, card)
        return self.ended is None

    def _serve(self, loop: int, card: Card) -> None:
        events = self._events(card)
        if OUTPUT in events:
            self._take_output(card)
        if "counter" in events:
            self._leave_code(self._counter(card))
        elif "source" in events or "destination" in events:
            self._serve_operands(loop, card)

    def _serve_operands(self, loop: int, card: Card) -> None:
        self._look_at_operands(card)
        if self.ended is None:
            self._waiting = loop >= self._last or not self._give_input(card)

    def _events(self, card: Card) -> list[str]:
        """What the card asks the host to look at."""
        word = self._layout.number_at(card, "event", self._scratch)
        return [name for i, name in enumerate(VonNeumannDesign.event_names) if word >> i & 1]

    def _word(self, card: Card, operand: str) -> int:
        return self._layout.number_at(card, f"word.{operand}", self._scratch)

    def _counter(self, card: Card) -> int:
        return (self._layout.number_at(card, "counter", self._scratch) - INSTRUCTION) % (1 << self._sizes.word_bits)

    def _leave_code(self, counter: int) -> None:
        """There is no instruction at the program counter."""
        if counter >= self._sizes.halts_from:
            self.ended = "halted"
        else:
            memory = self._sizes.memory
            self.ended, self.fault = "fault", Fault(counter, "instruction", max(counter, memory), memory)

    def _look_at_operands(self, card: Card) -> None:
        """Halt or refuse, where an operand says so."""
        names: tuple[Operand, Operand] = ("a", "b")
        words = {name: self._word(card, name) for name in names}
        if self._dialect.halt_port in words.values():
            self.ended = "halted"
            return
        for name in names:
            if self._sizes.data_end <= words[name] < self._sizes.first_port:
                self.ended, self.fault = "fault", Fault(self._counter(card), name, words[name], self._sizes.memory)
                return

    def _take_output(self, card: Card) -> None:
        """Write what the last instruction stored at the output port, and empty the port."""
        column = self._ports[self._sizes.output_port]
        self._write([self._layout.number_at(card, "memory", column)])
        self._layout.put_number_at(card, "memory", column, 0)

    def _write(self, words: Sequence[int]) -> None:
        """Where ports do not branch the output port holds 0 - mem[a], so the character is its negative."""
        self._waiting = False
        sign, byte = 1 if self._dialect.ports_branch else -1, BYTE & (1 << self._sizes.word_bits) - 1
        written = bytes(sign * word & byte for word in words)
        self._written += written
        for byte in written:
            self._to(byte)

    def _give_input(self, card: Card) -> bool:
        """Put an input where the instruction reads it; False if there is none."""
        sizes, rule, put = self._sizes, self._dialect.input, self._layout.put_number_at
        source, destination = (self._word(card, x) for x in (sizes.source, sizes.destination))
        port = self._dialect.input_port % (1 << sizes.word_bits)
        minuend = destination == port != sizes.output_port
        if source != port and not minuend:
            return True
        try:
            value = END_OF_INPUT if self._input_ended else self._from()
        except KeyboardInterrupt:
            self.ended = "interrupted"
            return False
        if value not in range(END_OF_INPUT, BYTE + 1):
            raise PunchcardError(f"the input gives {value!r}: it must be a byte, 0 to 255, or -1 at its end")
        self._input_ended = value == END_OF_INPUT  # a terminal could go on after its end: the program must not see that
        if not self._input_ended:
            self._read.append(value)
        if minuend:  # the store that follows is lost: the next input takes its place
            put(card, "memory", self._ports[port], value % (1 << sizes.word_bits))
        if source != port:
            return True
        to_cell = destination < sizes.first_port
        given = -value if to_cell and rule != "subtracts" else value
        put(card, "memory", self._ports[sizes.input_cell], given % (1 << sizes.word_bits))
        put(card, f"word.{sizes.source}", self._scratch, sizes.input_cell)
        if to_cell and rule == "sets":
            put(card, f"word.{sizes.destination}", self._scratch, sizes.output_port)
            put(card, f"away.{sizes.destination}", self._scratch, 1)
        return True
