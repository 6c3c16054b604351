"""The von Neumann machine: real SUBLEQ, one memory, self-modifying code, and a host that serves its ports.

Building a machine takes sizes and a dialect, never an image. The host is asked between loops only when the card says so.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from punchcard.arguments import checked
from punchcard.card.layout import Card, Cards
from punchcard.errors import ProgramError, PunchcardError
from punchcard.machines.base import AsPrecision, Machine
from punchcard.machines.comparison import Check
from punchcard.machines.design import Design, by_name
from punchcard.machines.display_values import DisplayValue, ListedInstruction, Listing, lines_of
from punchcard.machines.interpreter import Interpreter
from punchcard.machines.kind import Kind
from punchcard.machines.meaning import Meaning
from punchcard.machines.result import Readout, Result
from punchcard.machines.running import Mark
from punchcard.machines.streams import Read, Write
from punchcard.machines.von_neumann.addresses import INSTRUCTION, AddressMap
from punchcard.machines.von_neumann.design import VonNeumannDesign, counter_on
from punchcard.machines.von_neumann.host import VonNeumannHost
from punchcard.machines.von_neumann.in_c import ImageInC
from punchcard.machines.von_neumann.isa import Dialect, Image, ImageState, find_dialect
from punchcard.machines.von_neumann.kind import VON_NEUMANN
from punchcard.machines.von_neumann.meaning import meaning
from punchcard.machines.von_neumann.oracle import ImageInterpreter
from punchcard.words.word import as_signed

MOST_SHOWN = 64
"""Labelled cells that a view shows by name."""


@checked
class VonNeumannMachine(Machine[Image, ImageState]):
    """A looped transformer that executes SUBLEQ images (code and data in one memory), one instruction per loop.

    word_bits   N, the number of bits in a word; arithmetic is modulo 2^N
    memory      number of memory cells, at most 2^N. Default: 2^min(N, 16)
    precision   a number format or a `Precision`. Default: float32 if it is exact, else float64
    dialect     where the ports for input and output are: "standard", "adds", "subtracts" or "sic1". See docs/von-neumann.md
    """

    kind: ClassVar[Kind] = VON_NEUMANN
    designs: ClassVar[Mapping[str, Design[AddressMap]]] = by_name(VonNeumannDesign())
    default_max_steps: ClassVar[int | None] = None
    compared: ClassVar[Check | None] = None
    has_ports: ClassVar[bool] = True
    instruction_size: ClassVar[int] = INSTRUCTION
    sizes: AddressMap
    design: VonNeumannDesign

    def __init__(
        self,
        *,
        word_bits: int | None = None,
        memory: int | None = None,
        dialect: Dialect | str = "standard",
        design: str = "two-layer",
        precision: AsPrecision | None = None,
    ) -> None:
        self.dialect = find_dialect(dialect)
        bits, cells = self.dialect.sizes(word_bits, memory)
        self.build(address_map(self.dialect, bits, cells), design, precision or ("float32", "float64"),
                   {"word_bits": bits, "memory": cells, "dialect": self.dialect.name})

    def advice(self) -> str:
        return "use shorter words or a wider number format"

    @classmethod
    def sizes_for(cls, program: Image) -> dict[str, Any]:
        """The sizes that the image was compiled for. Default: the default memory, since images may use further cells."""
        sizes = {"word_bits": program.word_bits, "memory": program.memory}
        return {name: size for name, size in sizes.items() if size is not None}

    def title(self) -> str:
        return (f"von-neumann, design {self.design.name!r}, dialect {self.dialect.name!r}: {self.sizes.memory} words of "
                f"{self.sizes.word_bits} bits")

    def check_fits(self, program: Image) -> None:
        self.content(program)

    def content(self, program: Image) -> list[int]:
        """The image's own words, as unsigned numbers."""
        return program.unsigned(self.sizes.word_bits, self.sizes.memory, self.dialect)

    def meaning(self, card: Meaning) -> None:
        meaning(self.sizes, self.design.offsets, card)

    def states(self, cards: Cards) -> list[ImageState]:
        words, counters = self.design.read(self.sizes, self.layout, cards)
        pairs = zip(words.tolist(), counters.tolist(), strict=True)
        return [ImageState(tuple(memory), counter) for memory, counter in pairs]

    def readout(self, program: Image, card: Card) -> Readout:
        """The labelled cells and no others."""
        first = self.layout.region("memory").start
        words = {name: self.layout.number_at(card, "memory", first + address) for name, address in program.labels.items()
                 if address < self.sizes.memory}
        return Readout({name: self._signed(word) for name, word in words.items()}, counter_on(card, self.sizes, self.layout))

    def values(self, program: Image, state: ImageState) -> dict[str, Any]:
        """The labelled words, as signed numbers."""
        return {name: self._signed(state.memory[address]) for name, address in program.labels.items()
                if address < self.sizes.memory}

    def _signed(self, word: int) -> int:
        return as_signed(word, self.sizes.word_bits)

    def column_name(self, column: int, program: Image | None = None) -> str:
        cell = column - self.layout.region("memory").start
        if program is None or not 0 <= cell < self.sizes.memory:
            return self.layout.column_name(column)
        return program.name_of(cell)

    def host(self, begin: Mark, read: Read, write: Write, last: int, program: Image | None = None) -> VonNeumannHost:
        return VonNeumannHost(self, begin, read, write, last)

    def why_stopped(self, program: Image, result: Result[ImageState]) -> str:
        return program.messages.get(result.memory.get("error", 0)) or super().why_stopped(program, result)

    def oracle(self, program: Image, read: Read, write: Write) -> ImageInterpreter:
        """Its cells are an array, since all of them may be compared after every loop."""
        sizes = self.sizes
        found = ImageInterpreter(program, sizes.word_bits, sizes.memory, dialect=self.dialect, read=read, write=write)
        found.cells = array("q", found.cells)
        return found

    def quickest(self, program: Image) -> ImageInterpreter:
        return ImageInterpreter(program, self.sizes.word_bits, self.sizes.memory, dialect=self.dialect)

    def in_c(self, program: Image) -> ImageInC:
        return ImageInC(program, self.sizes.word_bits, self.sizes.memory, dialect=self.dialect)

    def differences(self, program: Image, card: Card, oracle: Interpreter[ImageState]) -> list[str]:
        assert isinstance(oracle, ImageInterpreter)
        cells, counter = self.layout.numbers(card, "memory", "memory"), counter_on(card, self.sizes, self.layout)
        wrong = np.flatnonzero(cells != np.asarray(oracle.cells)).tolist()
        found = [f"cell {program.name_of(address)} is {int(cells[address])}, the interpreter has {oracle.cells[address]}"
                 for address in wrong[:8]]
        if counter != oracle.program_counter:
            found.append(f"the program counter is {counter}, the interpreter's {oracle.program_counter}")
        return found

    def trace_line(self, program: Image, before: Card, after: Card) -> str:
        then, now = self.read(before), self.read(after)
        counter, cells = then.program_counter, self.sizes.memory
        if counter + 3 > cells:
            return f"[{counter}] outside the memory"
        words = then.memory[counter : counter + 3]
        operands = dict(zip("ab", words[:2], strict=True))
        source, target = operands[self.sizes.source], operands[self.sizes.destination]
        code = f"[{program.name_of(counter)}] {' '.join(self._place(program, word) for word in words)}"
        done = f"goto {program.name_of(now.program_counter)}"
        if source < self.sizes.data_end and target < self.sizes.data_end:
            old, taken, new = map(self._signed, (then.memory[target], then.memory[source], now.memory[target]))
            done = f"{program.name_of(target)} = {old} - {taken} = {new}, {done}"
        elif target < self.sizes.data_end:
            done = f"{program.name_of(target)} = {self._signed(now.memory[target])} from a port, {done}"
        return f"{code:<36} {done}"

    def display_values(self, program: Image) -> list[DisplayValue]:
        """The program counter, the fetched instruction, and the labelled cells."""
        scratch, first = self.layout.region("scratchpad").start, self.layout.region("memory").start
        found = [DisplayValue("program counter", "machine", "counter", scratch, kind="unsigned", offset=-INSTRUCTION,
                              wraps=True)]
        found += [DisplayValue(f"operand {x}", "machine", f"word.{x}", scratch) for x in "abc"]
        labelled = [(name, address) for name, address in program.labels.items() if address < self.sizes.memory]
        return found + [DisplayValue(name, "memory", "memory", first + address) for name, address in labelled[:MOST_SHOWN]]

    def listing(self, program: Image, source: str | None = None) -> Listing:
        """Three words are an instruction, from the first of each line on; data looks like instructions, too."""
        if source is None or not program.lines:
            return self._words(program)
        lines, first = lines_of(source), dict[int, int]()
        for address, line in enumerate(program.lines):
            first.setdefault(line, address)
        found = [ListedInstruction(address, line, self._code(program, address)) for address, line in enumerate(program.lines)
                 if line and (address - first[line]) % INSTRUCTION == 0 and address + INSTRUCTION <= len(program.words)]
        return Listing(lines, found)

    def _words(self, program: Image) -> Listing:
        starts = range(0, len(program.words) - INSTRUCTION + 1, INSTRUCTION)
        found = [ListedInstruction(address, line, self._code(program, address))
                 for line, address in enumerate(starts, start=1)]
        return Listing([f"{program.name_of(each.number)}: {each.text}" for each in found], found)

    def _code(self, program: Image, address: int) -> str:
        words = program.words[address : address + INSTRUCTION]
        return " ".join(self._place(program, word % (1 << self.sizes.word_bits)) for word in words)

    def _place(self, program: Image, word: int) -> str:
        """A word as the address that it is: by name, or where it is negative as that."""
        signed = self._signed(word)
        return program.name_of(word) if signed >= 0 else str(signed)

    def store(self, program: Image) -> str:
        """Words and labels; a disassembled image would have labels that its source does not have."""
        return json.dumps({"words": program.words, "labels": dict(program.labels), "source": program.source})

    def restore(self, text: str) -> Image:
        try:
            kept = json.loads(text)
            return Image(tuple(kept["words"]), kept["source"], dict(kept["labels"]))
        except PunchcardError:
            raise
        except (KeyError, TypeError, ValueError, RecursionError):
            raise ProgramError("the program is not an object with words, source and labels") from None


def address_map(dialect: Dialect, word_bits: int, memory: int) -> AddressMap:
    """What the addresses mean in a dialect.

    An input is handed over in a cell of its own: that of the port that only halts, or one next to the single port.
    """
    size = 1 << word_bits
    input_port, output_port = dialect.input_port % size, dialect.output_port % size
    input_cell = output_port - 1 if dialect.halt_port is None else dialect.halt_port
    return AddressMap(word_bits, memory, dialect.first_port(word_bits), output_port, dialect.halts_from(word_bits),
                      tuple(sorted({input_port, output_port, input_cell})), input_cell, dialect.destination_first,
                      dialect.ports_branch)
