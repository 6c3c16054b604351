"""Texts of SUBLEQ programs with words of more than 16 bits: a value is a token for each of its bytes, the lowest first.

    0: #2 #1 #1                     instruction 0: subleq, operands a b c         7: halt     the end of a program
    @1 05 00+8 00+16 00+24          cell 1 holds 5: its bytes, and from which bit on

What follows is for each instruction its label, the address that it writes to, and the bytes of the value:

    0: @1 fe ff+8 ff+16 ff+24       instruction 0 has written -2 to cell 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from punchcard.errors import ProgramError, SizeError
from punchcard.language_models.stock.language import SubleqText, Words
from punchcard.language_models.stock.text import HALT
from punchcard.words.word import as_signed

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
class SubleqByteText(SubleqText):
    """Texts of SUBLEQ programs in which bytes write a value, and operands have tokens of their own."""

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

    def decoder(self, positions: Positions) -> StockDecoder:
        """What a checkpoint computes; imported here, since no weight is in this file."""
        from punchcard.language_models.stock.byte_subleq import decoder

        return decoder(self, positions)

    def value_words(self, value: int) -> list[str]:
        return [byte_word(value >> BYTE * place & 255, place) for place in range(self.places)]

    def value_of(self, words: Sequence[str]) -> int:
        found = 0
        for place in range(self.places):
            word = words[place] if place < len(words) else ""
            digits = word.removesuffix(f"+{BYTE * place}") if place else word
            if len(digits) != 2 or not set(digits) <= set("0123456789abcdef") or word != byte_word(int(digits, 16), place):
                raise ProgramError(f"{word!r} where byte {place} of a value is expected, such as {byte_word(5, place)}")
            found |= int(digits, 16) << BYTE * place
        return as_signed(found, self.word_bits)

    def operand_word(self, operand: int) -> str:
        return f"{OPERAND}{operand}"

    def operand_of(self, word: str) -> int:
        digits = word.removeprefix(OPERAND)
        if not word.startswith(OPERAND) or not digits.isdecimal() or len(digits) > 5 or int(digits) >= self.operands:
            raise ProgramError(f"{word!r} where an operand is expected: they are {OPERAND}0 to {OPERAND}{self.operands - 1}")
        return int(digits)
