"""Source lines from the debug information of an ELF file (DWARF)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from io import BytesIO
from typing import Any

from punchcard.machines.riscv.isa import WORD_BYTES
from punchcard.machines.riscv.program import SourceLine

MOST_LINES = 1 << 18
"""The most instructions whose lines are kept."""


def opened(data: bytes) -> Any:
    """The file as the library sees it."""
    from elftools.elf.elffile import ELFFile

    return ELFFile(BytesIO(data))


class DebugLines(Mapping[int, SourceLine]):
    """Source lines by address. They are read when somebody asks, since that may take longer than a short run."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @cached_property
    def _lines(self) -> dict[int, SourceLine]:
        try:
            return dict(_debug_lines(opened(self._data)))
        except Exception:  # debug information is a help; a program runs without it
            return {}

    def __getitem__(self, address: int) -> SourceLine:
        return self._lines[address]

    def __iter__(self) -> Iterator[int]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


def _debug_lines(elf: Any) -> Iterator[tuple[int, SourceLine]]:
    """Address and line of each instruction that the line tables know.

    What a linker has left out of a program still has lines, from address 0 on. So of stretches that begin there one may be
    true, and where there are several nobody knows which.
    """
    if not elf.has_dwarf_info():
        return
    found = list(_stretches(elf))
    at_zero = [lines for first, lines in found if first == 0]
    yield from at_zero[0] if len(at_zero) == 1 else ()
    for first, lines in found:
        if first:
            yield from lines


def _stretches(elf: Any) -> Iterator[tuple[int, list[tuple[int, SourceLine]]]]:
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


def _file_names(program: Any) -> dict[int, str]:
    """File names by their number, which counts from 0 in DWARF 5 and from 1 before."""
    first = 0 if program.header["version"] >= 5 else 1
    entries = enumerate(program.header["file_entry"], first)
    return {number: entry.name.decode("utf-8", "replace") for number, entry in entries}
