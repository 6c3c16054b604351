"""What an instruction does, in words (`punchcard.words`): by the instruction set, not by the layers.

All words have 32 bits, and all sums are modulo 2^32. Products and quotients are those that a proof knows (`Meaning`).
"""

from __future__ import annotations

from dataclasses import dataclass

from punchcard.machines.meaning import Meaning
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.base import RiscvSizes
from punchcard.machines.riscv.designs.multiply import PRODUCTS, QUOTIENTS
from punchcard.machines.riscv.isa import FIELDS, IMMEDIATES, WORD_BITS, WORD_BYTES, Format, Instruction, operation_of
from punchcard.words.word import FALSE, Word, any_of, constant, join

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
    misaligned: Word
    outside: Word

    @property
    def refused(self) -> Word:
        """Whether nothing of it is done."""
        return self.misaligned | self.outside


def immediate_of(format: Format, word: Word) -> Word:
    """The immediate of a word, with its sign; 0 where the format has none."""
    if format not in IMMEDIATES:
        return constant(0, WORD_BITS)
    pieces = sorted(IMMEDIATES[format], key=lambda piece: piece.low)
    parts = [constant(0, pieces[0].low)] if pieces[0].low else []
    parts += [word[piece.at : piece.at + piece.width] for piece in pieces]
    return join(*parts).extend(WORD_BITS, signed=format != "shift")


def executed(card: Meaning, sizes: RiscvSizes, instruction: Instruction, given: Operands) -> Outcome:
    """An instruction, by its opcode."""
    on = given.counter + WORD_BYTES
    if instruction.opcode == isa.JAL:
        return _jump(given.counter + given.immediate, on)
    if instruction.opcode == isa.JALR:
        return _jump(given.address & 0xFFFFFFFE, on)
    if instruction.opcode == isa.BRANCH:
        taken, target = condition(instruction.name, given.x, given.y), given.counter + given.immediate
        return Outcome(taken.choose(target, on), None, taken & misaligned(target, WORD_BYTES), FALSE)
    if instruction.access_bytes:
        moved = (_stored if instruction.writes_memory else _loaded)(instruction, given)
        return Outcome(on, moved, misaligned(given.address, instruction.access_bytes), ~is_within(sizes, given.address))
    return Outcome(on, computed(card, instruction, given), FALSE, FALSE)


def computed(card: Meaning, instruction: Instruction, given: Operands) -> Word | None:
    """What an instruction of the arithmetic unit gives."""
    if instruction.opcode == isa.LUI:
        return given.immediate
    if instruction.opcode == isa.AUIPC:
        return given.counter + given.immediate
    if instruction.opcode == isa.OP_IMM:
        return operation(card, operation_of(instruction), given.x, given.immediate)
    return operation(card, instruction.name, given.x, given.y) if instruction.opcode == isa.OP else None


def _jump(target: Word, link: Word) -> Outcome:
    return Outcome(target, link, misaligned(target, WORD_BYTES), FALSE)


def misaligned(address: Word, size: int) -> Word:
    """Whether an address is not a multiple of a size."""
    return (address & size - 1).differs(0)


def is_within(sizes: RiscvSizes, address: Word) -> Word:
    """Whether an address is in the memory."""
    return address.at_least(sizes.base) & address.less(sizes.end)


def condition(name: str, x: Word, y: Word) -> Word:
    """Whether a branch is taken."""
    found = {"beq": lambda: x.equals(y), "bne": lambda: x.differs(y),
             "blt": lambda: x.less(y, signed=True), "bge": lambda: x.at_least(y, signed=True),
             "bltu": lambda: x.less(y), "bgeu": lambda: x.at_least(y)}
    return found[name]()


def operation(card: Meaning, name: str, x: Word, y: Word) -> Word:
    """What an instruction of two registers computes."""
    if name in PRODUCTS:
        return _product(card, name, x, y)
    if name in QUOTIENTS:
        return _quotient(card, name, x, y)
    amount = y[:5].extend(WORD_BITS)
    found = {
        "add": lambda: x + y, "sub": lambda: x - y, "xor": lambda: x ^ y, "or": lambda: x | y, "and": lambda: x & y,
        "sll": lambda: x << amount, "srl": lambda: x >> amount, "sra": lambda: x.signed_shift(amount),
        "slt": lambda: x.less(y, signed=True).extend(WORD_BITS), "sltu": lambda: x.less(y).extend(WORD_BITS),
    }
    return found[name]()


def _product(card: Meaning, name: str, x: Word, y: Word) -> Word:
    """The low word of x y, or the high one: of numbers with signs, of the first with its sign, or without."""
    whole = card.product(x, y, x_signed=name in ("mulh", "mulhsu"), y_signed=name == "mulh")
    return whole[:WORD_BITS] if name == "mul" else whole[WORD_BITS:]


def _quotient(card: Meaning, name: str, x: Word, y: Word) -> Word:
    """The quotient, rounded towards 0, or the remainder, with the sign of x. By 0 they are all ones, and x."""
    signed = name in ("div", "rem")
    found = card.division(size_of(x, signed), size_of(y, signed))
    if name in ("rem", "remu"):
        return y.equals(0).choose(x, signed_below(x, signed).choose(-found.remainder, found.remainder))
    turned = signed_below(x, signed) ^ signed_below(y, signed)
    return y.equals(0).choose(constant(-1, WORD_BITS), turned.choose(-found.quotient, found.quotient))


def signed_below(word: Word, signed: bool) -> Word:
    """Whether a word is a negative number."""
    return word.is_negative if signed else FALSE


def size_of(word: Word, signed: bool) -> Word:
    """A number without its sign."""
    return signed_below(word, signed).choose(-word, word)


def _lane(given: Operands) -> Word:
    """How far the lane that an address names is from the lowest bit."""
    return given.address[:2].extend(WORD_BITS) << 3


def _loaded(instruction: Instruction, given: Operands) -> Word:
    """A lane of the word at the address, with its sign or with zeros."""
    lane = (given.loaded >> _lane(given))[: 8 * instruction.access_bytes]
    return lane.extend(WORD_BITS, signed=instruction.name not in ("lbu", "lhu"))


def _stored(instruction: Instruction, given: Operands) -> Word:
    """The word at the address with a new lane."""
    lane, mask = _lane(given), constant((1 << 8 * instruction.access_bytes) - 1, WORD_BITS)
    return (given.loaded & ~(mask << lane)) | ((given.y & mask) << lane)


def register(word: Word, field: str) -> Word:
    """The number of a register that a word names."""
    return word[FIELDS[field] : FIELDS[field] + 5]


def is_call(word: Word) -> Word:
    """Whether a word is ecall or ebreak."""
    return any_of(*(word.equals(isa.BY_NAME[name].match) for name in ("ecall", "ebreak")))
