"""Files whose names, and the names in them, hold characters that would change a terminal, a page or a plot."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from punchcard.machines.riscv.isa import encode
from punchcard.machines.riscv.languages import elf
from tests.fuzzing import samples

CONTROLS = "\x1b]0;owned\x07\x1b[31m\x9b2J\x7f\b\r\u202e\u2066\u200f\u2028"
"""An OSC and a CSI sequence, one of C1, DEL, backspace, carriage return, bidi marks, a line separator."""
FILE_NAME = f"n{CONTROLS}[red]:smile:<b>$x_{{\n\t\udce9"
"""A name with all of them, with markup of rich, HTML and TeX, a newline, and a byte that is not UTF-8."""


def inside(name: str) -> str:
    """A name as a file can hold it, in UTF-8."""
    return name.encode(errors="replace").decode()


NAME = inside(FILE_NAME)


def executable(name: str, *, halts: bool = True) -> bytes:
    """An ELF file of three instructions, with a symbol and a source file (DWARF) of this name."""
    words = [encode("addi", 10, 0, immediate=0), encode("addi", 17, 0, immediate=93), encode("ecall") if halts else 0]
    code = b"".join(word.to_bytes(4, "little") for word in words)
    text = inside(name).encode() + b"\0"
    symbol = elf.SYMBOL.pack(0, 0, 0, 0, 0, 0) + elf.SYMBOL.pack(1, 0, len(code), elf.GLOBAL | 2, 0, 1)
    sections = {
        ".text": (elf.PROGBITS, code, elf.WRITE_ALLOCATE_EXECUTE, 0), ".symtab": (elf.SYMBOLS, symbol, 0, 3),
        ".strtab": (elf.STRINGS, b"\0" + text, 0, 0), ".debug_abbrev": (elf.PROGBITS, b"\1\x11\0\x10\6\0\0\0", 0, 0),
        ".debug_info": (elf.PROGBITS, struct.pack("<IHIBBI", 12, 2, 0, 4, 1, 0), 0, 0),
        ".debug_line": (elf.PROGBITS, _line_table(text, len(code)), 0, 0),
    }
    names = b"\0" + b"".join(f"{each}\0".encode() for each in [*sections, ".shstrtab"])
    sections[".shstrtab"] = elf.STRINGS, names, 0, 0
    place = elf.HEADER.size + elf.PROGRAM_HEADER.size
    headers, body = [bytes(elf.SECTION_HEADER.size)], b""
    for each, (kind, data, flags, link) in sections.items():
        headers.append(elf.SECTION_HEADER.pack(names.index(f"\0{each}\0".encode()) + 1, kind, flags, 0, place + len(body),
                                               len(data), link, 1, 1, elf.SYMBOL.size if kind == elf.SYMBOLS else 0))
        body += data
    header = elf.HEADER.pack(elf.IDENT, elf.EXECUTABLE, elf.RISCV, 1, 0, elf.HEADER.size, place + len(body), 0,
                             elf.HEADER.size, elf.PROGRAM_HEADER.size, 1, elf.SECTION_HEADER.size, len(headers),
                             len(headers) - 1)
    segment = elf.PROGRAM_HEADER.pack(elf.LOAD, place, 0, 0, len(code), len(code), elf.ALL_RIGHTS, 1)
    return header + segment + body + b"".join(headers)


def _line_table(name: bytes, size: int) -> bytes:
    """A DWARF 2 line table: all the code is line 1 of one file."""
    lengths = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1])
    header = struct.pack("<BBbBB", 1, 1, -5, 14, 10) + lengths + b"\0" + name + bytes([0, 0, 0, 0])
    program = bytes([0, 5, 2, 0, 0, 0, 0, 1, 2, size, 0, 1, 1])
    return struct.pack("<IHI", 6 + len(header) + len(program), 2, len(header)) + header + program


def write_files(folder: Path, name: str = FILE_NAME) -> dict[str, Path]:
    """A file of each sort, all with hostile names, by extension; those that begin with .bad are refused, or fault."""
    held = inside(name)
    kinds = {samples.registry().kind(kind).languages[0].extensions[0]: text for kind, text in samples.SMALL_PROGRAMS.items()}
    contents: dict[str, bytes] = {
        **{extension: text.encode() for extension, text in kinds.items()},
        ".elf": executable(name), ".bad.elf": executable(name, halts=False),
        ".bf": f"+[>+]{CONTROLS.translate({91: None, 93: None})}".encode(),
        ".py": b"def main(x: int = 2) -> int:\n    return x\n",
        ".bad.py": f"def main() -> int:\n    return '{CONTROLS.replace(chr(13), '')}' @ 1\n".encode(),
        ".csv": f'"{held}","y{held}"\n-0.5,-0.4\n0.5,0.6\n'.encode(),
        ".certificate": json.dumps({"machine": name, "claims": [name]}).encode(),
        ".bad.s": f"j {held}\n".encode(), ".bad.asq": f"a b {held}\n".encode(),
        ".bad.fleq": f".data\n{held} scalar 1\n.code\nhalt\n".encode(), ".bad.subleq": f".data\n{held} 1\n".encode(),
        ".bad.tm": f"tape {held}\n".encode(), ".bad.json": json.dumps({held: 1}).encode(), ".bad.hex": held.encode(),
        ".bad.safetensors": held.encode(),
    }
    found = {}
    for extension, content in contents.items():
        found[extension] = folder / f"{name}{extension}"
        found[extension].write_bytes(content)
    return found
