"""A plain interpreter of SUBLEQ with one memory. It knows nothing of cards, tensors or transformers."""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Literal

from punchcard.machines.interpreter import Interpreter
from punchcard.machines.streams import Read, Write, reader
from punchcard.machines.von_neumann.isa import STANDARD, Dialect, Fault, Image, ImageState, Operand

Stop = Literal["halted", "fault"]


class ImageInterpreter(Interpreter[ImageState]):
    """Executes an image; words wrap modulo 2^word_bits, and no address does.

    `cells` are unsigned. An instruction is fetched whole before it is executed. `stop` says why no further instruction can
    be executed: the run has halted, or the next instruction would use an address beyond the memory (`fault`).
    """

    fault: Fault | None = None

    def __init__(
        self, image: Image, word_bits: int, memory: int, *, dialect: Dialect = STANDARD, read: Read | None = None,
        write: Write | None = None,
    ) -> None:
        self.cells: MutableSequence[int] = image.loaded(word_bits, memory, dialect)
        self.program_counter = 0
        self.stop: Stop | None = None
        self._bits = word_bits
        self._dialect = dialect
        self._read = read or reader(b"")
        self._written = bytearray()
        self._write = write or self._written.append
        self._first_port = dialect.first_port(word_bits)
        self._data_end = min(memory, self._first_port)
        self._code_end = min(memory - 2, dialect.halts_from(word_bits))
        self._input, self._output, self._halt = (
            None if port is None else port % (1 << word_bits)
            for port in (dialect.input_port, dialect.output_port, dialect.halt_port)
        )
        self._examine()

    @property
    def halted(self) -> bool:
        return self.stop is not None

    @property
    def state(self) -> ImageState:
        return ImageState(tuple(self.cells), self.program_counter)

    @property
    def output(self) -> bytes:
        """What was written, unless it went to a `write` of the caller's."""
        return bytes(self._written)

    def run(self, max_steps: int | None = None) -> None:
        """Continue until the run stops, or until `max_steps` instructions have been executed in all."""
        limit = -1 if max_steps is None else max(max_steps, self.steps)
        while self.stop is None and self.steps != limit:
            self._run_cells(limit)
            if self.stop is None and self.steps != limit:
                self._execute_port()
                self._examine()

    @property
    def waits(self) -> bool:
        """Whether the next instruction has a port among its operands."""
        return self.stop is None and max(self.operands()) >= self._first_port

    def step(self) -> None:
        """Execute the next instruction, if there is one."""
        self.run(self.steps + 1)

    def _run_cells(self, limit: int) -> None:
        """Execute instructions whose operands are all cells. The loop is all that most programs need: keep it tight."""
        cells, counter, steps = self.cells, self.program_counter, self.steps
        data_end, code_end = self._data_end, self._code_end
        mask, half = (1 << self._bits) - 1, 1 << (self._bits - 1)
        source, destination = (1, 0) if self._dialect.destination_first else (0, 1)
        while steps != limit and counter < code_end:
            a, b, c = cells[counter + source], cells[counter + destination], cells[counter + 2]
            if a >= data_end or b >= data_end:
                break
            result = cells[b] = (cells[b] - cells[a]) & mask
            counter = counter + 3 if 0 < result < half else c
            steps += 1
        self.program_counter, self.steps = counter, steps
        self._examine()

    def operands(self) -> tuple[int, int]:
        """Source and destination of the next instruction, where there is one."""
        a, b = self.cells[self.program_counter : self.program_counter + 2]
        return (b, a) if self._dialect.destination_first else (a, b)

    def _examine(self) -> None:
        """Find out whether the next instruction can be executed."""
        counter, memory = self.program_counter, len(self.cells)
        if counter >= self._dialect.halts_from(self._bits):
            self.stop = "halted"
            return
        if counter + 2 >= memory:
            self._refuse("instruction", max(counter, memory))
            return
        if self._halt is not None and self._halt in self.operands():
            self.stop = "halted"
            return
        names: tuple[Operand, Operand] = ("a", "b")
        for name, address in zip(names, self.cells[counter : counter + 2], strict=True):
            if self._data_end <= address < self._first_port:
                self._refuse(name, address)
                return

    def _refuse(self, operand: Operand, address: int) -> None:
        self.stop, self.fault = "fault", Fault(self.program_counter, operand, address, len(self.cells))

    def _execute_port(self) -> None:
        """An instruction with a port among its operands."""
        if self._dialect.ports_branch:
            self._execute_mapped()
            return
        cells, (source, destination) = self.cells, self.operands()
        if source == self._input:
            value = self._read()
            if destination == self._output:
                self._write(value % (1 << self._bits) & 0xFF)
            else:
                old = 0 if self._dialect.input == "sets" else cells[destination]
                change = -value if self._dialect.input == "subtracts" else value
                cells[destination] = (old + change) % (1 << self._bits)
        else:
            self._write(cells[source] & 0xFF)
        self.program_counter += 3
        self.steps += 1

    def _execute_mapped(self) -> None:
        """Ports in the place of cells: the rest is an ordinary instruction. It takes one input for all operands."""
        cells, (source, destination) = self.cells, self.operands()
        taken = self._read() if self._input in (source, destination) else 0
        old, subtracted = (taken if place == self._input else cells[place] if place < self._data_end else 0
                           for place in (destination, source))
        result = (old - subtracted) % (1 << self._bits)
        jump = cells[self.program_counter + 2]
        if destination == self._output:
            self._write(result & 0xFF)
        elif destination < self._data_end:
            cells[destination] = result
        self.program_counter = self.program_counter + 3 if 0 < result < 1 << (self._bits - 1) else jump
        self.steps += 1


def run(
    image: Image, *, word_bits: int | None = None, memory: int | None = None, dialect: Dialect = STANDARD,
    input: bytes = b"", max_steps: int | None = None,
) -> ImageInterpreter:
    """Run an image to its end, or for `max_steps` instructions."""
    word_bits, cells = dialect.sizes(word_bits, memory)
    interpreter = ImageInterpreter(image, word_bits, cells, dialect=dialect, read=reader(input))
    interpreter.run(max_steps)
    return interpreter
