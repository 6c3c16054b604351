"""A program as assembly text that gives the same bytes, entry, base and names.

    _start:
        addi a0, zero, 5                # 0x0000  00500513
        jal ra, double                  # 0x0004  008000ef

What is not an instruction is written as data. A jump's target gets a label.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from punchcard.machines.riscv.isa import MASK, WORD_BYTES, decode
from punchcard.machines.riscv.languages.assembly.assembler import ENTRY
from punchcard.machines.riscv.program import RiscvProgram, Segment
from punchcard.machines.riscv.syntax import text_of

NAME = re.compile(r"[A-Za-z_.$][A-Za-z0-9_.$]{0,250}")
_NOT_ZERO = re.compile(rb"[^\0]")
FEW_ZEROS = 16
"""From so many zero bytes on they are written as one."""
OPERATION_WIDTH = 36


def disassemble(program: RiscvProgram) -> str:
    """The text of a program."""
    return "".join(line + "\n" for line in _Listing(program).lines())


class _Region:
    """Addresses without a gap, and what is there: data in places, and zeros."""

    def __init__(self, start: int) -> None:
        self.start = self.end = start
        self._starts: list[int] = []
        self._chunks: list[bytes] = []

    def add(self, segment: Segment) -> None:
        self._starts.append(segment.address)
        self._chunks.append(segment.data)
        self.end = segment.end

    def number(self, address: int, size: int) -> int:
        """The bytes at an address as a number."""
        index = max(0, bisect_right(self._starts, address) - 1)
        found = bytearray(size)
        for start, data in zip(self._starts[index : index + size], self._chunks[index : index + size], strict=True):
            for place in range(max(start, address), min(start + len(data), address + size)):
                found[place - address] = data[place - start]
        return int.from_bytes(found, "little")

    def words(self) -> Iterator[int]:
        """The addresses of words that hold data; one may come twice where two pieces of data meet in it."""
        least = -(-self.start // WORD_BYTES) * WORD_BYTES
        for start, data in zip(self._starts, self._chunks, strict=True):
            first = max(least, start // WORD_BYTES * WORD_BYTES)
            yield from range(first, min(start + len(data), self.end - WORD_BYTES + 1), WORD_BYTES)

    def zeros(self, address: int, stop: int) -> int:
        """How many zeros there are from an address on, up to a stop."""
        for index in range(max(0, bisect_right(self._starts, address) - 1), bisect_left(self._starts, stop)):
            start = self._starts[index]
            other = _NOT_ZERO.search(self._chunks[index], max(0, address - start), stop - start)
            if other:
                return start + other.start() - address
        return stop - address


def _regions(program: RiscvProgram) -> list[_Region]:
    """What touches is one: a listing shows bytes at addresses, not how they were put together."""
    found: list[_Region] = []
    for segment in program.segments:
        if not found or found[-1].end != segment.address:
            found.append(_Region(segment.address))
        found[-1].add(segment)
    return found


class _Listing:
    """One program on its way to text."""

    def __init__(self, program: RiscvProgram) -> None:
        self._program = program
        self._regions = _regions(program)
        self._starts = [region.start for region in self._regions]
        self._labels: dict[int, list[str]] = {}
        for name, address in program.symbols.items():
            if NAME.fullmatch(name) and name != "." and self._inside(address):
                self._labels.setdefault(address, []).append(name)
        taken = {name for names in self._labels.values() for name in names}
        for address in sorted({program.entry, *self._targets()}):
            if address not in self._labels:
                name = f"L{address:x}"
                self._labels[address] = [name if name not in taken else f"L{address:x}.{len(taken)}"]
        self._places = sorted(self._labels)

    def _inside(self, address: int) -> bool:
        index = bisect_right(self._starts, address) - 1
        return index >= 0 and address < self._regions[index].end

    def _targets(self) -> Iterator[int]:
        """Where jumps and branches go, inside the program."""
        for region in self._regions:
            for address in region.words():
                found = decode(region.number(address, WORD_BYTES))
                if found is not None and found.instruction.format in ("B", "J"):
                    target = (address + found.immediate) & MASK
                    if target % WORD_BYTES == 0 and self._inside(target):
                        yield target

    def lines(self) -> Iterator[str]:
        program = self._program
        if program.base:
            yield f".base {program.base:#x}"
        entry = self._labels[program.entry]
        default = {name: address for address, names in self._labels.items() for name in names}.get(ENTRY, program.base)
        if default != program.entry:
            yield f".entry {entry[0]}"
        place = program.base
        for region in self._regions:
            if region.start != place:
                yield f".org {region.start - program.base:#x}"
            yield from self._region(region)
            place = region.end

    def _region(self, region: _Region) -> Iterator[str]:
        first, last = (bisect_left(self._places, address) for address in (region.start, region.end))
        address = region.start
        for stop in (*self._places[first:last], region.end):
            while address < stop:
                size, text, word = self._piece(region, address, stop)
                yield f"    {text:<{OPERATION_WIDTH}}# {address:#06x}{word}"
                address += size
            yield from (f"{name}:" for name in self._labels.get(stop, ()) if stop < region.end)

    def _piece(self, region: _Region, address: int, stop: int) -> tuple[int, str, str]:
        """What is at an address, up to a stop: its size, its text, and the word in digits."""
        zeros = 0 if region.number(address, 1) else region.zeros(address, stop)
        zeros = zeros if zeros == stop - address else zeros // WORD_BYTES * WORD_BYTES
        if zeros and zeros >= min(FEW_ZEROS, region.end - address):
            return zeros, f".zero {zeros}", ""
        if address % WORD_BYTES or stop - address < WORD_BYTES:
            return 1, f".byte {region.number(address, 1):#04x}", ""
        word = region.number(address, WORD_BYTES)
        return WORD_BYTES, text_of(word, address, self._name), f"  {word:08x}"

    def _name(self, address: int) -> str:
        return self._labels[address][0] if address in self._labels else f"{address:#x}"
