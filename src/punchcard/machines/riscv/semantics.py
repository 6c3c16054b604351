"""What instructions do, as expressions of words. The table in `isa` has a meaning of these kinds for each instruction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

from punchcard.words.word import FALSE, TRUE, Word, constant, variable

WORD_BITS = 32
WORD_BYTES = 4


@dataclass(frozen=True)
class Operands:
    """What an instruction begins with, each a word of 32 bits.

    counter     its address
    x, y        the registers rs1 and rs2
    immediate   with its sign
    address     x + immediate
    loaded      the word of the memory that the address is in; for a csr instruction, the control register
    """

    counter: Word
    x: Word
    y: Word
    immediate: Word
    address: Word
    loaded: Word

    @property
    def lane(self) -> Word:
        """How many bits of the loaded word are below the byte at the address."""
        return (self.address & WORD_BYTES - 1) << 3


NAMES = tuple(field.name for field in fields(Operands))
OPERANDS = Operands(*(variable(name, WORD_BITS) for name in NAMES))
"""The operands as variables of these names."""


ZERO = constant(0, WORD_BITS)
AT_BYTES = replace(OPERANDS, address=ZERO)
"""The operands of a load or store where the memory has bytes: those at the address are the lowest of a word."""


@dataclass(frozen=True)
class InstructionOutcome:
    """What an instruction comes to.

    result   goes to the register rd, or for a store to the word of the memory that the address is in; None if there is none
    update   what the memory's word becomes, or for a csr instruction the control register; None if nothing
    taken    whether it continues at the target, and not at the next instruction
    """

    result: Word | None = None
    taken: Word = FALSE
    target: Word = ZERO
    update: Word | None = None

    def next(self, counter: Word) -> Word:
        """The program counter after it."""
        return self.taken.choose(self.target, counter + WORD_BYTES)


Semantics: TypeAlias = Callable[[Operands], InstructionOutcome]
Operation: TypeAlias = Callable[[Word, Word], Word]


def nothing(given: Operands) -> InstructionOutcome:
    """It only continues. What a system instruction does, its host does."""
    return InstructionOutcome()


def compute(result: Callable[[Operands], Word]) -> Semantics:
    """The result by all operands."""
    return lambda given: InstructionOutcome(result(given))


def combine(operation: Operation) -> Semantics:
    """The result by two registers."""
    return lambda given: InstructionOutcome(operation(given.x, given.y))


def combine_immediate(operation: Operation) -> Semantics:
    """The result by a register and the immediate."""
    return lambda given: InstructionOutcome(operation(given.x, given.immediate))


def jump(target: Callable[[Operands], Word]) -> Semantics:
    """The result is the address of the next instruction."""
    return lambda given: InstructionOutcome(given.counter + WORD_BYTES, TRUE, target(given))


def branch(condition: Operation) -> Semantics:
    """A jump where two registers meet a condition."""
    return lambda given: InstructionOutcome(None, condition(given.x, given.y), given.counter + given.immediate)


def load(size: int, signed: bool = False) -> Semantics:
    """So many bytes at the address, which is a multiple of that, with zeros or the highest bit above."""
    def meaning(given: Operands) -> InstructionOutcome:
        lane = given.loaded >> given.lane
        return InstructionOutcome(given.loaded if size == WORD_BYTES else lane[: 8 * size].extend(WORD_BITS, signed))
    return meaning


def store(size: int) -> Semantics:
    """So many bytes at the address, which is a multiple of that, become the lowest of y."""
    def meaning(given: Operands) -> InstructionOutcome:
        if size == WORD_BYTES:
            return InstructionOutcome(given.y)
        lowest = constant((1 << 8 * size) - 1, WORD_BITS)
        return InstructionOutcome((given.loaded & ~(lowest << given.lane)) | ((given.y & lowest) << given.lane))
    return meaning


def high_product(x_signed: bool, y_signed: bool) -> Operation:
    """The upper half of x y, each with its sign or without."""
    def high(x: Word, y: Word) -> Word:
        return (x.extend(2 * WORD_BITS, x_signed) * y.extend(2 * WORD_BITS, y_signed))[WORD_BITS:]
    return high


def truth(condition: Operation) -> Operation:
    """A condition as a number, 0 or 1."""
    return lambda x, y: condition(x, y).extend(WORD_BITS)


def atomic(operation: Operation) -> Semantics:
    """The result is the word of the memory, which becomes what the operation gives for it and y."""
    return lambda given: InstructionOutcome(given.loaded, update=operation(given.loaded, given.y))


def store_conditional(given: Operands) -> InstructionOutcome:
    """Where the word is reserved, the result is 0, and the word becomes y. Elsewhere the result is 1, and the word stays."""
    return InstructionOutcome(ZERO, update=given.y)


def write_csr(operation: Operation, immediate: bool = False) -> Semantics:
    """The result is the control register, which becomes what the operation gives for it and x, or the immediate.

    Its writable bits do; and none where the instruction only reads (`Decoded.writes_csr`).
    """
    def meaning(given: Operands) -> InstructionOutcome:
        return InstructionOutcome(given.loaded, update=operation(given.loaded, given.immediate if immediate else given.x))
    return meaning
