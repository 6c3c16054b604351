"""Intel hex: records of bytes with an address, one a line.

    :10000000B3000000...CC      count, address, type, so many bytes, and a byte that makes the sum 0
    types: 00 data, 01 the end, 02 and 04 the upper part of addresses, 03 and 05 where execution begins
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from punchcard.errors import ProgramError, shortened
from punchcard.machines.riscv.program import RiscvProgram, Segment, base_for, segments_of
from punchcard.machines.source import Token, numbered_lines

FORM = "a record is ':', then pairs of hexadecimal digits: count, address, type, data, sum"
LINE_BYTES = 16
DATA, END, SEGMENT, SEGMENT_START, UPPER, START = range(6)
OPERANDS = {END: 0, SEGMENT: 2, SEGMENT_START: 4, UPPER: 2, START: 4}


def assemble(text: str, source: str = "", *, base: int | None = None) -> RiscvProgram:
    """The program in a text."""
    pieces: list[tuple[int, bytes, Token]] = []
    upper, entry, ended = 0, None, False
    for number, content in numbered_lines(text):
        token = Token("record", content.strip(), number, len(content) - len(content.lstrip()) + 1, source)
        if not token.text:
            continue
        if ended:
            raise token.error(f"{shortened(token.text)} is after the record that ends the file (:00000001FF)")
        address, kind, data = _record(token)
        value = int.from_bytes(data, "big")
        if kind == DATA and data:
            pieces.append(((upper + address) & 0xFFFFFFFF, data, token))
        elif kind in (SEGMENT, UPPER):
            upper = value << (4 if kind == SEGMENT else 16)
        elif kind in (SEGMENT_START, START):
            entry = value if kind == START else (value >> 16 << 4) + (value & 0xFFFF)
        ended = kind == END
    if not ended:
        raise ProgramError(f"{source or 'the text'}: the file has no record that ends it (:00000001FF): it may be cut off")
    segments = _joined(pieces)
    if not segments:
        raise ProgramError(f"{source or 'the text'}: the file has no data: it needs at least one instruction")
    first = segments[0].address if entry is None else entry
    return RiscvProgram(segments, first, base_for(segments) if base is None else base, source=source)


def _record(token: Token) -> tuple[int, int, bytes]:
    """Address, type and data of a record."""
    digits = token.text[1:]
    if not token.text.startswith(":") or len(digits) % 2 or not digits.isascii() or not digits.isalnum():
        raise token.error(f"{shortened(token.text)} is not a record: {FORM}")
    try:
        found = bytes.fromhex(digits)
    except ValueError:
        raise token.error(f"{shortened(token.text)} is not a record: {FORM}") from None
    if len(found) < 5 or len(found) != found[0] + 5:
        raise token.error(f"the record {shortened(token.text)} has {len(found)} bytes, and its count says "
                          f"{found[0] + 5 if found else 'nothing'}: it may be cut off")
    if sum(found) % 256:
        right = -sum(found[:-1]) % 256
        raise token.error(f"the sum of {shortened(token.text)} is {found[-1]:02X} and should be {right:02X}: the file is "
                          "damaged")
    kind = found[3]
    if kind > START:
        raise token.error(f"a record of type {kind:02X}: there are 00 to 05")
    if kind in OPERANDS and found[0] != OPERANDS[kind]:
        raise token.error(f"a record of type {kind:02X} with {found[0]} bytes: it has {OPERANDS[kind]}")
    return int.from_bytes(found[1:3], "big"), kind, found[4:-1]


def _joined(pieces: list[tuple[int, bytes, Token]]) -> tuple[Segment, ...]:
    """Segments from records, which may come in any order."""
    pieces.sort(key=lambda piece: piece[0])
    for (address, data, _), (other, _, token) in pairwise(pieces):
        if address + len(data) > other:
            raise token.error(f"the bytes at {other:#x} are given twice")
    return tuple(segments_of((address, len(data), data) for address, data, _ in pieces))


def write(program: RiscvProgram) -> str:
    """A program as records; `assemble` gives the same bytes and entry."""
    return "".join(f":{record.hex().upper()}\n" for record in _records(program))


def _records(program: RiscvProgram) -> Iterator[bytes]:
    upper = 0
    for address, data in _pieces(program):
        yield from _data_records(address, data, upper)
        upper = address + len(data) - 1 >> 16
    yield _summed(0, START, program.entry.to_bytes(4, "big"))
    yield _summed(0, END, b"")


def _pieces(program: RiscvProgram) -> Iterator[tuple[int, bytes]]:
    """Lines of data; of the zeros after them the last, so that their place is not taken for free."""
    for segment in program.segments:
        for place in range(0, len(segment.data), LINE_BYTES):
            yield segment.address + place, segment.data[place : place + LINE_BYTES]
        if segment.size > len(segment.data):
            yield segment.end - 1, b"\0"


def _data_records(address: int, data: bytes, upper: int) -> Iterator[bytes]:
    """A record, or two where the upper part of the address changes inside; each change has a record of its own."""
    room = 0x10000 - (address & 0xFFFF)
    for part in (data[:room], data[room:]):
        if part:
            if address >> 16 != upper:
                upper = address >> 16
                yield _summed(0, UPPER, upper.to_bytes(2, "big"))
            yield _summed(address & 0xFFFF, DATA, part)
        address += len(part)


def _summed(address: int, kind: int, data: bytes) -> bytes:
    record = bytes([len(data)]) + address.to_bytes(2, "big") + bytes([kind]) + data
    return record + bytes([-sum(record) % 256])
