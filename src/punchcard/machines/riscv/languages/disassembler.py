"""A program as assembly text that gives the same bytes, entry, base and names.

    _start:
        addi a0, zero, 5                # 0x0000  00500513
        jal ra, double                  # 0x0004  008000ef

What is not an instruction is written as data. A jump's target gets a label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from punchcard.machines.riscv.isa import MASK, WORD_BYTES, decode
from punchcard.machines.riscv.languages.assembly.assembler import ENTRY
from punchcard.machines.riscv.languages.assembly.sections import segments_of
from punchcard.machines.riscv.program import RiscvProgram, Segment
from punchcard.machines.riscv.syntax import text_of

NAME = re.compile(r"[A-Za-z_.$][A-Za-z0-9_.$]{0,250}")
FEW_ZEROS = 16
"""From so many zero bytes on they are written as one."""
OPERATION_WIDTH = 36


def disassemble(program: RiscvProgram) -> str:
    """The text of a program."""
    return "".join(line + "\n" for line in _Listing(program).lines())


class _Listing:
    """One program on its way to text."""

    def __init__(self, program: RiscvProgram) -> None:
        self._program = program
        self._segments = list(segments_of(_pieces(program)))
        self._labels: dict[int, list[str]] = {}
        for name, address in program.symbols.items():
            if NAME.fullmatch(name) and name != "." and self._inside(address):
                self._labels.setdefault(address, []).append(name)
        taken = {name for names in self._labels.values() for name in names}
        for address in sorted({program.entry, *self._targets()}):
            if address not in self._labels:
                name = f"L{address:x}"
                self._labels[address] = [name if name not in taken else f"L{address:x}.{len(taken)}"]

    def _inside(self, address: int) -> bool:
        return any(segment.address <= address < segment.end for segment in self._segments)

    def _targets(self) -> Iterator[int]:
        """Where jumps and branches go, inside the program."""
        for segment in self._segments:
            first, last = -(-segment.address // WORD_BYTES) * WORD_BYTES, segment.address + len(segment.data)
            for address in range(first, min(last, segment.end - WORD_BYTES + 1), WORD_BYTES):
                found = decode(_word(segment, address))
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
        for segment in self._segments:
            if segment.address != place:
                yield f".org {segment.address - program.base:#x}"
            yield from self._segment(segment)
            place = segment.end

    def _segment(self, segment: Segment) -> Iterator[str]:
        stops = sorted({address for address in self._labels if segment.address <= address < segment.end} | {segment.end})
        address = segment.address
        for stop in stops:
            while address < stop:
                size, text = self._piece(segment, address, stop)
                word = "" if text.startswith((".zero", ".byte")) else f"  {_word(segment, address):08x}"
                yield f"    {text:<{OPERATION_WIDTH}}# {address:#06x}{word}"
                address += size
            yield from (f"{name}:" for name in self._labels.get(stop, ()) if stop < segment.end)

    def _piece(self, segment: Segment, address: int, stop: int) -> tuple[int, str]:
        """What stands at an address, up to a stop: its size, and its text."""
        zeros = self._zeros(segment, address, stop)
        if zeros >= min(FEW_ZEROS, segment.end - address):
            return zeros, f".zero {zeros}"
        if address % WORD_BYTES or stop - address < WORD_BYTES:
            return 1, f".byte {_word(segment, address) & 0xFF:#04x}"
        return WORD_BYTES, text_of(_word(segment, address), address, self._name)

    @staticmethod
    def _zeros(segment: Segment, address: int, stop: int) -> int:
        """How many zero bytes there are from an address on, up to a stop."""
        data = segment.data[address - segment.address : stop - segment.address]
        found = len(data) - len(data.lstrip(b"\0"))
        return stop - address if found == len(data) else found // WORD_BYTES * WORD_BYTES

    def _name(self, address: int) -> str:
        return self._labels[address][0] if address in self._labels else f"{address:#x}"


def _pieces(program: RiscvProgram) -> Iterator[tuple[int, int, bytes | None]]:
    """The segments as the assembler would have them: what touches is one."""
    for segment in program.segments:
        end = segment.address + len(segment.data)
        if segment.data:
            yield segment.address, len(segment.data), segment.data
        if end < segment.end:
            yield end, segment.end - end, None


def _word(segment: Segment, address: int) -> int:
    """The word at an address; after the data there are zeros."""
    place = address - segment.address
    return int.from_bytes(segment.data[place : place + WORD_BYTES], "little")
