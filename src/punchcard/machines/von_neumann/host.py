"""The host of the von Neumann machine: it serves the ports between loops, and says why a run ends.

The card tells it when to look (the rows `event`) and at what (the fetched words and the program counter, in the scratchpad).
It reads no cell of the memory. What it may change:

    the port cells                                    to hand over an input, and to empty the output once it is written
    the fetched operands, of an input instruction     to let the source be read from the input cell, and, where an input
                                                      sets its cell, to let the old value be read from the empty output cell
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from punchcard.card.layout import Card, Pattern
from punchcard.card.packed_stack import StackedCards
from punchcard.engines import Port
from punchcard.engines.controls import InputBuffer, OutputBuffer
from punchcard.errors import PunchcardError
from punchcard.machines.ports import BYTE, Answer, Host, HostInput, StreamHost
from punchcard.machines.running import Mark
from punchcard.machines.streams import END_OF_INPUT, Read, Write
from punchcard.machines.von_neumann.design import VonNeumannDesign, counter_on
from punchcard.machines.von_neumann.isa import Fault, Operand

if TYPE_CHECKING:
    from punchcard.machines.von_neumann.machine import VonNeumannMachine

OUTPUT = "output"
"""The event that an instruction has stored at the output port."""


class VonNeumannHost(StreamHost):
    """Serves the instructions with a port among their operands."""

    def __init__(self, machine: VonNeumannMachine, begin: Mark, read: Read, write: Write, last: int) -> None:
        super().__init__(machine, begin, read, write, last)
        self._sizes, self._dialect, first = machine.sizes, machine.dialect, machine.layout.region("ports").start
        self._ports = {address: first + i for i, address in enumerate(self._sizes.port_cells)}

    @property
    def ports(self) -> Mapping[Pattern, Port]:
        """An output alone goes to an output buffer; an output with another event, or any other event, is served here."""
        names = VonNeumannDesign.event_names
        alone = Pattern("event", "scratchpad", tuple(1 if name == OUTPUT else -1 for name in names))
        others = [pattern for name, pattern in zip(names, self._patterns, strict=True) if name != OUTPUT]
        buffer = OutputBuffer(self._layout, "memory", self._ports[self._sizes.output_port], 0, self._write)
        return {alone: buffer, **self._inputs(tuple(others)), **dict.fromkeys(others, self)}

    def _inputs(self, instead: tuple[Pattern, ...]) -> Mapping[Pattern, Port]:
        """Buffers for an input that can be read ahead: of instructions that hand it to the output, or to a cell."""
        numbers, sizes = HostInput(self), self._sizes
        if numbers.ahead(0) is None:
            return {}
        flags = tuple(1 if name == "source" else -1 for name in VonNeumannDesign.event_names)
        alone = Pattern("event", "scratchpad", flags)
        reads = self._is_word(sizes.source, self._dialect.input_port)
        writes = self._is_word(sizes.destination, sizes.output_port)
        place = "memory", self._ports[sizes.input_cell]
        return {pattern: InputBuffer(self._layout, also, place, self._input_sign(to_cell=to_cell),
                                     self._input_others(to_cell=to_cell), END_OF_INPUT, numbers, (*instead, alone), self)
                for pattern, also, to_cell in ((writes, (alone, reads), False), (alone, (reads,), True))}

    def _is_word(self, operand: str, value: int) -> Pattern:
        """The pattern of an operand that has this value."""
        return Pattern(f"word.{operand}", "scratchpad",
                       tuple(1 if value >> i & 1 else -1 for i in range(self._sizes.word_bits)))

    @classmethod
    def serve_many(cls, hosts: Sequence[Host], loops: Sequence[int], cards: StackedCards,
                   rows: Sequence[int]) -> list[Answer]:
        """Outputs alone, as an output buffer takes them."""
        own = [host for host in hosts if isinstance(host, VonNeumannHost)]
        first, memory, events = own[0], cards.words("memory").data, cards.words("event")
        column, alone = first._ports[first._sizes.output_port], 1 << VonNeumannDesign.event_names.index(OUTPUT)
        answers: list[Answer] = []
        for host, row, event in zip(own, rows, events[rows, first._scratch].tolist(), strict=True):
            if event != alone:
                answers.append(None)
                continue
            word, memory[row, column] = memory[row, column], 0
            try:
                host._write([word])
                answers.append(True)
            except PunchcardError as error:
                answers.append(error)
        return answers

    def _serve(self, loop: int, card: Card) -> None:
        """Write what the last instruction stored at the output port, and empty the port."""
        if OUTPUT in self.events(card):
            column = self._ports[self._sizes.output_port]
            self._write([self._layout.number_at(card, "memory", column)])
            self._layout.put_number_at(card, "memory", column, 0)
        self._serve_instruction(loop, card)

    def _serve_instruction(self, loop: int, card: Card) -> None:
        events = self.events(card)
        if "counter" in events:
            counter, memory = counter_on(card, self._sizes, self._layout), self._sizes.memory
            if counter >= self._sizes.halts_from:
                self.ended = "halted"
            else:  # there is no instruction
                self.ended, self.fault = "fault", Fault(counter, "instruction", max(counter, memory), memory)
        elif "source" in events or "destination" in events:
            self._look_at_operands(card)
            if self.ended is None:
                self._waiting = loop >= self._last or not self._give_input(card)

    def _word(self, card: Card, operand: str) -> int:
        return self._layout.number_at(card, f"word.{operand}", self._scratch)

    def _look_at_operands(self, card: Card) -> None:
        """Halt or refuse, where an operand says so."""
        names: tuple[Operand, Operand] = ("a", "b")
        words = {name: self._word(card, name) for name in names}
        if self._dialect.halt_port in words.values():
            self.ended = "halted"
            return
        for name in names:
            if self._sizes.data_end <= words[name] < self._sizes.first_port:
                counter = counter_on(card, self._sizes, self._layout)
                self.ended, self.fault = "fault", Fault(counter, name, words[name], self._sizes.memory)
                return

    def _write(self, words: Sequence[int]) -> None:
        """Where ports do not branch the output port holds 0 - mem[a], so the character is its negative."""
        self._waiting = False
        sign, byte = 1 if self._dialect.ports_branch else -1, BYTE & (1 << self._sizes.word_bits) - 1
        written = bytes(sign * word & byte for word in words)
        self._written.add(written)
        for byte in written:
            self._to(byte)

    def _give_input(self, card: Card) -> bool:
        """Put an input where the instruction reads it; False if there is none."""
        sizes, put = self._sizes, self._layout.put_number_at
        source, destination = (self._word(card, x) for x in (sizes.source, sizes.destination))
        port = self._dialect.input_port % (1 << sizes.word_bits)
        minuend = destination == port != sizes.output_port
        if source != port and not minuend:
            return True
        try:
            value = self._take()
        except KeyboardInterrupt:
            self.ended = "interrupted"
            return False
        if value != END_OF_INPUT:
            self._read.add(bytes((value,)))
        if minuend:  # the store that follows is lost: the next input takes its place
            put(card, "memory", self._ports[port], value % (1 << sizes.word_bits))
        if source != port:
            return True
        to_cell = destination < sizes.first_port
        given = self._input_sign(to_cell=to_cell) * value
        put(card, "memory", self._ports[sizes.input_cell], given % (1 << sizes.word_bits))
        for rows, column, number in self._input_others(to_cell=to_cell):
            put(card, rows, column, number)
        return True

    def _input_sign(self, *, to_cell: bool) -> int:
        """What an input is multiplied with, so that the instruction does with it what its dialect says."""
        return -1 if to_cell and self._dialect.input != "subtracts" else 1

    def _input_others(self, *, to_cell: bool) -> tuple[tuple[str, int, int], ...]:
        """The operands of an instruction that takes its source from the input cell: rows, column and number of each."""
        sizes, scratch = self._sizes, self._scratch
        source = (f"word.{sizes.source}", scratch, sizes.input_cell)
        if not to_cell or self._dialect.input != "sets":
            return (source,)
        return source, (f"word.{sizes.destination}", scratch, sizes.output_port), (f"away.{sizes.destination}", scratch, 1)
