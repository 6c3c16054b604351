"""ELF files, as compilers write them: segments, entry, names, and source lines where there is debug information.

Files are read with pyelftools, which is imported when one is read. What this machine cannot run is refused with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from punchcard.errors import ProgramError, shortened
from punchcard.machines.riscv.isa import SYSTEM, WORD_BYTES
from punchcard.machines.riscv.languages.debug_lines import DebugLines, opened
from punchcard.machines.riscv.program import RiscvProgram, Segment, base_for

MAGIC = b"\x7fELF"
RISCV = 243
ADVICE = "compile with -march=rv32im -mabi=ilp32"
FLAGS = {
    0x1: "the program has compressed instructions, which the machine does not have",
    0x6: "the program passes numbers in floating-point registers, which the machine does not have",
    0x8: "the program is for RV32E, with 16 registers",
}
"""Flags that a file must not have."""
EXTENSIONS = ("i", "m", "zmmul", "zifencei", "zicsr")
"""Extensions that a file may name. Of zicsr no instruction may be there."""
_TYPES = {"ET_REL": "a relocatable object: link it first", "ET_CORE": "a core dump",
          "ET_DYN": "position-independent or a shared library: link it with -no-pie"}
MOST_SYMBOLS = 1 << 20
EXECUTED = 4
"""The flag of a section that holds code."""


def load(data: bytes, source: str = "", *, base: int | None = None) -> RiscvProgram:
    """The program in the bytes of a file; without `base`, the memory begins at 0 or, where that is far, near the program."""
    where = f"{source}: " if source else ""
    try:
        _check_ident(data)
        elf = opened(data)
        _check_header(elf)
        segments = list(_segments(elf, data))
        symbols = dict(_symbols(elf))
        entry = int(elf.header["e_entry"])
        names = _check_extensions(elf, data)
    except ProgramError as error:
        raise ProgramError(f"{where}{error}") from None
    except Exception as error:  # whatever a library makes of a damaged file
        reason = f"{type(error).__name__}: {shortened(str(error))}"
        raise ProgramError(f"{where}the ELF file is damaged or cut off: {reason}") from None
    if not segments:
        raise ProgramError(f"{where}the ELF file has nothing to load")
    first = base_for(segments) if base is None else base
    return RiscvProgram(tuple(segments), entry, first, symbols, DebugLines(data), source,
                        None if names is None else not {"m", "zmmul"}.isdisjoint(names))


def _check_ident(data: bytes) -> None:
    """The first bytes, which say how to read the others."""
    if not data.startswith(MAGIC):
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


def _check_header(elf: Any) -> None:
    kind = str(elf.header["e_type"])
    if kind != "ET_EXEC":
        raise ProgramError(f"the ELF file is not an executable: it is {_TYPES.get(kind, f'of type {kind}')}")
    for flags, problem in FLAGS.items():
        if int(elf.header["e_flags"]) & flags:
            raise ProgramError(f"{problem}: {ADVICE}")


def _segments(elf: Any, data: bytes) -> Iterator[Segment]:
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


def _symbols(elf: Any) -> Iterator[tuple[str, int]]:
    """Names of functions first, then of data and of places; not those that tools make for themselves."""
    table = elf.get_section_by_name(".symtab")
    if table is None or not hasattr(table, "iter_symbols") or table.num_symbols() > MOST_SYMBOLS:
        return
    found = [(symbol.name, symbol.entry) for symbol in table.iter_symbols()]
    for kinds in (("STT_FUNC",), ("STT_OBJECT", "STT_NOTYPE")):
        for name, entry in found:
            made = not name or name.startswith(("$", ".L"))
            if not made and entry["st_info"]["type"] in kinds and entry["st_shndx"] not in ("SHN_UNDEF", "SHN_ABS"):
                yield name, int(entry["st_value"])


def _check_extensions(elf: Any, data: bytes) -> list[str] | None:
    """The extensions that a file's attributes name, or None; one that the machine does not have is refused."""
    architecture = _architecture(elf)
    if not architecture:
        return None
    if not architecture.startswith("rv32"):
        raise ProgramError(f"the program is for {shortened(architecture)}, not for rv32: {ADVICE}")
    names = extensions_of(architecture)
    wrong = [name for name in names if name not in EXTENSIONS]
    if wrong:
        many = "extensions" if len(wrong) > 1 else "extension"
        what = "compressed instructions (c)" if wrong == ["c"] else f"the {many} {', '.join(wrong)}"
        raise ProgramError(f"the program uses {what}, which the machine does not have: {ADVICE}")
    place = _register_access(elf, data) if "zicsr" in names else None
    if place is not None:
        raise ProgramError(f"the instruction at {place:#x} uses a control register (zicsr), which the machine does "
                           f"not have: {ADVICE}")
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


def _architecture(elf: Any) -> str:
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


def _register_access(elf: Any, data: bytes) -> int | None:
    """The address of the first instruction for control registers."""
    for start, size, address in _code(elf):
        for place in range(start, start + size - 3, WORD_BYTES):
            word = int.from_bytes(data[place : place + WORD_BYTES], "little")
            if word & 0x7F == SYSTEM and word >> 12 & 3:
                return address + place - start
    return None


def _code(elf: Any) -> Iterator[tuple[int, int, int]]:
    """Where code is in the file, its size and its address: by sections, since a segment may hold texts beside code."""
    code = [section.header for section in elf.iter_sections()
            if section.header["sh_type"] == "SHT_PROGBITS" and section.header["sh_flags"] & EXECUTED]
    for header in code:
        yield int(header["sh_offset"]), int(header["sh_size"]), int(header["sh_addr"])
    for number in range(0 if code else elf.num_segments()):
        header = elf.get_segment(number).header
        if header["p_type"] == "PT_LOAD" and header["p_flags"] & 1:
            yield int(header["p_offset"]), int(header["p_filesz"]), int(header["p_vaddr"])
