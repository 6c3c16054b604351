"""Programs as text, for a checkpoint whose prompt is the program: what the tokens are, and what a trace says.

SUBLEQ, a line for each instruction and cell, then the label of the first instruction:

    0: 2 1 1      instruction 0: subleq, operands a b c         7: halt     the end of a program
    @1 5          cell 1 holds 5

What follows is a line for each instruction that is executed: its label, the address that it writes to, and the value.

    0: @1 -2      instruction 0 has written -2 to cell 1

No tensor is in here, and no weight: the trace that is expected comes from the plain interpreter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from punchcard.errors import ProgramError, SizeError, shortened
from punchcard.machines.subleq.isa import Halt, Instruction, Program, State, Subleq
from punchcard.machines.subleq.oracle import SubleqInterpreter

MIN_WORD_BITS, MAX_WORD_BITS = 4, 16
HALT = "halt"


@dataclass(frozen=True)
class TokenTrace:
    """What a trace says: the memory and the next instruction after it, how many instructions it has, whether it ends."""

    state: State
    steps: int
    halted: bool


@dataclass(frozen=True)
class SubleqText:
    """Texts of SUBLEQ programs for some sizes: bits of a word, and how many cells and instructions a text may name."""

    machine: ClassVar[str] = "subleq"
    tokens_a_step: ClassVar[int] = 3
    word_bits: int
    memory: int
    instructions: int

    def __post_init__(self) -> None:
        if not MIN_WORD_BITS <= self.word_bits <= MAX_WORD_BITS:
            raise SizeError(f"word_bits={self.word_bits}: a stock checkpoint has a token for each word, so words have "
                            f"{MIN_WORD_BITS} to {MAX_WORD_BITS} bits (--bits)")
        most = 1 << self.word_bits - 1
        for name, count in (("memory", self.memory), ("instructions", self.instructions)):
            if not 1 <= count <= most:
                raise SizeError(f"{name}={count}: operands are words that are not negative, so with words of "
                                f"{self.word_bits} bits there are 1 to {most}")

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes by name."""
        return {"word_bits": self.word_bits, "memory": self.memory, "instructions": self.instructions}

    def vocabulary(self) -> tuple[str, ...]:
        """The text of each token: labels, addresses, numbers by their bits, and the end."""
        half = 1 << self.word_bits - 1
        return (*(f"{i}:" for i in range(self.instructions)), *(f"@{i}" for i in range(self.memory)),
                *map(str, [*range(half), *range(-half, 0)]), HALT)

    def prompt(self, program: Program) -> str:
        """A program as the text that a model goes on with."""
        lines = [f"{i}: {HALT}" if isinstance(each, Halt) else f"{i}: {each.a} {each.b} {each.c}"
                 for i, each in enumerate(program.instructions)]
        lines += [f"@{address} {value}" for address, value in enumerate(program.memory)]
        return "\n".join([*lines, "0:"])

    def program(self, prompt: str) -> Program:
        """The program of a prompt; the later of two lines about the same thing counts."""
        words = _words(prompt)
        code: dict[int, Instruction] = {}
        cells: dict[int, int] = {}
        at = 0
        while at < len(words) - 1:
            word, rest = words[at], words[at + 1 : at + 4]
            if word.startswith("@"):
                cells[self._address(word)] = self._number(rest[0])
                at += 2
            elif rest[0] == HALT:
                code[self._label(word)] = Halt()
                at += 2
            else:
                if len(rest) < 3:
                    raise ProgramError(f"{' '.join(words[at:])!r}: an instruction has three operands, a b c")
                code[self._label(word)] = Subleq(*map(self._number, rest))
                at += 4
        if at != len(words) - 1 or words[-1] != "0:":
            raise ProgramError(f"a prompt ends with the label of the first instruction, 0:, not {shortened(words[-1:])}")
        for what, found in (("instruction", code), ("cell", cells)):
            if sorted(found) != list(range(len(found))):
                missing = next(i for i in range(len(found)) if i not in found)
                raise ProgramError(f"the prompt has no {what} {missing}, but later ones: {what}s count from 0")
        return Program.create([code[i] for i in range(len(code))], [cells[i] for i in range(len(cells))])

    def expected(self, program: Program) -> Iterator[str]:
        """The words that follow a prompt, by the plain interpreter."""
        interpreter = SubleqInterpreter(program, self.word_bits)
        while not interpreter.halted:
            instruction = program.instructions[interpreter.program_counter]
            interpreter.step()
            assert isinstance(instruction, Subleq)
            yield from (f"@{instruction.b}", str(interpreter.memory[instruction.b]), f"{interpreter.program_counter}:")
        yield HALT

    def decoded(self, program: Program, trace: Sequence[str]) -> TokenTrace:
        """What the words after a prompt say. An instruction that is not whole is not counted."""
        memory, counter = list(program.memory), 0
        words = list(trace)
        halted = bool(words) and words[-1] == HALT
        whole = words[: (len(words) - halted) // 3 * 3]
        for at in range(0, len(whole), 3):
            address, value, label = whole[at : at + 3]
            memory[self._address(address)] = self._number(value)
            counter = self._label(label)
        return TokenTrace(State(tuple(memory), counter), len(whole) // 3, halted)

    def _label(self, word: str) -> int:
        if not word.endswith(":"):
            raise ProgramError(f"{word!r} where a label such as 0: is expected")
        return _integer(word[:-1], word, range(self.instructions), f"labels are 0: to {self.instructions - 1}:")

    def _address(self, word: str) -> int:
        if not word.startswith("@"):
            raise ProgramError(f"{word!r} where an address such as @0 is expected")
        return _integer(word[1:], word, range(self.memory), f"addresses are @0 to @{self.memory - 1}")

    def _number(self, word: str) -> int:
        half = 1 << self.word_bits - 1
        return _integer(word, word, range(-half, half), f"numbers are {-half} to {half - 1}")


TEXTS: dict[str, type[Any]] = {text.machine: text for text in (SubleqText,)}
"""By the name of the machine."""


def _words(text: str) -> list[str]:
    words = text.split()
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
