"""What an instruction does, in words of a proof (`punchcard.proof.meaning`): by the instruction set, not by the layers.

`card` is a `Meaning`: its words are of fixed length, and all sums are modulo 2^32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.base import RiscvSizes
from punchcard.machines.riscv.designs.multiply import PRODUCTS, QUOTIENTS
from punchcard.machines.riscv.isa import FIELDS, IMMEDIATES, WORD_BITS, WORD_BYTES, Format, Instruction, operation_of

Word: TypeAlias = Any
Truth: TypeAlias = Any
Meaning: TypeAlias = Any
ELSE = "anything else"
"""The case of a word that is not an instruction."""


@dataclass(frozen=True)
class Operands:
    """What an instruction begins with: its word and address, the registers that it reads, and the word at its address."""

    word: Word
    counter: Word
    x: Word
    y: Word
    immediate: Word
    address: Word
    loaded: Word


@dataclass(frozen=True)
class Outcome:
    """What an instruction comes to. `result` goes to the register `rd`, or to the word at the address, or nowhere.

    An instruction is refused where an address that it uses is misaligned, or outside the memory.
    """

    next: Word
    result: Word | None
    misaligned: Truth
    outside: Truth

    def refused(self, card: Meaning) -> Truth:
        """Whether nothing of it is done."""
        return card.either(self.misaligned, self.outside)


def immediate_of(card: Meaning, format: Format, word: Word) -> Word:
    """The immediate of a word, with its sign; 0 where the format has none."""
    if format not in IMMEDIATES:
        return card.number(0, WORD_BITS)
    pieces = sorted(IMMEDIATES[format], key=lambda piece: piece.low)
    parts = [card.number(0, pieces[0].low)] if pieces[0].low else []
    parts += [card.part(word, piece.at, piece.width) for piece in pieces]
    whole = card.joined(*parts)
    return card.wide(whole, WORD_BITS) if format == "shift" else card.signed(whole, WORD_BITS)


def executed(card: Meaning, sizes: RiscvSizes, instruction: Instruction, given: Operands) -> Outcome:
    """An instruction, by its opcode."""
    on, never = given.counter + WORD_BYTES, card.either()
    if instruction.opcode == isa.JAL:
        return _jump(card, given.counter + given.immediate, on)
    if instruction.opcode == isa.JALR:
        return _jump(card, given.address & card.number(0xFFFFFFFE, WORD_BITS), on)
    if instruction.opcode == isa.BRANCH:
        taken, target = condition(card, instruction.name, given.x, given.y), given.counter + given.immediate
        return Outcome(card.choose(taken, target, on), None, card.both(taken, misaligned(card, target, WORD_BYTES)), never)
    if instruction.access_bytes:
        moved = (_stored if instruction.writes_memory else _loaded)(card, instruction, given)
        return Outcome(on, moved, misaligned(card, given.address, instruction.access_bytes),
                       card.negated(is_within(card, sizes, given.address)))
    return Outcome(on, computed(card, instruction, given), never, never)


def computed(card: Meaning, instruction: Instruction, given: Operands) -> Word | None:
    """What an instruction of the arithmetic unit gives."""
    if instruction.opcode == isa.LUI:
        return given.immediate
    if instruction.opcode == isa.AUIPC:
        return given.counter + given.immediate
    if instruction.opcode == isa.OP_IMM:
        return operation(card, operation_of(instruction), given.x, given.immediate)
    return operation(card, instruction.name, given.x, given.y) if instruction.opcode == isa.OP else None


def _jump(card: Meaning, target: Word, link: Word) -> Outcome:
    return Outcome(target, link, misaligned(card, target, WORD_BYTES), card.either())


def misaligned(card: Meaning, address: Word, size: int) -> Truth:
    """Whether an address is not a multiple of a size."""
    return (address & card.number(size - 1, WORD_BITS)) != card.number(0, WORD_BITS)


def is_within(card: Meaning, sizes: RiscvSizes, address: Word) -> Truth:
    """Whether an address is in the memory."""
    return card.both(card.is_at_least(address, sizes.base), card.negated(card.is_at_least(address, sizes.end)))


def condition(card: Meaning, name: str, x: Word, y: Word) -> Truth:
    """Whether a branch is taken."""
    found = {"beq": lambda: x == y, "bne": lambda: x != y,
             "blt": lambda: card.is_less(x, y, signed=True), "bge": lambda: card.negated(card.is_less(x, y, signed=True)),
             "bltu": lambda: card.is_less(x, y), "bgeu": lambda: card.negated(card.is_less(x, y))}
    return found[name]()


def operation(card: Meaning, name: str, x: Word, y: Word) -> Word:
    """What an instruction of two registers computes."""
    if name in PRODUCTS:
        return _product(card, name, x, y)
    if name in QUOTIENTS:
        return _quotient(card, name, x, y)
    amount = card.wide(card.low(y, 5), WORD_BITS)
    found = {
        "add": lambda: x + y, "sub": lambda: x - y, "xor": lambda: x ^ y, "or": lambda: x | y, "and": lambda: x & y,
        "sll": lambda: x << amount, "srl": lambda: card.shifted_right(x, amount),
        "sra": lambda: card.shifted_right(x, amount, signed=True),
        "slt": lambda: card.wide(card.bit(card.is_less(x, y, signed=True)), WORD_BITS),
        "sltu": lambda: card.wide(card.bit(card.is_less(x, y)), WORD_BITS),
    }
    return found[name]()


def _product(card: Meaning, name: str, x: Word, y: Word) -> Word:
    """The low word of x y, or the high one: of numbers with signs, of the first with its sign, or without."""
    whole = card.product(x, y, x_signed=name in ("mulh", "mulhsu"), y_signed=name == "mulh")
    return card.part(whole, 0 if name == "mul" else WORD_BITS, WORD_BITS)


def _quotient(card: Meaning, name: str, x: Word, y: Word) -> Word:
    """The quotient, rounded towards 0, or the remainder, with the sign of x. By 0 they are all ones, and x."""
    signed = name in ("div", "rem")
    found = card.division(size_of(card, x, signed), size_of(card, y, signed))
    by_zero = y == card.number(0, WORD_BITS)
    if name in ("rem", "remu"):
        return card.choose(by_zero, x, card.choose(signed_below(card, x, signed), -found.remainder, found.remainder))
    turned = signed_below(card, x, signed) != signed_below(card, y, signed)
    return card.choose(by_zero, card.number(-1, WORD_BITS), card.choose(turned, -found.quotient, found.quotient))


def signed_below(card: Meaning, word: Word, signed: bool) -> Truth:
    """Whether a word is a negative number."""
    return card.part(word, WORD_BITS - 1, 1) == card.number(1, 1) if signed else card.either()


def size_of(card: Meaning, word: Word, signed: bool) -> Word:
    """A number without its sign."""
    return card.choose(signed_below(card, word, signed), -word, word)


def _lane(card: Meaning, given: Operands) -> Word:
    """How far the lane that an address names is from the lowest bit."""
    return card.wide(card.low(given.address, 2), WORD_BITS) << card.number(3, WORD_BITS)


def _loaded(card: Meaning, instruction: Instruction, given: Operands) -> Word:
    """A lane of the word at the address, with its sign or with zeros."""
    lane = card.low(card.shifted_right(given.loaded, _lane(card, given)), 8 * instruction.access_bytes)
    if instruction.access_bytes == WORD_BYTES:
        return lane
    return card.wide(lane, WORD_BITS) if instruction.name in ("lbu", "lhu") else card.signed(lane, WORD_BITS)


def _stored(card: Meaning, instruction: Instruction, given: Operands) -> Word:
    """The word at the address with a new lane."""
    lane, mask = _lane(card, given), card.number((1 << 8 * instruction.access_bytes) - 1, WORD_BITS)
    return (given.loaded & ~(mask << lane)) | ((given.y & mask) << lane)


def register(card: Meaning, word: Word, field: str) -> Word:
    """The number of a register that a word names."""
    return card.part(word, FIELDS[field], 5)


def is_call(card: Meaning, word: Word) -> Truth:
    """Whether a word is ecall or ebreak."""
    return card.either(*(word == card.number(isa.BY_NAME[name].match, WORD_BITS) for name in ("ecall", "ebreak")))
