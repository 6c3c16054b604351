"""Images as text: SUBLEQ with one memory for code and data, and with input and output as tokens.

    @0 5            cell 0 holds 5: one line for each cell of the memory
    #0 104          the first character of the input;  #1 -1   its end
    <0              no character has been read yet
    0:              the first program counter

What follows is a line for each instruction that is executed:

    0: @7 -2        the instruction at 0 has written -2 to cell 7
    3: > 'H'        it has written the character H
    6: <1 @7 104    it has read the first character of the input into cell 7
    9: <2 > 'i'     it has read the second, and written it

The dialect is the standard one: address -1 is the port, and a negative program counter halts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from punchcard.errors import ProgramError, SizeError, shortened
from punchcard.language_models.stock.language import Words, check_sizes, split_words
from punchcard.language_models.stock.text import HALT, TokenTrace
from punchcard.machines.streams import reader
from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.oracle import ImageInterpreter
from punchcard.words.word import as_signed

if TYPE_CHECKING:
    from punchcard.language_models.stock.decoder import StockDecoder
    from punchcard.language_models.stock.positions import Positions

WRITES, READS, INPUT = ">", "<", "#"
DEFAULT_INPUTS = 32
SAFE = set(range(33, 127)) - {ord(";"), ord("\\"), ord("'")}
"""Characters that are themselves in a token."""


def character(code: int) -> str:
    """A byte as a token: quoted, without white space."""
    return f"'{chr(code)}'" if code in SAFE else f"'\\x{code:02x}'"


CHARACTERS = [character(code) for code in range(256)]


@dataclass(frozen=True)
class VonNeumannText:
    """Texts of images for some sizes: bits of a word, cells of the memory, and how many characters an input may have."""

    machine: ClassVar[str] = "von-neumann"
    tokens_a_step: ClassVar[int] = 4
    looks_back: ClassVar[int] = 1
    word_bits: int
    memory: int
    inputs: int = DEFAULT_INPUTS

    def __post_init__(self) -> None:
        check_sizes(self.word_bits, {"memory": self.memory})
        if self.word_bits < 8:
            raise SizeError(f"word_bits={self.word_bits}: characters have 8 bits, so words have 8 or more (--bits)")
        if not 0 <= self.inputs < 1 << self.word_bits - 1:
            raise SizeError(f"inputs={self.inputs}: an input has 0 to {(1 << self.word_bits - 1) - 1} characters")

    @classmethod
    def of(cls, sizes: Any) -> VonNeumannText:
        """The texts of a machine of these sizes, whose dialect must be the standard one; a folder says `inputs` too."""
        if getattr(sizes, "destination_first", False) or getattr(sizes, "ports_branch", False):
            raise ProgramError("a stock checkpoint has the dialect 'standard': choose that one (--dialect standard)")
        return cls(sizes.word_bits, sizes.memory, getattr(sizes, "inputs", DEFAULT_INPUTS))

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes by name."""
        return {"word_bits": self.word_bits, "memory": self.memory, "inputs": self.inputs}

    @property
    def words(self) -> Words:
        """The words of its texts, but for input and output."""
        return Words(self.word_bits, self.memory, self.memory)

    def vocabulary(self) -> tuple[str, ...]:
        """Labels, addresses, numbers, the output port, characters, how many were read, places of the input, the end."""
        return (*self.words.all(), WRITES, *CHARACTERS, *(f"{READS}{i}" for i in range(self.inputs + 2)),
                *(f"{INPUT}{i}" for i in range(self.inputs + 1)), HALT)

    def prompt(self, image: Image, given: bytes = b"") -> str:
        """An image and its input as the text that a model continues with."""
        if len(given) > self.inputs:
            raise ProgramError(f"an input of {len(given)} characters: this checkpoint has room for {self.inputs}")
        cells = image.loaded(self.word_bits, self.memory)
        lines = [f"@{address} {self._signed(word)}" for address, word in enumerate(cells)]
        lines += [f"{INPUT}{i} {self._signed(code)}" for i, code in enumerate([*given, -1])]
        return "\n".join([*lines, f"{READS}0", "0:"])

    def program(self, prompt: str) -> tuple[Image, bytes]:
        """The image and the input of a prompt."""
        words = split_words(prompt)
        cells: dict[int, int] = {}
        given: dict[int, int] = {}
        if words[-2:] != [f"{READS}0", "0:"] or len(words) % 2:
            raise ProgramError(f"a prompt ends with {READS}0 0:, not with {shortened(' '.join(words[-2:]))}")
        for word, value in zip(words[:-2:2], words[1:-2:2], strict=True):
            if word.startswith(INPUT):
                given[self.words.address("@" + word[1:])] = self.words.number(value)
            else:
                cells[self.words.address(word)] = self.words.number(value)
        if sorted(cells) != list(range(self.memory)):
            raise ProgramError(f"the prompt has {len(cells)} cells: it must have all of @0 to @{self.memory - 1}")
        if sorted(given) != list(range(len(given))) or not given or given[len(given) - 1] != -1:
            raise ProgramError(f"the input of a prompt is {INPUT}0, {INPUT}1, ... in order, and the last is -1")
        return (Image(tuple(cells[i] for i in range(self.memory))),
                bytes(given[i] & 255 for i in range(len(given) - 1)))

    def expected(self, program: tuple[Image, bytes]) -> Iterator[str]:
        """The words that follow a prompt, by the plain interpreter. It stops before an instruction that would be a fault."""
        image, given = program
        written: list[int] = []
        read = 0
        source = reader(given)
        interpreter = ImageInterpreter(image, self.word_bits, self.memory, read=source, write=written.append)
        port = (1 << self.word_bits) - 1
        while not interpreter.halted:
            a, b = interpreter.operands()
            interpreter.step()
            if a == port:
                read += 1
                yield f"{READS}{read}"
            if b == port:
                yield from (WRITES, CHARACTERS[written[-1]])
            else:
                yield from (f"@{b}", self._signed(interpreter.cells[b]))
            if interpreter.program_counter < self.memory:
                yield f"{interpreter.program_counter}:"
        if interpreter.stop == "halted":
            yield HALT

    def decoded(self, program: tuple[Image, bytes], trace: Sequence[str]) -> TokenTrace:
        """What the words after a prompt say. An instruction that is not whole is not counted."""
        memory = [self.words.number(self._signed(word)) for word in program[0].loaded(self.word_bits, self.memory)]
        output, counter, steps, at = bytearray(), 0, 0, 0
        words = list(trace)
        while at < len(words):
            line = words[at : at + 4]
            line = line[1:] if line[0].startswith(READS) else line[:3]
            if len(line) < 3:
                break
            if line[0] == WRITES:
                output.append(CHARACTERS.index(line[1]))
            else:
                memory[self.words.address(line[0])] = self.words.number(line[1])
            steps, at = steps + 1, at + 3 + words[at].startswith(READS)
            if line[2] == HALT:
                return TokenTrace(tuple(memory), counter, steps, True, bytes(output))
            counter = self.words.label(line[2])
        return TokenTrace(tuple(memory), counter, steps, False, bytes(output))

    def decoder(self, positions: Positions) -> StockDecoder:
        """What a checkpoint computes; imported here, since no weight is in this file."""
        from punchcard.language_models.stock.von_neumann import decoder

        return decoder(self, positions)

    def _signed(self, word: int) -> str:
        return str(as_signed(word, self.word_bits))
