"""Kernel images: a file becomes a program that begins as firmware would begin it.

The image is at the beginning of the memory, the device tree near its end. a0 is the number of the processor, 0, and a1 the
address of the device tree. A flat image begins with its first word, an ELF file at its entry.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path

from punchcard.budget import format_bytes, size_in_bytes
from punchcard.errors import ProgramError, PunchcardError, SizeError, shortened
from punchcard.files import read_limited
from punchcard.formatting import plural
from punchcard.machines.riscv.isa import WORD_BYTES, decode
from punchcard.machines.riscv.languages import elf
from punchcard.machines.riscv.languages.options import ELF_MAGIC
from punchcard.machines.riscv.program import PAGE, RiscvProgram, Segment
from punchcard.machines.riscv.system.bus import Misaligned
from punchcard.machines.riscv.system.platform import COMMAND_LINE, RAM, device_tree

LEAST_MEMORY, MOST_MEMORY = 1 << 14, 1 << 26
"""Bytes: two pages and more for the device tree, and the largest card."""
A0, A1 = 10, 11
LONGEST_COMMAND_LINE = 2048
GZIP = b"\x1f\x8b"
OTHERS = {b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\x04\x22\x4d\x18": "lz4", b"PK\3\4": "zip"}
"""How files begin that have to be unpacked first."""
TEXT = bytes((*b"\t\n\r", *range(0x20, 0x7F)))
"""Bytes of text. Its words may be instructions, too."""
HEADER, HEADER_AT = b"RSC\x05", 0x38
"""What a kernel's flat image has behind its first instructions."""


def load_image(
    path: str | Path, *, memory: int | str = "16M", base: int = RAM, multiply: bool = True,
    command_line: str | None = None, misaligned: Misaligned = "complete",
) -> tuple[RiscvProgram, int]:
    """The program in an image, flat (also packed with gzip) or ELF, and the words of a memory for it.

    memory         bytes, a power of two, also as text such as "16M"
    base           the address of the first byte
    multiply       whether the device tree says that the machine has the M extension
    command_line   what a kernel is called with. Default: its console is the serial port
    misaligned     what happens to misaligned loads and stores
    """
    size, source = memory_bytes(memory), str(path)
    data = unpacked(read_limited(path, "kernel image", error=ProgramError), source, size)
    text = COMMAND_LINE if command_line is None else command_line
    if len(text.encode("utf-8", "surrogateescape")) > LONGEST_COMMAND_LINE or "\0" in text:
        raise PunchcardError(f"the command line {shortened(text)}: it has at most {LONGEST_COMMAND_LINE} bytes, none of "
                             "them zero")
    tree_size = len(device_tree(size, base, multiply=multiply, command_line=text))
    tree_at = (base + size - tree_size) // PAGE * PAGE
    tree = Segment(tree_at, device_tree(tree_at - base, base, multiply=multiply, command_line=text))
    if tree_at <= base:
        raise SizeError(f"memory={memory}: it has no room beside the device tree of {format_bytes(tree_size)}")
    program = _elf(data, source, base) if data.startswith(ELF_MAGIC) else _flat(data, source, base)
    last = max(program.end, base + _size_in_header(data))
    if last > tree_at:
        raise ProgramError(
            f"{source}: the image needs the memory from {program.segments[0].address:#x} to {last:#x}, and a memory of "
            f"{format_bytes(size)} has room from {base:#x} to {tree_at:#x}: use a larger memory (--memory "
            f"{_enough(last - base)})")
    started = replace(program, segments=(*program.segments, tree), base=base, multiply=multiply, arguments=(),
                      start=((A0, 0), (A1, tree_at)), misaligned=misaligned)
    return started, size // WORD_BYTES


def memory_bytes(given: int | str) -> int:
    """A size of the memory in bytes."""
    size = size_in_bytes(given, f"memory={given!r}")
    if not LEAST_MEMORY <= size <= MOST_MEMORY or size & size - 1:
        near = 1 << min(max(size - 1, LEAST_MEMORY - 1), MOST_MEMORY - 1).bit_length()
        raise SizeError(f"memory={given!r}: it must be a power of two, {_short(LEAST_MEMORY)} to {_short(MOST_MEMORY)} "
                        f"bytes, such as {_short(near)}")
    return size


def _short(size: int) -> str:
    return f"{size >> 20}M" if size >= 1 << 20 else f"{size >> 10}K"


def _enough(size: int) -> str:
    """A memory that has so many bytes, and room for the device tree."""
    return _short(1 << (size + PAGE).bit_length())


def unpacked(data: bytes, source: str, most: int) -> bytes:
    """The bytes of an image, which may be packed with gzip; more than `most` are not unpacked."""
    for start, name in OTHERS.items():
        if data.startswith(start):
            raise ProgramError(f"{source}: this is a {name} file: unpack it first; images are flat, also packed with gzip, "
                               "or ELF")
    if not data.startswith(GZIP):
        return data
    unpack, found = zlib.decompressobj(wbits=31), b""
    try:
        found = unpack.decompress(data, most + 1)
    except zlib.error as error:
        raise ProgramError(f"{source}: the gzip file is damaged: {error}") from None
    if len(found) > most:
        raise ProgramError(f"{source}: unpacked, the image has more than the {format_bytes(most)} of the memory: use a "
                           f"larger memory (--memory {_short(2 * most)})")
    if not unpack.eof:
        raise ProgramError(f"{source}: the gzip file is cut off after {len(data)} bytes")
    return found


def _elf(data: bytes, source: str, base: int) -> RiscvProgram:
    program = elf.load(data, source, privileged=True)
    first = program.segments[0].address
    if first < base:
        raise ProgramError(f"{source}: this is not linked as a kernel: it begins at {first:#x}, and the memory at "
                           f"{base:#x}; a program is for `punchcard run {source}`")
    return program


def _flat(data: bytes, source: str, base: int) -> RiscvProgram:
    if len(data) < WORD_BYTES:
        raise ProgramError(f"{source}: this is not a kernel image: it has {plural(len(data), 'byte')}, and an instruction "
                           "of RV32IMA has four")
    first = int.from_bytes(data[:WORD_BYTES], "little")
    if decode(first) is None:
        hint = ""
        if data.startswith(b"MZ"):
            hint = (": it is made for EFI, with compressed instructions, which the machine does not have (CONFIG_EFI=n, "
                    "CONFIG_RISCV_ISA_C=n)")
        raise ProgramError(f"{source}: this is not a kernel image: its first word is {first:#010x}, which is not an "
                           f"instruction of RV32IMA{hint}")
    if not data[:PAGE].translate(None, TEXT):
        raise ProgramError(f"{source}: this is not a kernel image: it is text, which begins with {shortened(data[:20])}")
    offset = struct.unpack_from("<Q", data, 8)[0] if _has_header(data) else 0
    if offset:
        raise ProgramError(f"{source}: the image wants to be {format_bytes(offset)} above the beginning of the memory, as "
                           "kernels for supervisor mode do: build it for machine mode (CONFIG_RISCV_M_MODE=y, CONFIG_MMU=n)")
    return RiscvProgram((Segment(base, data),), base, base, source=source)


def _has_header(data: bytes) -> bool:
    return data[HEADER_AT : HEADER_AT + len(HEADER)] == HEADER


def _size_in_header(data: bytes) -> int:
    """The bytes of memory that a kernel says it takes, its variables included."""
    size: int = struct.unpack_from("<Q", data, 16)[0] if _has_header(data) and not data.startswith(ELF_MAGIC) else 0
    return size
