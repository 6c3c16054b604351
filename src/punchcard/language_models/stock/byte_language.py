"""Texts of SUBLEQ programs with words of more than 16 bits: a value is a token for each of its bytes, the lowest first.

    0: #2 #1 #1                     instruction 0: subleq, operands a b c         7: halt     the end of a program
    @1 05 00+8 00+16 00+24          cell 1 holds 5: its bytes, and from which bit on

What follows is for each instruction its label, the address that it writes to, and the bytes of the value:

    0: @1 fe ff+8 ff+16 ff+24       instruction 0 has written -2 to cell 1
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from punchcard.errors import ProgramError, SizeError
from punchcard.language_models.stock.language import Words, split_words, subleq_program
from punchcard.language_models.stock.text import HALT, TokenTrace
from punchcard.machines.subleq.isa import Halt, Instruction, Program, Subleq
from punchcard.machines.subleq.oracle import SubleqInterpreter

if TYPE_CHECKING:
    from punchcard.language_models.stock.decoder import StockDecoder
    from punchcard.language_models.stock.positions import Positions

BYTE = 8
WORD_SIZES = (24, 32)
MOST_CELLS = 1 << 15
OPERAND = "#"


def byte_word(value: int, place: int) -> str:
    """A byte as a token, with its place in the value."""
    return f"{value:02x}+{BYTE * place}" if place else f"{value:02x}"


@dataclass(frozen=True)
class SubleqByteText:
    """Texts of SUBLEQ programs for some sizes: bits of a word, and how many cells and instructions a text may name."""

    machine: ClassVar[str] = "subleq"
    looks_back: ClassVar[int] = 3
    word_bits: int
    memory: int
    instructions: int

    def __post_init__(self) -> None:
        if self.word_bits not in WORD_SIZES:
            raise SizeError(f"word_bits={self.word_bits}: a stock checkpoint has words of 4 to 16 bits, or of "
                            f"{' or '.join(map(str, WORD_SIZES))}, a token for each byte (--bits)")
        for name, count in (("memory", self.memory), ("instructions", self.instructions)):
            if not 1 <= count <= MOST_CELLS:
                raise SizeError(f"{name}={count}: there are 1 to {MOST_CELLS}")

    @classmethod
    def of(cls, sizes: Any) -> SubleqByteText:
        """The texts of a machine of these sizes."""
        return cls(sizes.word_bits, sizes.memory, sizes.instructions)

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes by name."""
        return {"word_bits": self.word_bits, "memory": self.memory, "instructions": self.instructions}

    @property
    def tokens_a_step(self) -> int:
        """Label, address and bytes."""
        return 2 + self.places

    @property
    def places(self) -> int:
        """Bytes of a word."""
        return self.word_bits // BYTE

    @property
    def words(self) -> Words:
        """Labels and addresses."""
        return Words(BYTE, self.instructions, self.memory)

    @property
    def operands(self) -> int:
        """How many operands a text may name."""
        return max(self.memory, self.instructions)

    def vocabulary(self) -> tuple[str, ...]:
        """Labels, addresses, operands, the bytes of each place, and the end."""
        return (*(f"{i}:" for i in range(self.instructions)), *(f"@{i}" for i in range(self.memory)),
                *(f"{OPERAND}{i}" for i in range(self.operands)),
                *(byte_word(value, place) for place in range(self.places) for value in range(1 << BYTE)), HALT)

    def prompt(self, program: Program) -> str:
        """A program as the text that a model goes on with."""
        lines = [f"{i}: {HALT}" if isinstance(each, Halt) else f"{i}: #{each.a} #{each.b} #{each.c}"
                 for i, each in enumerate(program.instructions)]
        lines += [f"@{address} {' '.join(self._bytes(value))}" for address, value in enumerate(program.memory)]
        return "\n".join([*lines, "0:"])

    def program(self, prompt: str) -> Program:
        """The program of a prompt; the later of two lines about the same thing counts."""
        words = split_words(prompt)
        code: dict[int, Instruction] = {}
        cells: dict[int, int] = {}
        at = 0
        while at < len(words) - 1:
            word = words[at]
            if word.startswith("@"):
                cells[self.words.address(word)] = self._value(words[at + 1 : at + 1 + self.places])
                at += 1 + self.places
            elif words[at + 1] == HALT:
                code[self.words.label(word)] = Halt()
                at += 2
            else:
                code[self.words.label(word)] = Subleq(*map(self._operand, [*words[at + 1 : at + 4], "", ""][:3]))
                at += 4
        return subleq_program(code, cells, words[at:])

    def expected(self, program: Program) -> Iterator[str]:
        """The words that follow a prompt, by the plain interpreter."""
        interpreter = SubleqInterpreter(program, self.word_bits)
        while not interpreter.halted:
            instruction = program.instructions[interpreter.program_counter]
            interpreter.step()
            assert isinstance(instruction, Subleq)
            yield from (f"@{instruction.b}", *self._bytes(interpreter.memory[instruction.b]),
                        f"{interpreter.program_counter}:")
        yield HALT

    def decoded(self, program: Program, trace: Sequence[str]) -> TokenTrace:
        """What the words after a prompt say. An instruction that is not whole is not counted."""
        memory, counter, words, length = list(program.memory), 0, list(trace), self.tokens_a_step
        halted = words[-1:] == [HALT]
        whole = words[: (len(words) - halted) // length * length]
        for at in range(0, len(whole), length):
            memory[self.words.address(whole[at])] = self._value(whole[at + 1 : at + 1 + self.places])
            counter = self.words.label(whole[at + length - 1])
        return TokenTrace(tuple(memory), counter, len(whole) // length, halted)

    def decoder(self, positions: Positions) -> StockDecoder:
        """What a checkpoint computes; imported here, since no weight is in this file."""
        from punchcard.language_models.stock.byte_subleq import decoder

        return decoder(self, positions)

    def _bytes(self, value: int) -> list[str]:
        return [byte_word(value >> BYTE * place & 255, place) for place in range(self.places)]

    def _value(self, words: Sequence[str]) -> int:
        found = 0
        for place in range(self.places):
            word = words[place] if place < len(words) else ""
            digits = word.removesuffix(f"+{BYTE * place}") if place else word
            if len(digits) != 2 or not set(digits) <= set("0123456789abcdef") or word != byte_word(int(digits, 16), place):
                raise ProgramError(f"{word!r} where byte {place} of a value is expected, such as {byte_word(5, place)}")
            found |= int(digits, 16) << BYTE * place
        return found - (found >> self.word_bits - 1 << self.word_bits)

    def _operand(self, word: str) -> int:
        digits = word.removeprefix(OPERAND)
        if not word.startswith(OPERAND) or not digits.isdecimal() or len(digits) > 5 or int(digits) >= self.operands:
            raise ProgramError(f"{word!r} where an operand is expected: they are {OPERAND}0 to {OPERAND}{self.operands - 1}")
        return int(digits)
