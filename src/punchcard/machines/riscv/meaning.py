"""What a RISC-V loop does to a card, by the table of instructions and not by the layers: words of 32 bits."""

from __future__ import annotations

from dataclasses import dataclass

from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.base import RiscvSizes
from punchcard.machines.riscv.isa import FIELDS, IMMEDIATES, WORD_BITS, WORD_BYTES, Format, Instruction
from punchcard.machines.riscv.semantics import Operands
from punchcard.words.word import FALSE, Word, any_of, constant, join

ELSE = "anything else"
"""The case of a word that is not an instruction."""


@dataclass(frozen=True)
class RiscvExecution:
    """What an instruction comes to on a machine.

    `result` goes to the register `rd`, or to the word at the address, or nowhere. The instruction is refused if an
    address that it uses is misaligned, or outside the memory.
    """

    next: Word
    result: Word | None
    misaligned: Word
    outside: Word

    @property
    def refused(self) -> Word:
        """Whether nothing of it is done."""
        return self.misaligned | self.outside


def execute(sizes: RiscvSizes, instruction: Instruction, given: Operands) -> RiscvExecution:
    """An instruction of the table, and whether it is refused."""
    outcome, outside = instruction.semantics(given), FALSE
    wrong = outcome.taken & misaligned(outcome.target, WORD_BYTES)
    if instruction.access_bytes:
        wrong, outside = misaligned(given.address, instruction.access_bytes), ~is_within(sizes, given.address)
    return RiscvExecution(outcome.next(given.counter), outcome.result, wrong, outside)


def immediate_of(format: Format, word: Word) -> Word:
    """The immediate of a word, with its sign; 0 where the format has none."""
    if format not in IMMEDIATES:
        return constant(0, WORD_BITS)
    pieces = sorted(IMMEDIATES[format], key=lambda piece: piece.low)
    parts = [constant(0, pieces[0].low)] if pieces[0].low else []
    parts += [word[piece.at : piece.at + piece.width] for piece in pieces]
    return join(*parts).extend(WORD_BITS, signed=format != "shift")


def misaligned(address: Word, size: int) -> Word:
    """Whether an address is not a multiple of a size."""
    return (address & size - 1).differs(0)


def is_within(sizes: RiscvSizes, address: Word) -> Word:
    """Whether an address is in the memory."""
    return address.at_least(sizes.base) & address.less(sizes.end)


def register(word: Word, field: str) -> Word:
    """The number of a register that a word names."""
    return word[FIELDS[field] : FIELDS[field] + 5]


def is_call(word: Word) -> Word:
    """Whether a word is ecall or ebreak."""
    return any_of(*(word.equals(isa.BY_NAME[name].match) for name in ("ecall", "ebreak")))
