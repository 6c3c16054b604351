"""Kernel images: how a file becomes a program, and what is refused; and lines that are typed when a machine waits."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import pytest

import punchcard
from punchcard.errors import ProgramError, PunchcardError, SizeError
from punchcard.machines.riscv.languages import elf
from punchcard.machines.riscv.system import script
from punchcard.machines.riscv.system.image import load_image, memory_bytes
from punchcard.machines.riscv.system.platform import RAM
from punchcard.machines.riscv.system.script import PATIENCE, Script, typed
from punchcard.machines.streams import END_OF_INPUT, NOT_YET

FIRST = (0x0000006F).to_bytes(4, "little")
"""A jump to itself."""


def header(offset: int = 0, size: int = 0) -> bytes:
    """A flat image as a kernel's begins."""
    return (FIRST + bytes(4) + struct.pack("<2Q", offset, size)).ljust(0x38, b"\0") + b"RSC\x05" + bytes(8)


def image(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "Image"
    path.write_bytes(data)
    return path


def test_a_flat_image(tmp_path: Path) -> None:
    data = header(size=9000)
    for packed in (data, gzip.compress(data)):
        program, words = load_image(image(tmp_path, packed), memory="16K", command_line="quiet")
        assert (words, program.base, program.entry, program.multiply) == (4096, RAM, RAM, True)
        kernel, tree = program.segments
        assert (kernel.address, kernel.data) == (RAM, data)
        assert (tree.address % 4096, tree.data[:4]) == (0, bytes.fromhex("d00dfeed"))
        assert RAM + 8192 < tree.end <= RAM + (16 << 10)
        assert b"quiet\0" in tree.data
        assert struct.pack(">2Q", RAM, tree.address - RAM) in tree.data, "a kernel may use the memory up to the tree"
        assert program.registers(words)[10:12] == [0, tree.address]
        assert program.misaligned == "complete"
    assert load_image(image(tmp_path, data), memory=1 << 14, misaligned="trap")[0].misaligned == "trap"


def test_an_executable(tmp_path: Path) -> None:
    program = punchcard.assemble("nop\nstart: j start\n", "riscv", base=RAM)
    data = elf.write(program)
    found, _ = load_image(image(tmp_path, data), memory="16K")
    assert (found.entry, found.symbols["start"], found.arguments) == (program.entry, RAM + 4, ())


@pytest.mark.parametrize(("data", "message"), [
    (b"", "this is not a kernel image: it has 0 bytes, and an instruction of RV32IMA has four"),
    (b"\x13", "this is not a kernel image: it has 1 byte, and an instruction of RV32IMA has four"),
    (b"hello, kernel", "this is not a kernel image: its first word is 0x6c6c6568, which is not an instruction"),
    (b"# Notes\nThe first word is a store.\n", "this is not a kernel image: it is text, which begins with b'# Notes"),
    (b"MZ" + bytes(64), "it is made for EFI, with compressed instructions"),
    (b"\xfd7zXZ\0", "this is a xz file: unpack it first"),
    (gzip.compress(FIRST, mtime=0)[:-9], "the gzip file is cut off"),
    (b"\x1f\x8bnothing", "the gzip file is damaged"),
    (gzip.compress(bytes(1 << 20), mtime=0), "unpacked, the image has more than the 16 KiB of the memory"),
    (header(offset=1 << 22), "as kernels for supervisor mode do: build it for machine mode"),
    (header(size=13000), r"the image needs the memory from 0x80000000 to 0x800032c8.*use a larger memory \(--memory 32K\)"),
    (FIRST * 5000, "use a larger memory"),
    (b"\x7fELF", "the ELF file is cut off"),
])
def test_what_is_not_an_image(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        load_image(image(tmp_path, data), memory="16K")


def test_a_program_is_not_a_kernel(tmp_path: Path) -> None:
    data = elf.write(punchcard.assemble("nop\nstart: j start\n", "riscv"))
    message = "it begins at 0x0, and the memory at 0x80000000; a program is for `punchcard run"
    with pytest.raises(ProgramError, match=message):
        load_image(image(tmp_path, data), memory="16K")


def test_an_image_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="no such file"):
        load_image(tmp_path / "nothing")
    with pytest.raises(ProgramError, match="is a folder, not a kernel image"):
        load_image(tmp_path)


@pytest.mark.parametrize(("memory", "near"), [
    ("17M", "32M"), ("8K", "16K"), (1 << 27, "64M"), (3 << 20, "4M"), ("1G", "64M"),
])
def test_sizes_of_the_memory(memory: Any, near: str) -> None:
    assert memory_bytes("16M") == memory_bytes(1 << 24) == 1 << 24
    with pytest.raises(SizeError, match=f"it must be a power of two, 16K to 64M bytes, such as {near}$"):
        memory_bytes(memory)
    with pytest.raises(SizeError, match="write a number of bytes"):
        memory_bytes("much")


def test_a_command_line_has_a_limit(tmp_path: Path) -> None:
    for text in ("x" * 3000, "a\0b"):
        with pytest.raises(PunchcardError, match="it has at most 2048 bytes, none of them zero"):
            load_image(image(tmp_path, header()), command_line=text)


# Typing


def test_a_line_is_typed_when_the_machine_waits() -> None:
    lines = Script(b"ab\nc\n")
    assert lines() == NOT_YET
    lines.now = PATIENCE
    lines.waited(PATIENCE - 1)
    assert lines() == NOT_YET, "it has not waited for long enough"
    lines.waited(1)
    assert [lines() for _ in range(4)] == [*b"ab\n", NOT_YET], "a line at once, and then no more"
    lines.now += (script.SHARE + 1) * PATIENCE
    lines.waited(PATIENCE)
    assert lines() == NOT_YET, "it was busy"
    lines.now += PATIENCE
    lines.waited(PATIENCE)
    lines.moved()
    assert lines() == NOT_YET, "it has written something"
    lines.now += script.SHARE * PATIENCE
    lines.waited(PATIENCE)
    assert [lines(), lines()] == [*b"c\n"]
    lines.now += PATIENCE
    lines.waited(PATIENCE)
    assert lines() == END_OF_INPUT


def test_who_asks_all_the_time_waits_too() -> None:
    lines, found = Script(b"x"), NOT_YET
    while found == NOT_YET and lines.now < 2 * PATIENCE:
        lines.now += 100
        found = lines()
    assert (found, lines.now) == (ord("x"), PATIENCE // script.URGENCY)


def test_a_script_goes_on_from_what_was_kept() -> None:
    lines = Script(b"ab\n")
    lines.now = PATIENCE
    lines.waited(PATIENCE)
    assert lines() == ord("a")
    rest = typed(b"b\n")
    rest.keep(lines.saved_state)
    rest.now = PATIENCE
    assert [rest(), rest()] == [*b"b\n"], "in the middle of a line"
    assert typed(rest) is rest
    with pytest.raises(PunchcardError, match="a script was saved as"):
        rest.keep((1, 2))
