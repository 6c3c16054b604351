"""Sections: what is placed where. Offsets are known while a text is read, addresses once it has been read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from punchcard.machines.riscv.isa import WORD_BYTES
from punchcard.machines.riscv.languages.assembly.expressions import Expression
from punchcard.machines.riscv.languages.assembly.instructions import Code
from punchcard.machines.riscv.program import Segment
from punchcard.machines.source import Token

GROUPS = ("text", "rodata", "data", "bss")
"""The order of sections in the memory."""
PREFIXES = {".text": "text", ".init": "text", ".rodata": "rodata", ".srodata": "rodata", ".data": "data", ".sdata": "data",
            ".bss": "bss", ".sbss": "bss"}
DROPPED = (".debug", ".comment", ".note", ".riscv.attributes", ".llvm", ".eh_frame")
"""Sections that are not loaded."""
NEAR = 64
"""A gap of fewer zeros does not make a segment of its own."""


@dataclass(frozen=True)
class Datum:
    """A number of so many bytes, before it has a value."""

    token: Token
    expression: Expression
    size: int


@dataclass(frozen=True)
class Item:
    """What is at an offset: bytes, a number, an instruction, or `size` zeros."""

    offset: int
    size: int
    content: bytes | Datum | Code | None


@dataclass
class Section:
    """Items one after the other."""

    name: str
    group: str
    items: list[Item] = field(default_factory=list)
    length: int = 0
    alignment: int = WORD_BYTES
    address: int = 0

    def add(self, content: bytes | Datum | Code | None, size: int) -> None:
        if size:
            self.items.append(Item(self.length, size, content))
        self.length += size

    def skip_to(self, offset: int) -> None:
        """Leave a gap, which no segment has."""
        self.length = offset


def group_of(name: str, flags: str) -> str | None:
    """The group of a section by its name, or else by its flags; None where it is not loaded."""
    if name.startswith(DROPPED):
        return None
    for prefix, group in PREFIXES.items():
        if name == prefix or name.startswith(prefix + "."):
            return group
    return "text" if "x" in flags else "data" if "w" in flags or not flags else "rodata"


def place(sections: list[Section], base: int) -> int:
    """Give each section its address; the address after the last."""
    address = base
    for section in sorted(sections, key=lambda each: GROUPS.index(each.group)):
        address = -(-address // section.alignment) * section.alignment
        section.address = address
        address += section.length
    return address


def segments_of(pieces: Iterator[tuple[int, int, bytes | None]]) -> Iterator[Segment]:
    """Segments from pieces in the order of their addresses: address, size, and bytes, or None for zeros."""
    start, end, content = 0, 0, bytearray()
    for address, size, data in pieces:
        if address != end or (data is not None and address - (start + len(content)) >= NEAR):
            if end > start:
                yield Segment(start, bytes(content), end - start)
            start, content = address, bytearray()
        if data is not None:
            content += bytes(address - start - len(content)) + data
        end = address + size
    if end > start:
        yield Segment(start, bytes(content), end - start)
