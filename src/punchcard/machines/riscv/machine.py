"""The RISC-V machine: a looped transformer that executes RV32I, one instruction a loop."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from punchcard.arguments import checked
from punchcard.budget import HELD
from punchcard.card.layout import Card, Cards
from punchcard.card.packed import PackedCard, least_bytes
from punchcard.engines import takes_packed
from punchcard.errors import ProgramError, PunchcardError
from punchcard.machines.base import AsPrecision, Machine
from punchcard.machines.comparison import Check
from punchcard.machines.design import Design, by_name
from punchcard.machines.display_values import DisplayValue, ListedInstruction, Listing, Pending, lines_of
from punchcard.machines.interpreter import Interpreter
from punchcard.machines.kind import Kind
from punchcard.machines.meaning import Meaning, Stage
from punchcard.machines.result import Readout
from punchcard.machines.riscv.calls import Calls
from punchcard.machines.riscv.control_view import control_displays, control_values, traced, with_line
from punchcard.machines.riscv.csrs import ROWS
from punchcard.machines.riscv.designs.base import PENDING, RiscvContent, RiscvDesign, RiscvSizes
from punchcard.machines.riscv.designs.control import read_control
from punchcard.machines.riscv.designs.three_layer import RiscvThreeLayer
from punchcard.machines.riscv.designs.two_layer import RiscvTwoLayer
from punchcard.machines.riscv.fast import QuickRiscv
from punchcard.machines.riscv.host import CardGuest, RiscvHost
from punchcard.machines.riscv.in_c import RiscvInC
from punchcard.machines.riscv.isa import INSTRUCTIONS, REGISTERS, WORD_BYTES, decode, signed
from punchcard.machines.riscv.kind import MOST_BITS, RISCV
from punchcard.machines.riscv.loop_differences import (
    RiscvLoopDifferences,
    control_differences,
    differing,
    differing_counter,
    serve_too,
)
from punchcard.machines.riscv.oracle import LaggingInterpreter, RiscvInterpreter, RiscvState
from punchcard.machines.riscv.privileged import PrivilegedInterpreter, PrivilegedState
from punchcard.machines.riscv.privileged_in_c import PrivilegedInC
from punchcard.machines.riscv.program import DEFAULT_MEMORY, END_OF_ADDRESSES, RiscvProgram, Segment, SourceLine
from punchcard.machines.riscv.syntax import text_of
from punchcard.machines.riscv.system.bus import Bus
from punchcard.machines.riscv.system.devices import Uart
from punchcard.machines.riscv.system_host import SystemHost, looks
from punchcard.machines.riscv.trap_stages import stages_of
from punchcard.machines.running import DEFAULT_ENGINE, Mark
from punchcard.machines.streams import Read, Traffic, Write

MOST_LISTED = 20_000
"""Instructions that a view lists."""


@checked
class RiscvMachine(Machine[RiscvProgram, RiscvState]):
    """A looped transformer that executes RISC-V programs (RV32I or RV32IM), one instruction per loop.

    memory      number of memory words (of 32 bits), default: 2^16
    base        the address of the first word, a multiple of 4
    multiply    True: with the M extension (mul, div, ...), which takes 24 more layers and float64
    privileged  True: with traps, interrupts, control registers and atomic instructions. It needs float64
    design      "three-layer", or "two-layer", which stores results one loop later and needs float64
    precision   a number format or a `Precision`. Default: float32 if it is exact, else float64
    """

    kind: ClassVar[Kind] = RISCV
    counter_base: ClassVar[int] = 16
    designs: ClassVar[Mapping[str, Design[RiscvSizes]]] = by_name(RiscvThreeLayer(), RiscvTwoLayer())
    default_max_steps: ClassVar[int | None] = None
    compared: ClassVar[Check | None] = None
    has_ports: ClassVar[bool] = True
    instruction_size: ClassVar[int] = WORD_BYTES
    keeps_weights: ClassVar[bool] = True
    sizes: RiscvSizes
    design: RiscvDesign

    def __init__(
        self, *, memory: int = DEFAULT_MEMORY, base: int = 0, multiply: bool = False, privileged: bool = False,
        design: str = "three-layer", precision: AsPrecision | None = None,
    ) -> None:
        self.build(RiscvSizes(memory, base, multiply, privileged), design, precision or ("float32", "float64"),
                   {"memory": memory, "base": base, "multiply": multiply, "privileged": privileged})

    def advice(self) -> str:
        return "use a smaller memory or a wider number format"

    @classmethod
    def sizes_for(cls, program: RiscvProgram) -> dict[str, Any]:
        """Room for the program, a stack and a heap: 2^16 words, or twice what the program takes."""
        most = min(1 << MOST_BITS, (END_OF_ADDRESSES - program.base) // WORD_BYTES)
        if program.needed_words > most:
            raise ProgramError(f"{program.where}the program needs {program.extent}, and a machine has {most} at most")
        wanted = max(DEFAULT_MEMORY, 1 << (2 * program.needed_words - 1).bit_length())
        return {"memory": min(wanted, most), "base": program.base, "multiply": multiplies(program)}

    def title(self) -> str:
        return (f"riscv, design {self.design.name!r}: {self.sizes.memory} words of memory from {self.sizes.base:#x} on, "
                f"{len(REGISTERS)} registers{', products and quotients' * self.sizes.multiply}"
                f"{', traps' * self.sizes.privileged}")

    # Cards

    def check_fits(self, program: RiscvProgram) -> None:
        if program.base != self.sizes.base:
            raise ProgramError(f"{program.where}the program's memory begins at {program.base:#x}, the machine's at "
                               f"{self.sizes.base:#x}: build it with base={program.base:#x}")
        program.check_fits(self.sizes.memory)

    def content(self, program: RiscvProgram) -> RiscvContent:
        words = np.trim_zeros(np.frombuffer(program.image(self.sizes.memory), dtype="<u4"), "b")
        return RiscvContent(words.astype(np.int64), program.registers(self.sizes.memory), program.entry)

    def states(self, cards: Cards) -> list[RiscvState]:
        found = self.design.read(self.sizes, self.layout, cards)
        parts = [(tuple(registers), tuple(words), counter)
                 for registers, words, counter in zip(*(part.tolist() for part in found), strict=True)]
        if not self.sizes.privileged:
            return [RiscvState(*part) for part in parts]
        assert not isinstance(cards, PackedCard)
        return [PrivilegedState(*part, tuple(read_control(self.layout, cards[i]).values())) for i, part in enumerate(parts)]

    def readout(self, program: RiscvProgram, card: Card) -> Readout:
        """The registers and the program counter; the memory is large."""
        guest = CardGuest(self.layout, self.sizes, card)
        registers = self._named([guest.register(i) for i in range(len(REGISTERS))])
        return Readout({**registers, **self._control(card)}, self.counter(card))

    def readouts(self, programs: Sequence[RiscvProgram], cards: Sequence[Card]) -> list[Readout]:
        """With arrays, where all words are in their columns."""
        packed = [card for card in cards if isinstance(card, PackedCard)]
        if self.design.lags or self.sizes.privileged or len(packed) < len(cards):
            return super().readouts(programs, cards)
        registers = self.layout.numbers(packed, "memory", "registers", signed=True).tolist()
        counters = self.layout.numbers(packed, "counter", "scratchpad")[:, 0].tolist()
        return [Readout(dict(zip(REGISTERS, own, strict=True)), counter)
                for own, counter in zip(registers, counters, strict=True)]

    def _control(self, card: Card) -> dict[str, int | str]:
        """Mode and control registers, where the machine has them."""
        if not self.sizes.privileged:
            return {}
        return control_values(read_control(self.layout, card), multiply=self.sizes.multiply)

    def counter(self, card: Card) -> int:
        """The program counter on a card."""
        return self.layout.number_at(card, "counter", self.layout.region("scratchpad").start)

    def values(self, program: RiscvProgram, state: RiscvState) -> dict[str, Any]:
        """The registers by the names of the calling convention, as signed numbers; and mode and control registers."""
        named = self._named(state.registers)
        if not isinstance(state, PrivilegedState):
            return named
        return named | control_values(dict(zip(ROWS, state.control, strict=True)), multiply=self.sizes.multiply)

    def _named(self, registers: Sequence[int]) -> dict[str, Any]:
        return {name: signed(value) for name, value in zip(REGISTERS, registers, strict=True)}

    def column_name(self, column: int, program: RiscvProgram | None = None) -> str:
        registers, memory = self.layout.region("registers"), self.layout.region("memory")
        if registers.start <= column < registers.stop:
            return str(REGISTERS[column - registers.start])
        if program is not None and memory.start <= column < memory.stop:
            name: str = program.name_of(self.sizes.base + WORD_BYTES * (column - memory.start))
            return name
        return self.layout.column_name(column)

    # Running

    def memory_to_run(self, engine: str = DEFAULT_ENGINE) -> int:
        """With traps, most rows are the scratchpad's alone, and their fields take no memory elsewhere."""
        if self.sizes.privileged and takes_packed(engine):
            return self.memory_to_build() + HELD * least_bytes(self.layout, self.precision.name)
        return super().memory_to_run(engine)

    def host(
        self, begin: Mark, read: Read, write: Write, last: int, program: RiscvProgram | None = None
    ) -> RiscvHost | SystemHost:
        host = SystemHost if self.sizes.privileged else RiscvHost
        return host(self, begin, read, write, last, program)

    @property
    def polls_input(self) -> bool:
        """Whether programs look for input and do not wait for it: those with a serial port."""
        return self.sizes.privileged

    def replayed(self, traffic: Traffic) -> Iterable[int]:
        return looks(traffic) if self.sizes.privileged else super().replayed(traffic)

    def refused(self, card: Card) -> int:
        """The one of the last loop, if it was a fault."""
        if self.sizes.privileged:
            return 0
        return self.layout.number_at(card, "event.fault", self.layout.region("scratchpad").start)

    def oracle(self, program: RiscvProgram, read: Read, write: Write) -> RiscvInterpreter:
        if self.sizes.privileged:
            bus = Bus(range(self.sizes.base, self.sizes.end), Uart(read, write), program.misaligned)
            return PrivilegedInterpreter(program, self.sizes.memory, bus, multiply=self.sizes.multiply)
        calls = Calls.of(program, self.sizes.memory, read, write)
        interpreter = LaggingInterpreter if self.design.lags else RiscvInterpreter
        return interpreter(program, self.sizes.memory, calls, multiply=self.sizes.multiply)

    def quickest(self, program: RiscvProgram) -> RiscvInterpreter:
        interpreter = PrivilegedInterpreter if self.sizes.privileged else QuickRiscv
        return interpreter(program, self.sizes.memory, multiply=self.sizes.multiply)

    def in_c(self, program: RiscvProgram) -> RiscvInterpreter:
        interpreter = PrivilegedInC if self.sizes.privileged else RiscvInC
        return interpreter(program, self.sizes.memory, multiply=self.sizes.multiply)

    def differences(self, program: RiscvProgram, card: Card, oracle: Interpreter[RiscvState]) -> list[str]:
        """As arrays: a memory of 65,536 words is compared after every loop (see `RiscvLoopDifferences`)."""
        assert isinstance(oracle, RiscvInterpreter)
        serve_too(self, card, oracle)
        registers, words, counter = self.design.read(self.sizes, self.layout, card)
        found = [differing(REGISTERS[i], int(registers[i]), oracle.registers[i])
                 for i in np.flatnonzero(registers != np.array(oracle.registers)).tolist()[:8]]
        for index in np.flatnonzero(words != np.asarray(oracle.memory)).tolist()[:8]:
            name = program.name_of(self.sizes.base + WORD_BYTES * index)
            found.append(differing(f"the word at {name}", int(words[index]), oracle.memory[index]))
        if int(counter) != oracle.program_counter:
            found.append(differing_counter(int(counter), oracle))
        return found + control_differences(self, card, oracle)

    def loop_differences(self, program: RiscvProgram, oracle: Interpreter[RiscvState]) -> RiscvLoopDifferences:
        assert isinstance(oracle, RiscvInterpreter)
        return RiscvLoopDifferences(self, program, oracle)

    def stages(self) -> Sequence[Stage]:
        return stages_of(self.sizes, self.layout, self.design.lags, len(self.weights.layers)).stages

    def meaning(self, card: Meaning) -> None:
        """The whole loop at once; a proof goes by `stages`."""
        stages_of(self.sizes, self.layout, self.design.lags, len(self.weights.layers)).whole(card)

    # Showing

    def trace_line(self, program: RiscvProgram, before: Card, after: Card) -> str:
        """The instruction, and the registers or the word that it changed; with traps, also the mode, and each trap."""
        (then, words, at), (now, new_words, following) = (self.design.read(self.sizes, self.layout, card)
                                                          for card in (before, after))
        counter, index = int(at), (int(at) - self.sizes.base) // WORD_BYTES
        where, is_inside = f"[{program.name_of(counter)}]", 0 <= index < self.sizes.memory
        word = self.layout.number_at(before, "word", self.layout.region("scratchpad").start)  # not the memory's in a stall
        code = f"{where} {text_of(word, counter, program.name_of)}" if is_inside else f"{where} outside the memory"
        changes = [f"{name} = {signed(int(new))}" for name, old, new in zip(REGISTERS, then, now, strict=True) if old != new]
        changes += [f"{program.name_of(self.sizes.base + WORD_BYTES * i)} = {int(new_words[i]):#x}"
                    for i in np.flatnonzero(words != new_words).tolist()]
        if self.sizes.privileged:
            control = read_control(self.layout, before), read_control(self.layout, after)
            return traced(program, code, changes, (counter, int(following)), control, asks=self._asks(after))
        if not is_inside:
            return code
        if int(following) != counter + WORD_BYTES:
            changes.append(f"goto {program.name_of(int(following))}")
        return with_line(program, code, changes, counter)

    def _asks(self, card: Card) -> bool:
        return bool(self.layout.number_at(card, "event.bus", self.layout.region("scratchpad").start))

    def display_values(self, program: RiscvProgram) -> list[DisplayValue]:
        """The program counter, the instruction as a number, and the registers, as if what is pending were stored."""
        scratch, registers = self.layout.region("scratchpad").start, self.layout.region("registers").start
        pending = Pending(PENDING, "address", "value", scratch) if self.design.lags else None
        found = [DisplayValue("program counter", "machine", "counter", scratch, kind="unsigned"),
                 DisplayValue("instruction", "machine", "word", scratch, kind="unsigned")]
        control = control_displays(self.layout) if self.sizes.privileged else []
        return found + control + [DisplayValue(name, "registers", "memory", registers + i, pending=pending)
                                  for i, name in enumerate(REGISTERS)]

    def listing(self, program: RiscvProgram, source: str | None = None) -> Listing:
        """Every word that is an instruction; without the text of its file the instructions are the lines."""
        found: list[ListedInstruction] = []
        own = Path(program.source).name
        places = {address: line.line for address, line in program.lines.items() if Path(line.file).name == own}
        known = frozenset(self.sizes.decoder.instructions)
        for segment in program.segments:
            first = -(-segment.address // WORD_BYTES) * WORD_BYTES
            for address in range(first, segment.address + len(segment.data) - WORD_BYTES + 1, WORD_BYTES):
                word = int.from_bytes(segment.data[address - segment.address :][:WORD_BYTES], "little")
                decoded = decode(word)
                if decoded is not None and decoded.instruction in known and len(found) < MOST_LISTED:
                    name, text = program.name_of(address), text_of(word, address, program.name_of)
                    line = len(found) + 1 if source is None else places.get(address)
                    symbol = name if name in program.symbols else ""
                    found.append(ListedInstruction(address, line, text, f"{word:08x}", symbol))
        if source is None:
            return Listing([f"{program.name_of(each.number)}: {each.text}" for each in found], found)
        return Listing(lines_of(source), found)

    # Files

    def store(self, program: RiscvProgram) -> str:
        """Bytes, names and source lines."""
        segments = [[s.address, base64.b64encode(s.data).decode("ascii"), s.size] for s in program.segments]
        return json.dumps({"segments": segments, "entry": program.entry, "base": program.base, "source": program.source,
                           "multiply": program.multiply, "arguments": program.arguments,
                           "start": program.start, "misaligned": program.misaligned,
                           "symbols": dict(program.symbols),
                           "lines": [[address, *line] for address, line in program.lines.items()]})

    def restore(self, text: str) -> RiscvProgram:
        try:
            kept = json.loads(text)
            segments = tuple(Segment(address, base64.b64decode(data, validate=True), size)
                             for address, data, size in kept["segments"])
            lines = {address: SourceLine(*line) for address, *line in kept["lines"]}
            return RiscvProgram(segments, kept["entry"], kept["base"], dict(kept["symbols"]), lines, kept["source"],
                                kept["multiply"], tuple(kept["arguments"]),
                                tuple((register, value) for register, value in kept.get("start", ())),
                                kept.get("misaligned", "trap"))
        except PunchcardError:
            raise
        except (KeyError, TypeError, ValueError, RecursionError):
            raise ProgramError("the program is not an object with segments, entry, base, symbols, lines, source, "
                               "multiply and arguments") from None


def multiplies(program: RiscvProgram) -> bool:
    """Whether to build a machine with the M extension for it: as its file says, or by the instructions that it has.

    Data that looks like such an instruction counts as one.
    """
    if program.multiply is not None:
        return program.multiply

    def words(segment: Segment) -> npt.NDArray[np.uint32]:
        first = -segment.address % WORD_BYTES
        return np.frombuffer(segment.data[first:], dtype="<u4", count=max(0, len(segment.data) - first) // WORD_BYTES)

    return any(bool(np.any(words(segment) & one.mask == one.match)) for segment in program.segments for one in INSTRUCTIONS
               if one.extension == "M")
