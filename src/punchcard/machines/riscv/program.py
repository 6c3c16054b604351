"""A RISC-V program: bytes at addresses, where to begin, names and source lines. It knows nothing of cards."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from punchcard.arguments import checked
from punchcard.errors import ProgramError, did_you_mean, printable
from punchcard.formatting import plural
from punchcard.machines.riscv import argument_vector
from punchcard.machines.riscv.argument_vector import STACK_ALIGNMENT, aligned
from punchcard.machines.riscv.isa import MASK, REGISTERS, WORD_BYTES
from punchcard.machines.riscv.languages.options import LEAST_STACK

if TYPE_CHECKING:
    SourceLines: TypeAlias = Mapping[int, "SourceLine"]
    """Known to the type checker alone: at run time its lines are not checked, so a table can be read when it is used."""

END_OF_ADDRESSES = 1 << 32
DEFAULT_MEMORY = 1 << 16
"""Words of a machine's memory, unless the program needs more."""
PAGE = 1 << 12
"""The first page: a program that is loaded above it runs in a memory that does not have address 0, the null pointer."""
STACK_POINTER, ARGUMENT_VECTOR = 2, 11
TO_HOST = "tohost"
"""The symbol of a word by which a program on a machine with traps ends its run: 1 is success, 2 n + 1 the status n."""
"""Bytes for a stack, without which the end of the memory is not the place for it."""


class SourceLine(NamedTuple):
    """Where an instruction comes from; `text` is the line itself, where it is known."""

    file: str
    line: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Segment:
    """Bytes from an address on, `size` of them: those of `data`, then zeros."""

    address: int
    data: bytes
    size: int = -1

    def __post_init__(self) -> None:
        if self.size == -1:
            object.__setattr__(self, "size", len(self.data))
        if type(self.address) is not int or type(self.size) is not int or not isinstance(self.data, bytes):
            raise ProgramError(f"a segment with address {self.address!r} and size {self.size!r}: both are integers, and the "
                               "data bytes")
        if self.size < len(self.data):
            raise ProgramError(f"the segment at {self.address:#x} has {len(self.data)} bytes and the size {self.size}: the "
                               "size counts all bytes")
        if not 0 <= self.address <= self.end <= END_OF_ADDRESSES:
            raise ProgramError(f"the segment at {self.address:#x} has {self.size} bytes: addresses are 0 to {MASK:#x}")

    @property
    def end(self) -> int:
        """The address after its last byte."""
        return self.address + self.size


@checked
@dataclass(frozen=True)
class RiscvProgram:
    """A RISC-V program: what is in the memory before a run. All addresses are byte addresses.

    segments   the content of the memory; bytes outside all segments are 0
    entry      address of the first instruction
    base       address of the first byte of the memory
    symbols    addresses by name
    lines      source lines by the address of the instruction
    source     name of the program in error messages
    multiply   whether the program needs the M extension. Default: found from its instructions
    arguments  what the program is called with: its name, and the arguments after it. Default: nothing, not even a name
    start      registers that are not 0 when it begins: their numbers and values. Default: sp, and a1 where it has arguments
    misaligned what happens to a misaligned load or store of the memory, on a machine with traps: it traps, or the host
               completes it
    """

    segments: tuple[Segment, ...]
    entry: int
    base: int = 0
    symbols: Mapping[str, int] = field(default_factory=dict, compare=False)
    lines: SourceLines = field(default_factory=dict, compare=False)
    source: str = ""
    multiply: bool | None = field(default=None, compare=False)
    arguments: tuple[str, ...] = ()
    start: tuple[tuple[int, int], ...] = ()
    misaligned: Literal["complete", "trap"] = "trap"

    def __post_init__(self) -> None:
        segments = tuple(sorted((s for s in self.segments if s.size), key=lambda segment: segment.address))
        object.__setattr__(self, "segments", segments)
        if not isinstance(self.lines, Mapping):
            raise ProgramError(f"{self.where}the lines must be a mapping of addresses, not a {type(self.lines).__name__}")
        if not segments:
            raise ProgramError(f"{self.where}the program is empty: it needs at least one instruction")
        if self.base % WORD_BYTES or not 0 <= self.base < END_OF_ADDRESSES:
            raise ProgramError(f"{self.where}the base {self.base:#x}: it must be a multiple of {WORD_BYTES}, 0 to {MASK:#x}")
        if segments[0].address < self.base:
            raise ProgramError(f"{self.where}the segment at {segments[0].address:#x} is below the base {self.base:#x}: "
                               f"use a base of {segments[0].address & ~3:#x} or less")
        for one, other in pairwise(segments):
            if one.end > other.address:
                raise ProgramError(f"{self.where}the segments at {one.address:#x} ({one.size} bytes) and at "
                                   f"{other.address:#x} overlap")
        if self.entry % WORD_BYTES:
            raise ProgramError(f"{self.where}the entry {self.entry:#x}: it must be a multiple of {WORD_BYTES}")
        if not any(segment.address <= self.entry < segment.end for segment in segments):
            raise ProgramError(f"{self.where}the entry {self.entry:#x} is in none of the program's segments")
        for register, value in self.start:
            if register not in range(1, len(REGISTERS)) or value not in range(MASK + 1):
                raise ProgramError(f"{self.where}register x{register} cannot begin with {value}: there are x1 to x31, which "
                                   f"hold 0 to {MASK:#x}")
        try:
            argument_vector.size_of(self.arguments)
        except ProgramError as error:
            raise ProgramError(f"{self.where}{error}") from None

    def __repr__(self) -> str:
        size = plural(sum(segment.size for segment in self.segments), "byte")
        return (f"<RiscvProgram: {printable(self.where)}{size} from {self.segments[0].address:#x} to {self.end:#x}, "
                f"{plural(len(self.symbols), 'name')}, begins at {self.entry:#x}>")

    @property
    def where(self) -> str:
        """The beginning of an error message about the program."""
        return f"{self.source}: " if self.source else ""

    @property
    def end(self) -> int:
        """The address after the last byte."""
        return self.segments[-1].end

    @property
    def tohost_word(self) -> int | None:
        """The index of the memory word `tohost`, to which tests for bare machines write how they end, or None."""
        address = self.symbols.get(TO_HOST)
        if address is None or address % WORD_BYTES or not any(s.address <= address < s.end for s in self.segments):
            return None
        return (address - self.base) // WORD_BYTES

    @property
    def heap_start(self) -> int:
        """Where the heap may begin: after the last byte."""
        return aligned(self.end)

    @property
    def needed_words(self) -> int:
        """The least number of memory words for all segments, and for the arguments."""
        above = self._argument_bytes > self._room_below
        return -(-((self.heap_start + self._argument_bytes if above else self.end) - self.base) // WORD_BYTES)

    def check_fits(self, count: int) -> None:
        """Raise an error if the program does not fit a memory of so many words."""
        if self.needed_words > count:
            raise ProgramError(f"{self.where}the program needs {self.extent}, the memory has {count}: use a memory of "
                               f"{self.needed_words} or more")

    @property
    def extent(self) -> str:
        """How much memory the program needs, and why, for messages."""
        last = self.segments[-1]
        called = f", and {plural(self._argument_bytes, 'byte')} of arguments" if self.arguments else ""
        return (f"{self.needed_words} words from {self.base:#x} on (its segment at {last.address:#x} has "
                f"{plural(last.size, 'byte')}, up to {last.end:#x}{called})")

    def image(self, count: int) -> bytes:
        """A memory of so many words with the program and its arguments in it. Raises an error if it does not fit."""
        self.check_fits(count)
        content = bytearray(WORD_BYTES * count)
        stack = self.stack_pointer(count)
        pieces = [(segment.address, segment.data) for segment in self.segments]
        for address, data in (*pieces, (stack, argument_vector.block_at(stack, self.arguments))):
            content[address - self.base : address - self.base + len(data)] = data
        return bytes(content)

    def words(self, count: int) -> list[int]:
        """The words of `image` as numbers."""
        return list(struct.unpack(f"<{count}I", self.image(count)))

    def registers(self, count: int) -> list[int]:
        """The initial registers: sp is where the stack begins in a memory of so many words, a1 is argv.

        Registers in `start` have its values. All others are 0.
        """
        found = [0] * len(REGISTERS)
        found[STACK_POINTER] = self.stack_pointer(count) & MASK
        if self.arguments:
            found[ARGUMENT_VECTOR] = (self.stack_pointer(count) + WORD_BYTES) & MASK
        for register, value in self.start:
            found[register] = value
        return found

    def stack_pointer(self, count: int) -> int:
        """Where the stack begins: below the arguments, at the end of the memory, or below a program that is there itself."""
        end = (self.base + WORD_BYTES * count) // STACK_ALIGNMENT * STACK_ALIGNMENT
        above = end - self.end
        if above < self._argument_bytes + LEAST_STACK and above < self._room_below:
            end = self.base + self._room_below
        return end - self._argument_bytes

    @property
    def _room_below(self) -> int:
        """Bytes of the memory below the first segment, from the base on."""
        return max(0, self.segments[0].address // STACK_ALIGNMENT * STACK_ALIGNMENT - self.base)

    @cached_property
    def _argument_bytes(self) -> int:
        return argument_vector.size_of(self.arguments)

    def with_arguments(self, arguments: Sequence[str]) -> RiscvProgram:
        """A copy of the program that is called with these arguments: `argv[1]` is the first of them."""
        return replace(self, arguments=(name_in(self.source), *arguments))

    def with_values(self, values: Mapping[str, int]) -> RiscvProgram:
        """A copy of the program with other words at the named addresses."""
        changed = self
        for name, value in values.items():
            if name not in self.symbols:
                names = [one for one in self.symbols if not one.startswith("_")]  # those of libraries come last
                known = ", ".join((names or list(self.symbols))[:20]) or "no names"
                raise ProgramError(f"{self.where}unknown symbol {name!r}{did_you_mean(name, self.symbols)}; the program has "
                                   f"{known}")
            if not -(1 << 31) <= value <= MASK:
                raise ProgramError(f"{self.where}{name}={value}: a word is {-(1 << 31)} to {MASK}")
            data = (value & MASK).to_bytes(WORD_BYTES, "little")
            changed = replace(changed, segments=_stored(changed, self.symbols[name], data, f"symbol {name!r}"))
        return changed

    def with_word(self, address: int, word: int) -> RiscvProgram:
        """A copy of the program with another word at an address of it."""
        data = (word & MASK).to_bytes(WORD_BYTES, "little")
        return replace(self, segments=_stored(self, address, data, "the word"))

    @cached_property
    def _places(self) -> tuple[Sequence[int], Sequence[str]]:
        """The symbols by address; of several at one address the first counts."""
        by_address: dict[int, str] = {}
        for name, place in self.symbols.items():
            by_address.setdefault(place, name)
        ordered = sorted(by_address)
        return ordered, [by_address[place] for place in ordered]

    def name_of(self, address: int) -> str:
        """The symbol of an address, such as `main` or `main+8`. The address itself, if no symbol is before it."""
        places, names = self._places
        index = bisect_right(places, address) - 1
        segment = bisect_right(self.segments, address, key=lambda each: each.address) - 1
        inside = segment >= 0 and address < self.segments[segment].end
        if index < 0 or not inside:
            return f"{address:#x}"
        offset = address - places[index]
        return names[index] if offset == 0 else f"{names[index]}+{offset}"


def name_in(source: str) -> str:
    """What a program is called, by the file that it came from: argv[0]."""
    return Path(source).name or "program"


NEAR = 1 << 24
WINDOW = 1 << 22
MOST_ZEROS = 63
"""A longer gap of zeros makes a segment of its own."""


def base_for(segments: Sequence[Segment]) -> int:
    """The first address of a memory for these: their first page where they begin within 16 MiB, else a multiple of 4 MiB.

    At the end of the addresses it is as far below as a usual memory needs.
    """
    first = min((segment.address for segment in segments if segment.size), default=0)
    if first >= END_OF_ADDRESSES - WINDOW:
        return min(first // PAGE * PAGE, END_OF_ADDRESSES - WORD_BYTES * DEFAULT_MEMORY)
    step = PAGE if first < NEAR else WINDOW
    return first // step * step


def segments_of(pieces: Iterable[tuple[int, int, bytes | None]]) -> Iterator[Segment]:
    """Segments from pieces in the order of their addresses: address, size, and bytes, or None for zeros."""
    start, end, content = 0, 0, bytearray()
    for address, size, data in pieces:
        if address != end or (data is not None and address - (start + len(content)) > MOST_ZEROS):
            if end > start:
                yield Segment(start, bytes(content), end - start)
            start, content = address, bytearray()
        if data is not None:
            content += bytes(address - start - len(content)) + data
        end = address + size
    if end > start:
        yield Segment(start, bytes(content), end - start)


def _stored(program: RiscvProgram, address: int, data: bytes, what: str) -> tuple[Segment, ...]:
    """The segments with other bytes at an address, which is that of `what`."""
    segments = list(program.segments)
    for index, segment in enumerate(segments):
        place = address - segment.address
        if place >= 0 and address + len(data) <= segment.end:
            content = bytearray(segment.data.ljust(min(segment.size, place + len(data)), b"\0"))
            content[place : place + len(data)] = data
            segments[index] = replace(segment, data=bytes(content))
            return tuple(segments)
    raise ProgramError(f"{program.where}{what} is at {address:#x}, where the program has no word")
