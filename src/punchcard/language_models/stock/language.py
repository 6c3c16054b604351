"""Programs as text, for a checkpoint whose prompt is the program: what the tokens are, and what a trace says.

SUBLEQ, a line for each instruction and cell, then the label of the first instruction:

    0: 2 1 1      instruction 0: subleq, operands a b c         7: halt     the end of a program
    @1 5          cell 1 holds 5

What follows is a line for each instruction that is executed: its label, the address that it writes to, and the value.

    0: @1 -2      instruction 0 has written -2 to cell 1

No tensor is in here, and no weight: the trace that is expected comes from the plain interpreter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from punchcard.errors import ProgramError, SizeError, shortened
from punchcard.language_models.stock.text import HALT, StockText, TokenTrace
from punchcard.machines.subleq.isa import Halt, Instruction, Program, Subleq
from punchcard.machines.subleq.oracle import SubleqInterpreter

if TYPE_CHECKING:
    from punchcard.language_models.stock.decoder import StockDecoder
    from punchcard.language_models.stock.positions import Positions

MIN_WORD_BITS, MAX_WORD_BITS = 4, 16
COMMENT = re.compile(r";[^\n]*")


def check_sizes(word_bits: int, counts: Mapping[str, int]) -> None:
    """Refuse words that are too long or too short, and more cells or labels than a word that is not negative can name."""
    if not MIN_WORD_BITS <= word_bits <= MAX_WORD_BITS:
        raise SizeError(f"word_bits={word_bits}: a stock checkpoint has a token for each word, so words have "
                        f"{MIN_WORD_BITS} to {MAX_WORD_BITS} bits (--bits)")
    most = 1 << word_bits - 1
    for name, count in counts.items():
        if not 1 <= count <= most:
            raise SizeError(f"{name}={count}: operands are words that are not negative, so with words of {word_bits} bits "
                            f"there are 1 to {most}")


@dataclass(frozen=True)
class Words:
    """The words that texts of all machines have: labels such as 0:, addresses such as @0, and numbers."""

    word_bits: int
    labels: int
    addresses: int

    def all(self) -> list[str]:
        """In the order of their tokens; numbers by their bits, those from 0 up first."""
        half = 1 << self.word_bits - 1
        return [*(f"{i}:" for i in range(self.labels)), *(f"@{i}" for i in range(self.addresses)),
                *map(str, [*range(half), *range(-half, 0)])]

    def label(self, word: str) -> int:
        """The number of a label."""
        if not word.endswith(":"):
            raise ProgramError(f"{word!r} where a label such as 0: is expected")
        return _integer(word[:-1], word, range(self.labels), f"labels are 0: to {self.labels - 1}:")

    def address(self, word: str) -> int:
        """The number of a cell."""
        if not word.startswith("@"):
            raise ProgramError(f"{word!r} where an address such as @0 is expected")
        return _integer(word[1:], word, range(self.addresses), f"addresses are @0 to @{self.addresses - 1}")

    def number(self, word: str) -> int:
        half = 1 << self.word_bits - 1
        return _integer(word, word, range(-half, half), f"numbers are {-half} to {half - 1}")


@dataclass(frozen=True)
class SubleqText:
    """Texts of SUBLEQ programs for some sizes: bits of a word, and how many cells and instructions a text may name."""

    machine: ClassVar[str] = "subleq"
    looks_back: ClassVar[int] = 3
    word_bits: int
    memory: int
    instructions: int

    def __post_init__(self) -> None:
        check_sizes(self.word_bits, {"memory": self.memory, "instructions": self.instructions})

    @classmethod
    def of(cls, sizes: Any) -> StockText:
        """The texts of a machine of these sizes; words of more than 16 bits are written as bytes."""
        if sizes.word_bits > MAX_WORD_BITS:
            from punchcard.language_models.stock.byte_language import SubleqByteText

            return SubleqByteText.of(sizes)
        return cls(sizes.word_bits, sizes.memory, sizes.instructions)

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes by name."""
        return {"word_bits": self.word_bits, "memory": self.memory, "instructions": self.instructions}

    @property
    def tokens_a_step(self) -> int:
        """Label, address and the words of a value."""
        return 2 + self.places

    @property
    def places(self) -> int:
        """How many words write a value."""
        return 1

    @property
    def words(self) -> Words:
        """The words of its texts."""
        return Words(self.word_bits, self.instructions, self.memory)

    def vocabulary(self) -> tuple[str, ...]:
        """The text of each token: labels, addresses, numbers by their bits, and the end."""
        return (*self.words.all(), HALT)

    def prompt(self, program: Program) -> str:
        """A program as the text that a model continues with."""
        lines = [f"{i}: {' '.join(self._instruction_words(each))}" for i, each in enumerate(program.instructions)]
        lines += [f"@{address} {' '.join(self.value_words(value))}" for address, value in enumerate(program.memory)]
        return "\n".join([*lines, "0:"])

    def program(self, prompt: str) -> Program:
        """The program of a prompt; the later of two lines about the same thing counts."""
        words = split_words(prompt)
        code: dict[int, Instruction] = {}
        cells: dict[int, int] = {}
        at = 0
        while at < len(words) - 1:
            word, rest = words[at], words[at + 1 : at + 4]
            if word.startswith("@"):
                cells[self.words.address(word)] = self.value_of(words[at + 1 : at + 1 + self.places])
                at += 1 + self.places
            elif rest[0] == HALT:
                code[self.words.label(word)] = Halt()
                at += 2
            else:
                if len(rest) < 3:
                    raise ProgramError(f"{' '.join(words[at:])!r}: an instruction has three operands, a b c")
                code[self.words.label(word)] = Subleq(*map(self.operand_of, rest))
                at += 4
        return subleq_program(code, cells, words[at:])

    def expected(self, program: Program) -> Iterator[str]:
        """The words that follow a prompt, by the plain interpreter."""
        interpreter = SubleqInterpreter(program, self.word_bits)
        while not interpreter.halted:
            instruction = program.instructions[interpreter.program_counter]
            interpreter.step()
            assert isinstance(instruction, Subleq)
            yield from (f"@{instruction.b}", *self.value_words(interpreter.memory[instruction.b]),
                        f"{interpreter.program_counter}:")
        yield HALT

    def decoded(self, program: Program, trace: Sequence[str]) -> TokenTrace:
        """What the words after a prompt say. An instruction that is not whole is not counted."""
        memory, counter, words, length = list(program.memory), 0, list(trace), self.tokens_a_step
        halted = words[-1:] == [HALT]
        whole = words[: (len(words) - halted) // length * length]
        for at in range(0, len(whole), length):
            memory[self.words.address(whole[at])] = self.value_of(whole[at + 1 : at + 1 + self.places])
            counter = self.words.label(whole[at + length - 1])
        return TokenTrace(tuple(memory), counter, len(whole) // length, halted)

    def _instruction_words(self, each: Instruction) -> list[str]:
        return [HALT] if isinstance(each, Halt) else [self.operand_word(operand) for operand in (each.a, each.b, each.c)]

    def value_words(self, value: int) -> list[str]:
        """The words that write a value."""
        return [str(value)]

    def value_of(self, words: Sequence[str]) -> int:
        """The value that words write."""
        return self.words.number(words[0])

    def operand_word(self, operand: int) -> str:
        return str(operand)

    def operand_of(self, word: str) -> int:
        return self.words.number(word)

    def decoder(self, positions: Positions) -> StockDecoder:
        """What a checkpoint computes; imported here, since no weight is in this file."""
        from punchcard.language_models.stock.subleq import decoder

        return decoder(self, positions)


def subleq_program(code: Mapping[int, Instruction], cells: Mapping[int, int], end: Sequence[str]) -> Program:
    """The program of a prompt's lines and its last words, which must be the label of the first instruction."""
    if list(end) != ["0:"]:
        raise ProgramError(f"a prompt ends with the label of the first instruction, 0:, not {shortened(list(end[-1:]))}")
    for what, found in (("instruction", code), ("cell", cells)):
        if sorted(found) != list(range(len(found))):
            missing = next(i for i in range(len(found)) if i not in found)
            raise ProgramError(f"the prompt has no {what} {missing}, but later ones: {what}s count from 0")
    return Program.create([code[i] for i in range(len(code))], [cells[i] for i in range(len(cells))])


def split_words(text: str) -> list[str]:
    """The words of a text that is not empty, without its comments."""
    words = COMMENT.sub("", text).split()
    if not words:
        raise ProgramError("the prompt is empty: it lists instructions and cells")
    return words


def _integer(digits: str, word: str, allowed: range, rule: str) -> int:
    plain = digits.removeprefix("-")
    if not plain.isascii() or not plain.isdigit() or len(plain) > 6 or int(digits) not in allowed:
        raise ProgramError(f"{word!r} is not a token of this checkpoint: {rule}")
    return int(digits)


def first_difference(found: Sequence[str], expected: Iterator[str]) -> int | None:
    """The place of the first word that is not the expected one, or None."""
    for at, word in enumerate(islice(expected, len(found))):
        if found[at] != word:
            return at
    return None
