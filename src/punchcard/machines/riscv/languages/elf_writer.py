"""ELF files written: segments, entry and names of a program. `elf.load` gives the same program, without source lines."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import pairwise

from punchcard.machines.riscv.languages.elf import MAGIC, RISCV
from punchcard.machines.riscv.program import RiscvProgram, Segment

IDENT = MAGIC + bytes([1, 1, 1]) + bytes(9)  # 32 bits, little-endian, version 1
HEADER, PROGRAM_HEADER, SECTION_HEADER, SYMBOL = (struct.Struct(f"<{form}") for form in (
    "16sHHIIIIIHHHHHH", "8I", "10I", "IIIBBH"))
EXECUTABLE, LOAD, ALL_RIGHTS = 2, 1, 7
PROGBITS, SYMBOLS, STRINGS, NOBITS = 1, 2, 3, 8
WRITE_ALLOCATE_EXECUTE = 7
GLOBAL = 1 << 4
ALIGNMENT = 4


class _Names:
    """A table of texts that end with a zero; an empty one comes first."""

    def __init__(self) -> None:
        self.data = bytearray(1)

    def place(self, name: str) -> int:
        at = len(self.data)
        self.data += name.encode() + b"\0"
        return at


def write(program: RiscvProgram) -> bytes:
    """A program as an executable file. Each segment is a section too, so that symbols have one."""
    segments = program.segments
    file = bytearray(HEADER.size + PROGRAM_HEADER.size * len(segments))
    section_names, symbol_names = _Names(), _Names()
    sections = [SECTION_HEADER.pack(*[0] * 10)]
    places = []
    for number, segment in enumerate(segments):
        places.append(_appended(file, segment.data))
        place = section_names.place(f".load{number}")
        sections.append(SECTION_HEADER.pack(place, PROGBITS if segment.data else NOBITS, WRITE_ALLOCATE_EXECUTE,
                                            segment.address, places[-1], segment.size, 0, 0, 1, 0))
    symbols = b"".join(_symbols(program, symbol_names))
    for name, kind, data, link, one in (
        (".symtab", SYMBOLS, symbols, len(segments) + 2, SYMBOL.size), (".strtab", STRINGS, symbol_names.data, 0, 0),
        (".shstrtab", STRINGS, section_names.data, 0, 0),
    ):
        first_global = int(kind == SYMBOLS)
        sections.append(SECTION_HEADER.pack(section_names.place(name), kind, 0, 0, _appended(file, data), len(data), link,
                                            first_global, 1, one))
    table = _appended(file, b"".join(sections))
    file[: HEADER.size] = HEADER.pack(
        IDENT, EXECUTABLE, RISCV, 1, program.entry, HEADER.size, table, 0, HEADER.size, PROGRAM_HEADER.size, len(segments),
        SECTION_HEADER.size, len(sections), len(sections) - 1)
    for number, (segment, place) in enumerate(zip(segments, places, strict=True)):
        PROGRAM_HEADER.pack_into(file, HEADER.size + PROGRAM_HEADER.size * number, LOAD, place, segment.address,
                                 segment.address, len(segment.data), segment.size, ALL_RIGHTS, 1)
    return bytes(file)


def _appended(file: bytearray, data: bytes | bytearray) -> int:
    """Where the data stand that are put at the end of a file."""
    file += bytes(-len(file) % ALIGNMENT)
    place = len(file)
    file += data
    return place


def _symbols(program: RiscvProgram, names: _Names) -> Iterator[bytes]:
    """Each name with the section that it is in; a name after the last byte belongs to the last section before it."""
    yield SYMBOL.pack(0, 0, 0, 0, 0, 0)
    for name, address in program.symbols.items():
        yield SYMBOL.pack(names.place(name), address, 0, GLOBAL, 0, 1 + _section_of(address, program.segments))


def _section_of(address: int, segments: tuple[Segment, ...]) -> int:
    return next((i for i, (_, after) in enumerate(pairwise(segments)) if address < after.address), len(segments) - 1)
