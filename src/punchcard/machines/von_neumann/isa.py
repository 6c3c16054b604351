"""SUBLEQ as it is usually meant: one memory for code and data. An image is what is loaded at address 0.

    a b c      mem[b] = mem[b] - mem[a]; if mem[b] <= 0 goto address c, else goto the next three words

Words are integers modulo 2^N; N belongs to the machine, not to the image. A program may change itself. What the dialects
do about input, output and halting is declared here once; the interpreter, the machine and its host read it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, TypeAlias

from punchcard.arguments import checked
from punchcard.errors import ProgramError, SizeError, did_you_mean, printable
from punchcard.formatting import join_some, plural

if TYPE_CHECKING:
    LineNumbers: TypeAlias = Sequence[int]
    """Known to the type checker alone: there may be millions, which are not checked one by one."""

InputRule: TypeAlias = Literal["sets", "adds", "subtracts"]
"""What an input does to the cell that it is for: mem[b] = x, mem[b] += x, or mem[b] -= x."""

MIN_WORD_BITS = 3  # with two bits, the program counter could pass from 1 to 1 + 3 = 0
MAX_WORD_BITS = 50
MIN_MEMORY = 3  # one instruction
MAX_MEMORY = 1 << 24
DEFAULT_WORD_BITS = 16
MOST_DEFAULT_MEMORY = 1 << 16
Operand: TypeAlias = Literal["a", "b", "instruction"]


@dataclass(frozen=True)
class Dialect:
    """How three words are read, where the ports are, and what halts.

    In the standard family address -1 (all ones) is the port: as operand a it reads a character into mem[b], as operand b
    it writes the low byte of mem[a], and neither branches. With both, the character that is read is written. A negative
    program counter halts. `input` tells the variants of the family apart.

    In SIC-1 ports replace cells in an otherwise ordinary subtraction, and it does branch (`ports_branch`). The destination
    is operand a (`destination_first`). An instruction that has 253 among its operands takes one input, and reads it
    wherever 253 is; a store to 253 is lost. Reading 254 gives 0, using 255 halts, and so does a program counter of
    253 or more. Word and memory sizes are fixed.
    """

    name: str
    about: str
    input: InputRule = "sets"
    input_port: int = -1
    output_port: int = -1
    halt_port: int | None = None
    destination_first: bool = False
    ports_branch: bool = False
    word_bits: int | None = None
    memory: int | None = None

    def sizes(self, word_bits: int | None, memory: int | None) -> tuple[int, int]:
        """Bits of a word and cells of the memory, where they are given or not; the dialect's own are the only ones."""
        for name, given, fixed in (("word_bits", word_bits, self.word_bits), ("memory", memory, self.memory)):
            if fixed is not None and given not in (None, fixed):
                raise SizeError(f"{name}={given}: the dialect {self.name!r} has {fixed}")
        bits = self.word_bits or (DEFAULT_WORD_BITS if word_bits is None else word_bits)
        if not isinstance(bits, int) or bits < 1:
            raise SizeError(f"word_bits={bits!r}: it must be a positive integer")
        if not MIN_WORD_BITS <= bits <= MAX_WORD_BITS:
            raise SizeError(f"word_bits={bits}: a word has {MIN_WORD_BITS} to {MAX_WORD_BITS} bits")
        cells = self.memory or (min(1 << bits, MOST_DEFAULT_MEMORY) if memory is None else memory)
        if not isinstance(cells, int):
            raise SizeError(f"memory={cells!r}: it must be an integer")
        most = min(MAX_MEMORY, 1 << bits)
        if not MIN_MEMORY <= cells <= most:
            raise SizeError(f"memory={cells}: with words of {bits} bits a memory has {MIN_MEMORY} to {most} cells")
        return bits, cells

    def wider(self, bits: int) -> str:
        """What to do about words that are too short, where so many bits are needed."""
        if self.word_bits is not None:
            return f"the dialect {self.name!r} has words of {self.word_bits} bits"
        if bits > MAX_WORD_BITS:
            return f"a word has at most {MAX_WORD_BITS} bits"
        return f"use words of {bits} bits or more (--bits {bits})"

    def larger(self, words: int, word_bits: int, bits: int = 0) -> str:
        """What to do about a memory that is too small for so many words, where words have `word_bits` and need `bits`.

        A word must be able to count the cells.
        """
        if self.memory is not None:
            return f"the dialect {self.name!r} has a memory of {self.memory}"
        if words > MAX_MEMORY:
            return f"a memory has at most {MAX_MEMORY} cells"
        bits = max(bits, (words - 1).bit_length())
        if bits > word_bits:
            return f"use a memory of {words} or more and words of {bits} bits or more (--memory {words} --bits {bits})"
        return f"use a memory of {words} or more (--memory {words})"

    def halts_from(self, word_bits: int) -> int:
        """The least program counter that halts, as an unsigned number."""
        return 1 << (word_bits - 1) if self.halt_port is None else self.input_port

    def first_port(self, word_bits: int) -> int:
        """The least address that is a port, as an unsigned number; all addresses from there on are ports."""
        return min(self.input_port, self.output_port) % (1 << word_bits)


STANDARD = Dialect("standard", "address -1 is the port, and an input sets its cell")
INPUT_ADDS = Dialect("adds", "as standard, but an input is added to its cell", input="adds")
INPUT_SUBTRACTS = Dialect("subtracts", "as standard, but an input is subtracted from its cell", input="subtracts")
SIC1 = Dialect("sic1", "8 bits, 256 cells, mem[a] -= mem[b], ports 253 (input), 254 (output), 255 (halt)",
               input="subtracts", input_port=253, output_port=254, halt_port=255, destination_first=True, ports_branch=True,
               word_bits=8, memory=256)
DIALECTS: Mapping[str, Dialect] = {d.name: d for d in (STANDARD, INPUT_ADDS, INPUT_SUBTRACTS, SIC1)}


def find_dialect(name: str | Dialect) -> Dialect:
    """The dialect of this name."""
    if isinstance(name, Dialect):
        return name
    if not isinstance(name, str) or name not in DIALECTS:
        raise ProgramError(f"unknown dialect {name!r}{did_you_mean(str(name), DIALECTS)}: there are {', '.join(DIALECTS)}")
    return DIALECTS[name]


@dataclass(frozen=True)
class Fault:
    """An access beyond the memory: by an operand, or by the fetch of an instruction's own words."""

    program_counter: int
    operand: Operand
    address: int
    memory: int = field(default=0, compare=False)

    def __str__(self) -> str:
        what = "reaches to" if self.operand == "instruction" else f"has operand {self.operand} ="
        return (f"the instruction at {self.program_counter} {what} address {self.address}, and the memory has {self.memory} "
                "cells")


@dataclass(frozen=True)
class ImageState:
    """What a run is judged by: the memory, as unsigned numbers, and the program counter."""

    memory: tuple[int, ...]
    program_counter: int

    def __repr__(self) -> str:
        """Tens of thousands of words would fill a screen many times."""
        return f"<ImageState: program counter {self.program_counter}, memory {join_some(list(map(str, self.memory)))}>"


@checked
@dataclass(frozen=True)
class Image:
    """A program of the von Neumann machine: the words at address 0, 1, 2, ... The rest of the memory is 0.

    A word of N bits may be given as a signed or an unsigned number, from -2^(N-1) to 2^N - 1. `source` is the name of the
    program in error messages.
    """

    words: tuple[int, ...]
    source: str = ""
    labels: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Addresses that have a name."""
    lines: LineNumbers = field(default=(), compare=False, repr=False)
    """The line of the source, counted from 1, that each address comes from; 0: none."""
    word_bits: int | None = field(default=None, compare=False)
    """The words that it was compiled for, where that matters."""
    memory: int | None = field(default=None, compare=False)
    """The memory that it was compiled for, where that matters."""
    listing: str = field(default="", compare=False, repr=False)
    """The `.asq` text that it was compiled to, where it was compiled."""
    messages: Mapping[int, str] = field(default_factory=dict, compare=False, repr=False)
    """Why it stops with a fault, by what it leaves in its cell `error`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))
        for address, word in enumerate(self.words):
            if type(word) is not int:
                raise ProgramError(f"{self._where}word {address} is {word!r}: a word is an integer")
        if not self.words:
            raise ProgramError(f"{self._where}the image is empty: it needs at least one word")
        for name, place in self.labels.items():
            if not isinstance(name, str) or type(place) is not int or place < 0:
                raise ProgramError(f"{self._where}label {name!r} is at {place!r}: an address is an integer, 0 or more")

    @property
    def _where(self) -> str:
        return f"{self.source}: " if self.source else ""

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        labels = join_some([f"{name} at {place}" for name, place in self.labels.items()])
        return printable(f"<Image: {self._where}{plural(len(self), 'word')}{f'; {labels}' * bool(labels)}>")

    def with_values(self, values: Mapping[str, int]) -> Image:
        """A copy of the image with other words at the named addresses."""
        words = list(self.words)
        for name, value in values.items():
            if name not in self.labels:
                known = ", ".join(list(self.labels)[:20]) or "no names"
                raise ProgramError(f"{self._where}unknown label {name!r}{did_you_mean(name, self.labels)}; the image has "
                                   f"{known}")
            if self.labels[name] >= len(words):
                raise ProgramError(f"{self._where}label {name!r} is at {self.labels[name]}, beyond the image's words")
            words[self.labels[name]] = value
        return replace(self, words=tuple(words))

    def name_of(self, address: int) -> str:
        """The label of an address, such as `loop` or `loop+2`. The address itself, if no label is before it."""
        index = bisect_right(self._places, address, key=itemgetter(0)) - 1
        place, name = self._places[index] if index >= 0 else (0, "")
        return str(address) if not name else name if place == address else f"{name}+{address - place}"

    @cached_property
    def _places(self) -> Sequence[tuple[int, str]]:
        """The labels by address; of several at one address the last by name counts."""
        return sorted((place, name) for name, place in self.labels.items())

    def loaded(self, word_bits: int, memory: int, dialect: Dialect = STANDARD) -> list[int]:
        """A whole memory with the image in it, as unsigned numbers. Raises an error if it does not fit."""
        own = self.unsigned(word_bits, memory, dialect)
        return own + [0] * (memory - len(own))

    def unsigned(self, word_bits: int, memory: int, dialect: Dialect = STANDARD) -> list[int]:
        """The words of the image as unsigned numbers. Raises an error if it does not fit the memory."""
        if len(self.words) > memory:
            raise ProgramError(f"{self._where}the image has {len(self.words)} words, the memory {memory} cells: "
                               f"{dialect.larger(len(self.words), word_bits)}")
        for word in (min(self.words), max(self.words)):
            if why := misfit(word, word_bits, dialect):
                raise ProgramError(f"{self._where}word {self.words.index(word)} is {word}, which {why}")
        return [word & ((1 << word_bits) - 1) for word in self.words]


def misfit(word: int, word_bits: int, dialect: Dialect = STANDARD) -> str:
    """Why a number is not a word of so many bits, signed or unsigned, and what to do; nothing where it is one."""
    least, greatest = -(1 << (word_bits - 1)), (1 << word_bits) - 1
    if least <= word <= greatest:
        return ""
    needed = word.bit_length() if word >= 0 else (-word - 1).bit_length() + 1
    return f"does not fit a word of {word_bits} bits: the range is {least} to {greatest}; {dialect.wider(needed)}"
