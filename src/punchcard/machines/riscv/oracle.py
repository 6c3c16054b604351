"""A plain interpreter of RV32IM, one instruction after the other. It knows nothing of cards, tensors or transformers.

What an instruction computes is in the table (`isa`); here are memory, faults and system calls. `fast` is the quick one. The
tests have a second interpreter, which shares nothing with the table.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, MutableSequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from punchcard.errors import PunchcardError
from punchcard.formatting import join_some, plural
from punchcard.machines.interpreter import Interpreter
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.calls import Calls
from punchcard.machines.riscv.isa import MASK, STALL, WORD_BYTES, Decoded, decode
from punchcard.machines.riscv.program import PAGE, STACK_POINTER, RiscvProgram
from punchcard.machines.riscv.semantics import NAMES, OPERANDS
from punchcard.machines.riscv.syntax import text_of
from punchcard.machines.streams import reader
from punchcard.words.text import python_function

FaultKind: TypeAlias = Literal[
    "illegal instruction", "breakpoint", "fetch out of range", "misaligned fetch", "load out of range", "misaligned load",
    "store out of range", "misaligned store",
]


@dataclass(frozen=True)
class RiscvFault:
    """Why an instruction cannot be executed; nothing of it was done.

    `address` is what the instruction wanted to use. A jump or a taken branch to an address that is not a multiple of four
    is itself at fault; a target outside the memory is found when it is fetched, and then there is no instruction.
    """

    kind: FaultKind
    address: int
    program_counter: int
    instruction: int | None = None
    place: str = field(default="", compare=False)
    """Where that is: a symbol and a source line."""
    cause: str = field(default="", compare=False)
    """What an address outside the memory comes from, if that is known."""

    def __str__(self) -> str:
        where = self.place or f"{self.program_counter:#x}"
        if self.instruction is None:
            return f"{self.kind} at {where}: there is no memory at address {self.address:#x}{self.cause}"
        if self.kind == "illegal instruction":
            return f"illegal instruction {self.instruction:#010x} at {where}"
        if self.kind == "breakpoint":
            return f"breakpoint (ebreak) at {where}"
        return f"{self.kind} at {where}: {text_of(self.instruction)} uses address {self.address:#x}{self.cause}"


def place_of(program: RiscvProgram, address: int) -> str:
    """Symbol, address and source line of an instruction: `main+8 (0x1008, hello.c:12)`."""
    name, line = program.name_of(address), program.lines.get(address)
    known = [part for part in (f"{address:#x}" if name != f"{address:#x}" else "", str(line) if line else "") if part]
    return f"{name} ({', '.join(known)})" if known else name


@dataclass(frozen=True)
class RiscvState:
    """What a run is judged by. Numbers are unsigned; `memory` holds words."""

    registers: tuple[int, ...]
    memory: tuple[int, ...]
    program_counter: int

    def __repr__(self) -> str:
        """Tens of thousands of words would fill a screen many times."""
        held = [f"{name} {number}" for name, number in zip(isa.REGISTERS, self.registers, strict=False) if number]
        return (f"<RiscvState: program counter {self.program_counter:#x}, registers {join_some(held) or 'all 0'}, "
                f"{plural(len(self.memory), 'word')} of memory>")


def words_of(data: bytes) -> array[int]:
    """The words of a memory by its bytes, as an array: a large memory is compared often."""
    found = array("I", data)
    if sys.byteorder == "big":
        found.byteswap()
    return found


class InstructionFunctions(NamedTuple):
    """An instruction of the table as functions of its operands, in the order of `NAMES`.

    `result` and `update` give a number or none.
    """

    next: Callable[..., tuple[int, ...]]
    target: Callable[..., tuple[int, ...]]
    result: Callable[..., tuple[int, ...]]
    update: Callable[..., tuple[int, ...]]


@cache
def functions_of(name: str) -> InstructionFunctions:
    outcome = isa.BY_NAME[name].semantics(OPERANDS)
    results, updates = ([] if word is None else [word] for word in (outcome.result, outcome.update))
    return InstructionFunctions(*(python_function(NAMES, words)
                       for words in ([outcome.next(OPERANDS.counter)], [outcome.target], results, updates)))


class RiscvInterpreter(Interpreter[RiscvState]):
    """Executes a program in a memory of so many words from the program's base on.

    `memory` are unsigned words, `registers` unsigned numbers. `fault` says why the next instruction cannot be executed. A
    run halts at the system call that ends the program; it is not executed, and `calls.status` is the exit status. With
    `words` these are in the memory, and not the program's. `stored` collects the numbers of the words that were stored to.
    """

    def __init__(
        self, program: RiscvProgram, memory: int, calls: Calls | None = None, *, multiply: bool = True,
        words: MutableSequence[int] | None = None,
    ) -> None:
        self.memory: MutableSequence[int] = words_of(program.image(memory)) if words is None else words
        self.stored: set[int] = set()
        self.registers: MutableSequence[int] = program.registers(memory)
        self.program_counter = program.entry
        self.program = program
        self._addresses = range(program.base, program.base + WORD_BYTES * memory)
        self._written = bytearray()
        self.calls = calls or Calls.of(program, memory, reader(b""), self._written.append)
        self._extensions = {"I", "Zifencei"} | ({"M"} if multiply else set())
        self._looked_at: tuple[int, RiscvFault | None] | None = None
        self._served_at = -1
        if self._addresses.stop > 1 << 32:
            raise PunchcardError(f"a memory of {memory} words from {self._addresses.start:#x} on ends beyond the last "
                                 "address")

    @property
    def output(self) -> bytes:
        """What was written, unless the caller has given the calls."""
        return bytes(self._written)

    @property
    def state(self) -> RiscvState:
        return RiscvState(tuple(self.registers), tuple(self.memory), self.program_counter)

    @property
    def fault(self) -> RiscvFault | None:
        if self._looked_at is None or self._looked_at[0] != self.steps:
            self._looked_at = self.steps, self._examine()
        return self._looked_at[1]

    @property
    def halted(self) -> bool:
        if self.calls.ended or self.fault is not None:
            return True
        if self.waits and self.calls.ending(self) is not None:
            self.calls.serve(self)
        return self.calls.ended

    @property
    def waits(self) -> bool:
        """Whether the next instruction is a system call."""
        return self.fault is None and self._next().instruction.name == "ecall"

    def step(self) -> None:
        if not self.halted:
            self._execute(self._next())
            self.steps += 1

    def serve(self) -> None:
        """Serve the system call that is next, ahead of its execution, as the host of a card does."""
        if self.waits and not self.halted and self._served_at != self.steps:
            self._served_at = self.steps
            self.calls.serve(self)

    # The guest of a system call.

    def register(self, index: int) -> int:
        return self.registers[index]

    def set_register(self, index: int, value: int) -> None:
        if index:
            self.registers[index] = value & MASK

    def load(self, address: int, size: int) -> bytes:
        places = range(address - self._addresses.start, address - self._addresses.start + size)
        return bytes(self.memory[place // WORD_BYTES] >> 8 * (place % WORD_BYTES) & 0xFF for place in places)

    def store(self, address: int, data: bytes) -> None:
        first = address - self._addresses.start
        self.stored.update(range(first // WORD_BYTES, -(-(first + len(data)) // WORD_BYTES)))
        for i, byte in enumerate(data, first):
            shift = 8 * (i % WORD_BYTES)
            self.memory[i // WORD_BYTES] = self.memory[i // WORD_BYTES] & ~(0xFF << shift) | byte << shift

    # What may go wrong, before anything is done.

    def _word(self) -> int:
        """The word at the program counter."""
        return self.memory[(self.program_counter - self._addresses.start) // WORD_BYTES]

    def _next(self) -> Decoded:
        """The next instruction, where there is one."""
        found = decode(self._word())
        assert found is not None
        return found

    def _examine(self) -> RiscvFault | None:
        """Whether the next instruction can be executed."""
        if self.program_counter not in self._addresses:
            return self._refuse("fetch out of range", self.program_counter, None)
        word = self._word()
        decoded = decode(word)
        if decoded is None or decoded.instruction.extension not in self._extensions:
            return self._refuse("illegal instruction", self.program_counter, word)
        instruction, size = decoded.instruction, decoded.instruction.access_bytes
        if instruction.name == "ebreak":
            return self._refuse("breakpoint", self.program_counter, word)
        if size:
            address = (self.registers[decoded.rs1] + decoded.immediate) & MASK
            if address % size:
                return self._refuse("misaligned load" if instruction.reads_memory else "misaligned store", address, word)
            if address not in self._addresses:
                return self._refuse("load out of range" if instruction.reads_memory else "store out of range", address, word)
        target = self._target(decoded)
        return self._refuse("misaligned fetch", target, word) if target % WORD_BYTES else None

    def _refuse(self, kind: FaultKind, address: int, word: int | None) -> RiscvFault:
        counter = self.program_counter
        cause = self._cause(address) if kind.endswith("out of range") else ""
        return RiscvFault(kind, address, counter, word, place_of(self.program, counter), cause)

    def _cause(self, address: int) -> str:
        """Why an address may be outside the memory."""
        stack, first, end = self.registers[STACK_POINTER], self._addresses.start, self._addresses.stop
        if stack and not first <= stack <= end:
            return f" (the stack is full: sp is {stack:#x}, and the memory is {first:#x} to {end - 1:#x})"
        return " (a null pointer)" if address < min(first, PAGE) else ""

    # What an instruction does.

    def _operands(self, decoded: Decoded, address: int = 0, loaded: int = 0) -> tuple[int, ...]:
        """In the order of `NAMES`."""
        return (self.program_counter, self.registers[decoded.rs1], self.registers[decoded.rs2], decoded.immediate & MASK,
                address, loaded)

    def _target(self, decoded: Decoded) -> int:
        """The program counter after an instruction."""
        return functions_of(decoded.instruction.name).next(*self._operands(decoded, self._address(decoded)))[0]

    def _execute(self, decoded: Decoded) -> None:
        """The memory has bytes: those at an address are the lowest of a word that is loaded or stored."""
        instruction, target, loaded = decoded.instruction, self._target(decoded), 0
        if instruction.reads_memory:
            loaded = int.from_bytes(self.load(self._address(decoded), instruction.access_bytes), "little")
        results = functions_of(instruction.name).result(*self._operands(decoded, 0, loaded))
        if instruction.writes_memory:
            data = results[0].to_bytes(WORD_BYTES, "little")
            self.store(self._address(decoded), data[: instruction.access_bytes])
        elif results:
            self.set_register(decoded.rd, results[0])
        elif instruction.name == "ecall":
            self.serve()
        self.program_counter = target

    def _address(self, decoded: Decoded) -> int:
        return (self.registers[decoded.rs1] + decoded.immediate) & MASK


class LaggingInterpreter(RiscvInterpreter):
    """The same program with the same results, in as many steps as a machine has loops whose results lag one loop.

    Such a machine fetches an instruction while the store of the one before is still pending. Where that store goes to the
    very instruction, a jump to itself is executed in its place, and then the instruction as stored. That is one step more.
    """

    stalls = False
    """Whether the last instruction has stored to the next."""

    def _word(self) -> int:
        return STALL if self.stalls else super()._word()

    def _execute(self, decoded: Decoded) -> None:
        stored = self._address(decoded) // WORD_BYTES if decoded.instruction.writes_memory else None
        super()._execute(decoded)
        self.stalls = stored == self.program_counter // WORD_BYTES
