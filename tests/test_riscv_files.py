"""RISC-V programs in files: ELF, Intel hex and flat binaries, and what is refused, each with one line."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from punchcard.errors import ProgramError, SourceError
from punchcard.machines.registry import Registry
from punchcard.machines.riscv.isa import encode
from punchcard.machines.riscv.kind import RISCV
from punchcard.machines.riscv.languages import elf, flat, intel_hex
from punchcard.machines.riscv.program import RiscvProgram, Segment, base_for
from tests.riscv_cases import program_of

CODE = b"".join(word.to_bytes(4, "little") for word in (encode("addi", 10, 0, immediate=5), encode("ebreak")))
SECTION = struct.Struct("<10I")


def attributes(architecture: str) -> bytes:
    """The content of a section .riscv.attributes."""
    entry = b"\x05" + architecture.encode() + b"\0"
    inner = b"\x01" + struct.pack("<I", 5 + len(entry)) + entry
    return b"A" + struct.pack("<I", 4 + 6 + len(inner)) + b"riscv\0" + inner


def file(architecture: str = "", code: bytes = CODE, flags: int = 0, kind: int = 2, machine: int = 243, bits: int = 1,
         order: int = 1, address: int = 0x10000, loaded: int | None = None, memory: int | None = None) -> bytes:
    """An ELF file with one segment and, where an architecture is named, its attributes."""
    names = b"\0.riscv.attributes\0.shstrtab\0"
    parts = [code, attributes(architecture) if architecture else b"", names]
    places = [84 + sum(map(len, parts[:i])) for i in range(3)]
    sections = [bytes(40)]
    if architecture:
        sections.append(SECTION.pack(1, 0x70000003, 0, 0, places[1], len(parts[1]), 0, 0, 1, 0))
    sections.append(SECTION.pack(19, 3, 0, 0, places[2], len(names), 0, 0, 1, 0))
    body = b"".join(parts)
    ident = b"\x7fELF" + bytes([bits, order, 1]) + bytes(9)
    header = struct.pack(">16sHHI" if order == 2 else "<16sHHI", ident, kind, machine, 1) + struct.pack(
        "<IIIIHHHHHH", address, 52, 84 + len(body), flags, 52, 32, 1, 40, len(sections), len(sections) - 1)
    segment = struct.pack("<8I", 1, 84, address, address if loaded is None else loaded, len(code),
                          len(code) if memory is None else memory, 5, 4)
    return header + segment + body + b"".join(sections)


def test_an_executable() -> None:
    program = elf.load(file("rv32i2p1_m2p0_zmmul1p0", memory=100), "x.elf")
    assert program.segments == (Segment(0x10000, CODE, 100),)
    assert (program.entry, program.base, program.source, dict(program.lines)) == (0x10000, 0x10000, "x.elf", {})
    assert program.arguments == ("x.elf",)
    assert program.needed_words == (112 + 32) // 4


def test_an_elf_file_that_is_written_is_read_again() -> None:
    program = RiscvProgram((Segment(0x100, b"\x13\0\0\0" * 3), Segment(0x200, b"abc", 40), Segment(0x300, b"", 8)), 0x104,
                           symbols={"main": 0x104, "table": 0x200, "after": 0x308, "grüße": 0x201})
    again = elf.load(elf.write(program))
    assert again == program
    assert again.symbols == program.symbols
    assert intel_hex.assemble(intel_hex.write(program)).heap_start == program.heap_start


def test_a_flat_binary_begins_at_its_first_byte() -> None:
    program = RiscvProgram((Segment(4, b"\x13\0\0\0", 8),), 4, 4)
    assert flat.write(program) == b"\x13" + bytes(7)
    assert flat.load(flat.write(program), base=4).heap_start == program.heap_start
    with pytest.raises(ProgramError, match=r"begins at 0x4, and a flat binary at its first byte, 0x0: write an ELF file"):
        flat.write(RiscvProgram(program.segments, 4, 0))


def test_bytes_go_where_the_file_wants_them_loaded() -> None:
    """As a start-up file wants it that copies data from where it is loaded to where it is used."""
    program = elf.load(file(loaded=0x20000)[:24] + struct.pack("<I", 0x20000) + file(loaded=0x20000)[28:])
    assert program.segments == (Segment(0x10000, b"", 8), Segment(0x20000, CODE))


def test_where_the_memory_begins() -> None:
    assert elf.load(file(address=0x80010000)).base == 0x80000000
    assert elf.load(file(), base=0x10000).base == 0x10000
    assert base_for([Segment(0xFFFFF0, b"x")]) == 0xFFF000
    assert base_for([Segment(0xFFC, b"x"), Segment(0x10000, b"x")]) == 0, "the first page is used"
    assert base_for([Segment(0x8FFFFFF0, b"x" * 32), Segment(0x90000400, b"x")]) == 0x8FC00000


@pytest.mark.parametrize("architecture", ["rv32i2p1", "rv32i2p1_m2p0", "rv32im", "rv32i2p1_zicsr2p0_zifencei2p0", ""])
def test_architectures_that_run(architecture: str) -> None:
    assert elf.load(file(architecture)).entry == 0x10000


CSR = (0xC0001073).to_bytes(4, "little")
REFUSED: list[tuple[Callable[[], bytes], str]] = [
    (lambda: file(bits=2), "this is a 64-bit ELF file, and the machine has 32 bits: compile with -march=rv32im "
                           "-mabi=ilp32"),
    (lambda: file(order=2), "this is a big-endian ELF file, and the machine is little-endian: compile with -march=rv32im "
                            "-mabi=ilp32"),
    (lambda: file(machine=40), "this is an ELF file for ARM, not for RISC-V: compile with a RISC-V compiler"),
    (lambda: file(machine=0x9999), "this is an ELF file for machine 39321, not for RISC-V: compile with a RISC-V compiler"),
    (lambda: file(kind=1), "the ELF file is not an executable: it is a relocatable object: link it first"),
    (lambda: file(kind=3), "the ELF file is not an executable: it is position-independent or a shared library: link it with "
                           "-no-pie"),
    (lambda: file(flags=1), "the program has compressed instructions, which the machine does not have: compile with "
                            "-march=rv32im -mabi=ilp32"),
    (lambda: file(flags=4), "the program passes numbers in floating-point registers, which the machine does not have: "
                            "compile with -march=rv32im -mabi=ilp32"),
    (lambda: file(flags=8), "the program is for RV32E, with 16 registers: compile with -march=rv32im -mabi=ilp32"),
    (lambda: file("rv32i2p1_m2p0_c2p0"), "the program uses compressed instructions (c), which the machine does not have: "
                                         "compile with -march=rv32im -mabi=ilp32"),
    (lambda: file("rv32i2p1_m2p0_a2p1_f2p2_zba1p0"), "the program uses the extensions a, f, zba, which the machine does not "
                                                     "have: compile with -march=rv32im -mabi=ilp32"),
    (lambda: file("rv64i2p1"), "the program is for 'rv64i2p1', not for rv32: compile with -march=rv32im -mabi=ilp32"),
    (lambda: file("rv32i2p1_zicsr2p0", CODE + CSR), "the instruction at 0x10008 uses a control register (zicsr), which the "
                                                    "machine does not have: use a machine with traps (--privileged), or "
                                                    "compile with -march=rv32im -mabi=ilp32"),
    (lambda: file("rv32i2p1_a2p1"), "the program uses the extension a, which the machine does not have: use a machine with "
                                    "traps (--privileged), or compile with -march=rv32im -mabi=ilp32"),
    (lambda: file()[:40], "the ELF file is cut off: it has 40 bytes, and the header alone 52"),
    (lambda: file()[:88], "the ELF file is cut off: segment 0 ends at byte 92, the file at 88"),
    (lambda: file(memory=4), "segment 0 of the ELF file has 8 bytes in the file and 4 in the memory: the file is damaged"),
    (lambda: b"hello", "the file does not begin as an ELF file does (b'hell')"),
    (lambda: b"", "the file does not begin as an ELF file does (b'')"),
    (lambda: file(bits=3), "the ELF file has class 3 and byte order 1: both must be 1"),
    (lambda: file(code=b"", memory=0), "the ELF file has nothing to load"),
    (lambda: file(address=0xFFFFFFFC), "the segment at 0xfffffffc has 8 bytes: addresses are 0 to 0xffffffff"),
]


@pytest.mark.parametrize(("data", "message"), REFUSED, ids=[message[:45] for _, message in REFUSED])
def test_files_that_are_refused(data: Callable[[], bytes], message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        elf.load(data(), "x.elf")
    assert str(caught.value).removeprefix("x.elf: ") == message


def refusal(data: bytes) -> str:
    """Why a file is refused; nothing where it is read."""
    try:
        len(elf.load(data).lines)
    except ProgramError as error:
        return str(error)
    return ""


def test_every_file_that_is_cut_off_is_refused_or_whole() -> None:
    whole = file("rv32i2p1_m2p0")
    for length in range(len(whole)):
        message = refusal(whole[:length])
        assert "\n" not in message
        assert message or length >= 84 + len(CODE)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_files_are_refused_or_read(data: st.DataObject) -> None:
    damaged = bytearray(file("rv32i2p1_m2p0"))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(4, len(damaged) - 1))] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
    assert "\n" not in refusal(bytes(damaged))


def test_a_segment_beyond_the_memory() -> None:
    program = elf.load(file(), "x.elf", base=0)
    with pytest.raises(ProgramError) as caught:
        program.words(1 << 10)
    assert str(caught.value) == ("x.elf: the program needs 16386 words from 0x0 on (its segment at 0x10000 has 8 bytes, up "
                                 "to 0x10008, and 32 bytes of arguments), the memory has 1024: use a memory of 16386 "
                                 "or more")


# Flat binaries


def test_a_flat_binary() -> None:
    program = flat.load(CODE, "x.bin", base=0x400)
    assert (program.segments, program.entry, program.base) == ((Segment(0x400, CODE),), 0x400, 0x400)


# Intel hex


def record(address: int, kind: int, data: str) -> str:
    """A record with its sum."""
    content = bytes([len(data) // 2]) + address.to_bytes(2, "big") + bytes([kind]) + bytes.fromhex(data)
    return f":{content.hex()}{-sum(content) % 256:02x}\n"


def test_intel_hex_by_hand() -> None:
    end = ":00000001FF\n"
    program = intel_hex.assemble(":040104007300100074\n" + record(0x100, 0, "13055000") + record(0, 5, "00000104") + end)
    assert program.segments == (Segment(0x100, CODE),)
    assert (program.entry, program.base) == (0x104, 0)
    upper = intel_hex.assemble(record(0, 4, "8000") + record(4, 0, CODE.hex()) + end)
    assert (upper.entry, upper.base) == (0x80000004, 0x80000000)
    paragraphs = intel_hex.assemble(record(0, 2, "1000") + record(4, 0, CODE.hex()) + record(0, 3, "10000008") + end)
    assert (paragraphs.segments, paragraphs.entry) == ((Segment(0x10004, CODE),), 0x10008)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 0x20000), st.binary(min_size=1, max_size=60)), min_size=1, max_size=4),
       st.booleans())
def test_what_is_written_as_intel_hex_is_read_again(parts: list[tuple[int, bytes]], far: bool) -> None:
    segments, place = [], 0x80000000 if far else 0
    for gap, data in parts:
        segments.append(Segment(place + gap * 4, data))
        place = segments[-1].address + -(-len(data) // 4) * 4
    program = RiscvProgram(tuple(segments), segments[-1].address, base_for(segments))
    assert intel_hex.assemble(intel_hex.write(program)) == program


@pytest.mark.parametrize(("text", "line", "message"), [
    ("hello", 1, "'hello' is not a record: a record is ':', then pairs of hexadecimal digits: count, address, type, data, "
                 "sum"),
    (":0g000001FF", 1, "':0g000001FF' is not a record: a record is ':', then pairs of hexadecimal digits: count, address, "
                       "type, data, sum"),
    ("\n:00000001FE", 2, "the sum of ':00000001FE' is FE and should be FF: the file is damaged"),
    (":0400000013", 1, "the record ':0400000013' has 5 bytes, and its count says 9: it may be cut off"),
    (":00000006FA", 1, "a record of type 06: there are 00 to 05"),
    (":00000004FC", 1, "a record of type 04 with 0 bytes: it has 2"),
    (":00000001FF\n:00000001FF", 2, "':00000001FF' is after the record that ends the file (:00000001FF)"),
    (":0100000013EC\n:0100000013EC\n:00000001FF", 2, "the bytes at 0x0 are given twice"),
])
def test_intel_hex_that_is_refused(text: str, line: int, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        intel_hex.assemble(text, "x.hex")
    assert (caught.value.line, caught.value.message) == (line, message)


# Programs, and files by name


@pytest.mark.parametrize(("make", "message"), [
    (lambda: RiscvProgram((), 0), "the program is empty: it needs at least one instruction"),
    (lambda: RiscvProgram((Segment(0, CODE), Segment(4, CODE)), 0), "the segments at 0x0 (8 bytes) and at 0x4 overlap"),
    (lambda: RiscvProgram((Segment(0, CODE),), 2), "the entry 0x2: it must be a multiple of 4"),
    (lambda: RiscvProgram((Segment(0, CODE),), 8), "the entry 0x8 is in none of the program's segments"),
    (lambda: RiscvProgram((Segment(0, CODE),), 0, 4), "the segment at 0x0 is below the base 0x4: use a base of 0x0 or less"),
    (lambda: RiscvProgram((Segment(4, CODE),), 4, 2), "the base 0x2: it must be a multiple of 4, 0 to 0xffffffff"),
    (lambda: Segment(0, CODE, 4), "the segment at 0x0 has 8 bytes and the size 4: the size counts all bytes"),
    (lambda: program_of([1]).with_values({"x": 1}), "unknown symbol 'x'; the program has no names"),
    (lambda: flat.load(b"", "x.bin"), "x.bin: the file is empty: a flat binary has at least one instruction"),
    (lambda: flat.load(CODE, "x.bin", base=2), "x.bin: base=2: it must be a multiple of 4, 0 to 0xffffffff"),
    (lambda: flat.load(b"\x7fELF...", "x.bin"),
     "x.bin: this is an ELF file, not a flat binary: give it the extension .elf"),
    (lambda: flat.load(CODE, "x.bin", base=0xFFFFFFFC),
     "the segment at 0xfffffffc has 8 bytes: addresses are 0 to 0xffffffff"),
    (lambda: intel_hex.assemble(":0100000013EC", "x.hex"),
     "x.hex: the file has no record that ends it (:00000001FF): it may be cut off"),
    (lambda: intel_hex.assemble(":00000001FF", "x.hex"),
     "x.hex: the file has no data: it needs at least one instruction"),
])
def test_programs_that_are_wrong_as_a_whole(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        make()
    assert str(caught.value) == message


def test_values_by_name() -> None:
    symbols = {"room": 12, "text": 20, "end": 24, "a": 14}
    program = RiscvProgram((Segment(0, CODE, 16), Segment(20, b"abcd")), 0, symbols=symbols)
    changed = program.with_values({"room": -2, "text": 5})
    assert changed.words(6) == [*program.words(6)[:2], 0, 0xFFFFFFFE, 0, 5]
    for name, message in (("end", "symbol 'end' is at 0x18, where the program has no word"),
                          ("a", "symbol 'a' is at 0xe, where the program has no word")):
        with pytest.raises(ProgramError, match=message):
            program.with_values({name: 1})
    with pytest.raises(ProgramError, match="room=4294967296: a word is -2147483648 to 4294967295"):
        program.with_values({"room": 1 << 32})


def test_places_by_name() -> None:
    program = RiscvProgram((Segment(8, CODE),), 8, symbols={"main": 8, "start": 8, "far": 100})
    assert [program.name_of(address) for address in (4, 8, 12, 16, 100)] == ["0x4", "main", "main+4", "0x10", "0x64"]


def test_files_are_known_by_their_names_and_by_how_they_begin(tmp_path: Path) -> None:
    registry = Registry([RISCV])
    program = program_of([encode("addi", 10, 0, immediate=5), encode("ebreak")])
    contents = {"x.elf": elf.write(program), "program": elf.write(program), "x.bin": CODE,
                "x.hex": intel_hex.write(program).encode(), "x.S": b"li a0, 5\nebreak\n"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        assert registry.load(tmp_path / name).words(4) == program.words(4), name
    assert registry.load(tmp_path / "x.bin", base=0x100).entry == 0x100
    (tmp_path / "other").write_bytes(b"\x00\x01")
    with pytest.raises(ProgramError):
        registry.load(tmp_path / "other")
    assert {extension for language in RISCV.languages for extension in language.extensions} >= {".s", ".elf", ".hex", ".bin"}
