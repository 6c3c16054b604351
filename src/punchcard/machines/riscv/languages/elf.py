"""ELF files, as compilers write them: segments, entry, names, and source lines where there is debug information (DWARF).

Files are read with pyelftools, which is imported when one is read. What this machine cannot run is refused with the reason.
What is written is read as the same program, without source lines.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from io import BytesIO
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from punchcard.errors import ProgramError, shortened
from punchcard.machines.riscv.isa import SYSTEM, WORD_BYTES
from punchcard.machines.riscv.languages.options import ELF_MAGIC
from punchcard.machines.riscv.program import PAGE, TO_HOST, RiscvProgram, Segment, SourceLine, base_for
from punchcard.machines.source import where

if TYPE_CHECKING:
    from elftools.dwarf.lineprogram import LineProgram
    from elftools.elf.elffile import ELFFile

RISCV = 243
ADVICE = "compile with -march=rv32im -mabi=ilp32"
WITH_TRAPS = f"use a machine with traps (--privileged), or {ADVICE}"
COMPRESSED = 0x1
FLAGS = {
    COMPRESSED: "the program has compressed instructions, which the machine does not have",
    0x6: "the program passes numbers in floating-point registers, which the machine does not have",
    0x8: "the program is for RV32E, with 16 registers",
}
"""Flags that a file must not have."""
EXTENSIONS = ("i", "m", "zmmul", "zifencei", "zicsr")
"""Extensions that a file may name. Of zicsr no instruction may be there, unless the machine has traps."""
PRIVILEGED = ("a", "zaamo", "zalrsc", "zicntr", "zihpm")
"""Those that a file for a machine with traps may name."""
_TYPES = {"ET_REL": "a relocatable object: link it first", "ET_CORE": "a core dump",
          "ET_DYN": "position-independent or a shared library: link it with -no-pie"}
MOST_SYMBOLS = 1 << 20
EXECUTED = 4
"""The flag of a section that holds code."""


def load(data: bytes, source: str = "", *, base: int | None = None, privileged: bool = False) -> RiscvProgram:
    """The program in the bytes of a file; `base` is where the memory begins, by default as `base_for` says.

    What is linked above the first page, as programs for an operating system are, is called with its name. `privileged`: for
    a machine with traps, whose programs may have more instructions, and are not called. One that has `tohost` is a
    test of such a machine: it may have any instructions, for those that the machine does not have trap.
    """
    try:
        _check_ident(data)
        elf = open_elf(data)
        _check_header(elf, privileged and TO_HOST in dict(_symbols(elf)))
        segments, symbols = list(_segments(elf, data)), dict(_symbols(elf))
        entry = int(elf.header["e_entry"])
        names = _check_extensions(elf, data, privileged, TO_HOST in symbols)
    except ProgramError as error:
        raise ProgramError(f"{where(source)}{error}") from None
    except Exception as error:  # whatever a library makes of a damaged file
        reason = f"{type(error).__name__}: {shortened(str(error))}"
        raise ProgramError(f"{where(source)}the ELF file is damaged or cut off: {reason}") from None
    if not segments:
        raise ProgramError(f"{where(source)}the ELF file has nothing to load")
    first = base_for(segments) if base is None else base
    program = RiscvProgram(tuple(segments), entry, first, symbols, DebugLines(data), source,
                           None if names is None else not {"m", "zmmul"}.isdisjoint(names))
    return program.with_arguments(()) if program.segments[0].address >= PAGE and not privileged else program


def _check_ident(data: bytes) -> None:
    """The first bytes, which say how to read the others."""
    if not data.startswith(ELF_MAGIC):
        raise ProgramError(f"the file does not begin as an ELF file does ({shortened(data[:4])})")
    if len(data) < 52:
        raise ProgramError(f"the ELF file is cut off: it has {len(data)} bytes, and the header alone 52")
    machine = int.from_bytes(data[18:20], "big" if data[5] == 2 else "little")
    if machine != RISCV:
        from elftools.elf.enums import ENUM_E_MACHINE

        names = (name.removeprefix("EM_") for name, value in ENUM_E_MACHINE.items() if value == machine)
        raise ProgramError(f"this is an ELF file for {next(names, f'machine {machine}')}, not for RISC-V: compile with a "
                           "RISC-V compiler")
    if data[4] == 2:
        raise ProgramError(f"this is a 64-bit ELF file, and the machine has 32 bits: {ADVICE}")
    if data[5] == 2:
        raise ProgramError(f"this is a big-endian ELF file, and the machine is little-endian: {ADVICE}")
    if data[4] != 1 or data[5] != 1:
        raise ProgramError(f"the ELF file has class {data[4]} and byte order {data[5]}: both must be 1")


def _check_header(elf: ELFFile, tries: bool) -> None:
    kind = str(elf.header["e_type"])
    if kind != "ET_EXEC":
        raise ProgramError(f"the ELF file is not an executable: it is {_TYPES.get(kind, f'of type {kind}')}")
    for flags, problem in FLAGS.items():
        if int(elf.header["e_flags"]) & flags and not (tries and flags == COMPRESSED):
            raise ProgramError(f"{problem}: {ADVICE}")


def _segments(elf: ELFFile, data: bytes) -> Iterator[Segment]:
    """What is loaded. Bytes go where the file wants them loaded; memory is needed also where the program will have them."""
    for number in range(elf.num_segments()):
        header = elf.get_segment(number).header
        if header["p_type"] != "PT_LOAD" or not header["p_memsz"]:
            continue
        start, size, memory = (int(header[name]) for name in ("p_offset", "p_filesz", "p_memsz"))
        physical, virtual = int(header["p_paddr"]), int(header["p_vaddr"])
        if start + size > len(data):
            raise ProgramError(f"the ELF file is cut off: segment {number} ends at byte {start + size}, the file at "
                               f"{len(data)}")
        if size > memory:
            raise ProgramError(f"segment {number} of the ELF file has {size} bytes in the file and {memory} in the memory: "
                               "the file is damaged")
        content = data[start : start + size]
        if physical == virtual or not size:
            yield Segment(virtual, content, memory)
        else:
            yield Segment(physical, content, size)
            yield Segment(virtual, b"", memory)


def _symbols(elf: ELFFile) -> Iterator[tuple[str, int]]:
    """Names of functions first, then of data and of places; not those that tools make for themselves."""
    from elftools.elf.sections import SymbolTableSection

    table = elf.get_section_by_name(".symtab")
    if not isinstance(table, SymbolTableSection) or table.num_symbols() > MOST_SYMBOLS:
        return
    found = [(symbol.name, symbol.entry) for symbol in table.iter_symbols()]
    for kinds in (("STT_FUNC",), ("STT_OBJECT", "STT_NOTYPE")):
        for name, entry in found:
            made = not name or name.startswith(("$", ".L"))
            if not made and entry["st_info"]["type"] in kinds and entry["st_shndx"] not in ("SHN_UNDEF", "SHN_ABS"):
                yield name, int(entry["st_value"])


def _check_extensions(elf: ELFFile, data: bytes, privileged: bool, tries: bool) -> list[str] | None:
    """The extensions that a file's attributes name, or None; one that the machine does not have is refused.

    Unless the file `tries` what there is, and the machine has traps.
    """
    architecture = _architecture(elf)
    if not architecture:
        return None
    if not architecture.startswith("rv32"):
        raise ProgramError(f"the program is for {shortened(architecture)}, not for rv32: {ADVICE}")
    names = extensions_of(architecture)
    known = (*EXTENSIONS, *PRIVILEGED) if privileged else EXTENSIONS
    wrong = [name for name in names if name not in known]
    if wrong and not (tries and privileged):
        many = "extensions" if len(wrong) > 1 else "extension"
        what = "compressed instructions (c)" if wrong == ["c"] else f"the {many} {', '.join(wrong)}"
        raise ProgramError(f"the program uses {what}, which the machine does not have: "
                           f"{WITH_TRAPS if not privileged and (tries or set(wrong) <= set(PRIVILEGED)) else ADVICE}")
    place = _register_access(elf, data) if "zicsr" in names and not privileged else None
    if place is not None:
        raise ProgramError(f"the instruction at {place:#x} uses a control register (zicsr), which the machine does "
                           f"not have: {WITH_TRAPS}")
    return names


def extensions_of(architecture: str) -> list[str]:
    """The names in an architecture string such as rv32i2p1_m2p0_zicsr2p0."""
    rest = architecture.lower().removeprefix("rv32")
    found = []
    for part in filter(None, rest.split("_")):
        if part[0] in "zsx":
            found.append(re.sub(r"[0-9]+p[0-9]+$", "", part))
        else:
            found += [letter for letter, _ in re.findall(r"([a-z])([0-9]+p[0-9]+)?", part)]
    return found


def _architecture(elf: ELFFile) -> str:
    """What the attributes say, or nothing."""
    section = elf.get_section_by_name(".riscv.attributes")
    if section is None or not hasattr(section, "iter_subsections"):
        return ""
    for subsection in section.iter_subsections():
        for part in subsection.iter_subsubsections():
            for attribute in part.iter_attributes():
                if attribute.tag == "TAG_ARCH":
                    return str(attribute.value)
    return ""


def _register_access(elf: ELFFile, data: bytes) -> int | None:
    """The address of the first instruction for control registers."""
    for start, size, address in _code(elf):
        for place in range(start, start + size - 3, WORD_BYTES):
            word = int.from_bytes(data[place : place + WORD_BYTES], "little")
            if word & 0x7F == SYSTEM and word >> 12 & 3:
                return address + place - start
    return None


def _code(elf: ELFFile) -> Iterator[tuple[int, int, int]]:
    """Where code is in the file, its size and its address: by sections, since a segment may hold texts beside code."""
    code = [section.header for section in elf.iter_sections()
            if section.header["sh_type"] == "SHT_PROGBITS" and section.header["sh_flags"] & EXECUTED]
    for header in code:
        yield int(header["sh_offset"]), int(header["sh_size"]), int(header["sh_addr"])
    for number in range(0 if code else elf.num_segments()):
        header = elf.get_segment(number).header
        if header["p_type"] == "PT_LOAD" and header["p_flags"] & 1:
            yield int(header["p_offset"]), int(header["p_filesz"]), int(header["p_vaddr"])


IDENT = ELF_MAGIC + bytes([1, 1, 1]) + bytes(9)  # 32 bits, little-endian, version 1
HEADER, PROGRAM_HEADER, SECTION_HEADER, SYMBOL = (struct.Struct(f"<{form}") for form in (
    "16sHHIIIIIHHHHHH", "8I", "10I", "IIIBBH"))
EXECUTABLE, LOAD, ALL_RIGHTS = 2, 1, 7
PROGBITS, SYMBOLS, STRINGS, NOBITS = 1, 2, 3, 8
WRITE_ALLOCATE_EXECUTE = 7
GLOBAL, FIRST_GLOBAL = 1 << 4, 1
ALIGNMENT = 4


class _Section(NamedTuple):
    """A section of a file that is written: what its header says, but for its name and its place."""

    kind: int
    data: bytes
    size: int
    flags: int = 0
    address: int = 0
    link: int = 0
    first: int = 0
    entry_bytes: int = 0


def write(program: RiscvProgram) -> bytes:
    """A program as an executable file. Each segment is a section too, so that symbols have one."""
    segments = program.segments
    file = bytearray(HEADER.size + PROGRAM_HEADER.size * len(segments))
    own = [f".load{number}" for number in range(len(segments))]
    section_names, names = _texts([*own, ".symtab", ".strtab", ".shstrtab"])
    symbol_names, places = _texts(program.symbols)
    symbols = b"".join(_symbol_entries(program, places))
    loaded = [_Section(PROGBITS if each.data else NOBITS, each.data, each.size, WRITE_ALLOCATE_EXECUTE, each.address)
              for each in segments]
    sections = [*loaded, _Section(SYMBOLS, symbols, len(symbols), 0, 0, len(segments) + 2, FIRST_GLOBAL, SYMBOL.size),
                *(_Section(STRINGS, texts, len(texts)) for texts in (symbol_names, section_names))]
    starts = [_appended(file, each.data) for each in sections]
    headers = [SECTION_HEADER.pack(*[0] * 10)]
    headers += [SECTION_HEADER.pack(name, each.kind, each.flags, each.address, start, each.size, each.link, each.first, 1,
                                    each.entry_bytes) for name, start, each in zip(names, starts, sections, strict=True)]
    for number, (start, each) in enumerate(zip(starts, loaded, strict=False)):
        PROGRAM_HEADER.pack_into(file, HEADER.size + PROGRAM_HEADER.size * number, LOAD, start, each.address, each.address,
                                 len(each.data), each.size, ALL_RIGHTS, 1)
    table = _appended(file, b"".join(headers))
    file[: HEADER.size] = HEADER.pack(
        IDENT, EXECUTABLE, RISCV, 1, program.entry, HEADER.size, table, 0, HEADER.size, PROGRAM_HEADER.size, len(segments),
        SECTION_HEADER.size, len(headers), len(headers) - 1)
    return bytes(file)


def _texts(texts: Iterable[str]) -> tuple[bytes, list[int]]:
    """A table of texts that end with a zero, after an empty one; and where each begins."""
    pieces = [b"\0", *(text.encode() + b"\0" for text in texts)]
    return b"".join(pieces), list(accumulate(map(len, pieces)))[:-1]


def _appended(file: bytearray, data: bytes) -> int:
    """Put data at the end of a file; returns their place."""
    file += bytes(-len(file) % ALIGNMENT)
    place = len(file)
    file += data
    return place


def _symbol_entries(program: RiscvProgram, names: Sequence[int]) -> Iterator[bytes]:
    """Each name with the section that it is in; a name after the last byte belongs to the last section before it."""
    yield SYMBOL.pack(0, 0, 0, 0, 0, 0)
    starts = [segment.address for segment in program.segments[1:]]
    for name, address in zip(names, program.symbols.values(), strict=True):
        yield SYMBOL.pack(name, address, 0, GLOBAL, 0, 1 + bisect_right(starts, address))


MOST_LINES = 1 << 18
"""The most instructions whose lines are kept."""


def open_elf(data: bytes) -> ELFFile:
    """The file as the library sees it."""
    from elftools.elf.elffile import ELFFile

    return ELFFile(BytesIO(data))


class DebugLines(Mapping[int, SourceLine]):
    """Source lines by address. They are read on first use, since that may take longer than a short run."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @cached_property
    def _lines(self) -> dict[int, SourceLine]:
        try:
            return dict(_debug_lines(open_elf(self._data)))
        except Exception:  # debug information is a help; a program runs without it
            return {}

    def __getitem__(self, address: int) -> SourceLine:
        return self._lines[address]

    def __iter__(self) -> Iterator[int]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


def _debug_lines(elf: ELFFile) -> Iterator[tuple[int, SourceLine]]:
    """Address and line of each instruction that the line tables know.

    What a linker has left out of a program still has lines, from address 0 on. So of stretches that begin there one may be
    true, and of several it is unknown which.
    """
    if not elf.has_dwarf_info():
        return
    found = list(_stretches(elf))
    at_zero = [lines for first, lines in found if first == 0]
    yield from at_zero[0] if len(at_zero) == 1 else ()
    for first, lines in found:
        if first:
            yield from lines


def _stretches(elf: ELFFile) -> Iterator[tuple[int, list[tuple[int, SourceLine]]]]:
    """Instructions that follow each other, with the first address of each such stretch."""
    information = elf.get_dwarf_info(relocate_dwarf_sections=False)
    left = MOST_LINES
    for unit in information.iter_CUs():
        program = information.line_program_for_CU(unit)
        if program is None:
            continue
        files = _file_names(program)
        before, first, lines = None, 0, list[tuple[int, SourceLine]]()
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            if before is None:
                first, lines = state.address, []
            elif before.line:
                addresses = range(before.address, state.address, WORD_BYTES)[:left]
                left -= len(addresses)
                line = SourceLine(files.get(before.file, "?"), before.line)
                lines += [(address, line) for address in addresses]
            before = None if state.end_sequence else state
            if before is None:
                yield first, lines
        if left <= 0:
            return


def _file_names(program: LineProgram) -> dict[int, str]:
    """File names by their number, which counts from 0 in DWARF 5 and from 1 before."""
    first = 0 if program.header["version"] >= 5 else 1
    entries = enumerate(program.header["file_entry"], first)
    return {number: entry.name.decode("utf-8", "replace") for number, entry in entries}
