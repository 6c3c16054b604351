"""Sections, which say what is placed where, and directives: lines that begin with a dot.

Offsets are known while a text is read, addresses once it has been read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from punchcard.machines.riscv.isa import MASK, WORD_BYTES, encode
from punchcard.machines.riscv.languages.assembly.expressions import unescaped
from punchcard.machines.riscv.program import END_OF_ADDRESSES
from punchcard.machines.source import Line, Token, unknown

if TYPE_CHECKING:
    from punchcard.machines.riscv.languages.assembly.assembler import _Assembly

GROUPS = ("text", "rodata", "data", "bss")
"""The order of sections in the memory."""
PREFIXES = {".text": "text", ".init": "text", ".rodata": "rodata", ".srodata": "rodata", ".data": "data", ".sdata": "data",
            ".bss": "bss", ".sbss": "bss"}
DROPPED = (".debug", ".comment", ".note", ".riscv.attributes", ".llvm", ".eh_frame")
"""Sections that are not loaded."""


Content: TypeAlias = bytes | Callable[[int], bytes] | None
"""Bytes, or what gives them once their address is known, or None for zeros."""


@dataclass(frozen=True)
class Item:
    """What is at an offset."""

    offset: int
    size: int
    content: Content


@dataclass
class Section:
    """Items one after the other."""

    name: str
    group: str
    items: list[Item] = field(default_factory=list)
    length: int = 0
    alignment: int = WORD_BYTES
    address: int = 0

    def add(self, content: Content, size: int) -> None:
        if size:
            self.items.append(Item(self.length, size, content))
        self.length += size


def group_of(name: str, flags: str) -> str | None:
    """The group of a section by its name, or else by its flags; None where it is not loaded."""
    if name.startswith(DROPPED):
        return None
    for prefix, group in PREFIXES.items():
        if name == prefix or name.startswith(prefix + "."):
            return group
    return "text" if "x" in flags else "data" if "w" in flags or not flags else "rodata"


def place(sections: list[Section], base: int) -> int:
    """Give each section its address; the address after the last."""
    address = base
    for section in sorted(sections, key=lambda each: GROUPS.index(each.group)):
        address = -(-address // section.alignment) * section.alignment
        section.address = address
        address += section.length
    return address


SIZES: Mapping[str, int] = {
    ".byte": 1, ".half": 2, ".short": 2, ".hword": 2, ".2byte": 2, ".word": 4, ".long": 4, ".int": 4, ".4byte": 4,
    ".dword": 8, ".quad": 8, ".8byte": 8,
}
IGNORED = (".globl", ".global", ".weak", ".local", ".hidden", ".internal", ".protected", ".type", ".size", ".file", ".ident",
           ".option", ".attribute", ".loc", ".addrsig", ".addrsig_sym", ".variant_cc", ".end")
"""What a linker, a debugger or another assembler would use."""
MAX_FILLED = 1 << 24
"""The most bytes of a text that directives fill with something else than zeros."""
MAX_ALIGNMENT = 16
_SECTION = re.compile(r'"[^"]*"|[^\s,"]+')
NOP = encode("addi").to_bytes(WORD_BYTES, "little")


class Directives:
    """Carries out directives for an assembly."""

    def __init__(self, assembly: _Assembly) -> None:
        self._assembly, self._filled = assembly, 0
        self._known: dict[str, Callable[[Token, Line], None]] = {
            **dict.fromkeys(SIZES, self._data), ".ascii": self._text, ".asciz": self._text, ".string": self._text,
            ".space": self._space, ".zero": self._space, ".skip": self._space, ".fill": self._fill,
            ".align": self._align, ".p2align": self._align, ".balign": self._align, ".org": self._origin,
            ".equ": self._set, ".set": self._set, ".equiv": self._set, ".comm": self._common, ".lcomm": self._common,
            ".text": self._enter, ".data": self._enter, ".rodata": self._enter, ".bss": self._enter, ".sdata": self._enter,
            ".sbss": self._enter, ".section": self._section, ".base": self._base, ".entry": self._entry,
        }

    def read(self, line: Line) -> None:
        name = line.take()
        word = name.text.lower()
        if word in IGNORED or word.startswith(".cfi_"):
            return
        dropped = self._assembly.section is None
        if dropped and self._known.get(word) not in (self._enter, self._section, self._set):
            return
        if word not in self._known:
            raise unknown("directive", name, [*self._known, *IGNORED], "there are .word, .half, .byte, .asciz, .space, "
                          ".align, .equ, .text, .data, .section and others")
        self._known[word](name._replace(text=word), line)
        line.finish(f"the directive {name.text}")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._known)

    def knows(self, word: str) -> bool:
        return word in self._known

    # Parts of directives

    @property
    def _here(self) -> Section:
        assert self._assembly.section is not None
        return self._assembly.section

    def _number(self, line: Line, what: str, allowed: range) -> int:
        """A number that is known already."""
        token = line.ahead
        number = self._assembly.known(self._assembly.parse(line))
        if number is None:
            raise token.error(f"{what} must be known here: use numbers, and names that are set above")
        if number not in allowed:
            raise token.error(f"{what} is {number}: it must be {allowed[0]} to {allowed[-1]}")
        return number

    def _fill_with(self, token: Token, one: bytes, count: int) -> None:
        """So many times the same bytes. Zeros take no memory here, so there may be many."""
        size = len(one) * count
        if self._here.length + size > END_OF_ADDRESSES:
            raise token.error(f"{token.text} of {size} bytes ends beyond the last address, {MASK:#x}")
        if not any(one):
            self._here.add(None, size)
            return
        self._filled += size
        if self._filled > MAX_FILLED:
            raise token.error(f"{token.text} of {size} bytes: a text may fill {MAX_FILLED} with what is not 0")
        self._here.add(one * count, size)

    # Content

    def _data(self, name: Token, line: Line) -> None:
        size = SIZES[name.text]
        while True:
            token, expression = line.ahead, self._assembly.bound(self._assembly.parse(line))
            self._here.add(partial(self._assembly.datum, token, expression, size), size)
            if not line.take_if(","):
                return

    def _text(self, name: Token, line: Line) -> None:
        while True:
            token = line.ahead
            if token.kind != "string":
                raise line.wrong('a text in quotes must be here: "..."')
            line.take()
            data = unescaped(token.text[1:-1], token) + (b"" if name.text == ".ascii" else b"\0")
            self._here.add(data, len(data))
            if not line.take_if(","):
                return

    def _space(self, name: Token, line: Line) -> None:
        size = self._number(line, "the size", range(END_OF_ADDRESSES))
        value = self._number(line, "the byte", range(-128, 256)) if line.take_if(",") else 0
        self._fill_with(name, bytes([value & 0xFF]), size)

    def _fill(self, name: Token, line: Line) -> None:
        count = self._number(line, "the count", range(END_OF_ADDRESSES))
        size = self._number(line, "the size", range(9)) if line.take_if(",") else 1
        value = self._number(line, "the value", range(-(1 << 31), 1 << 32)) if line.take_if(",") else 0
        self._fill_with(name, (value & MASK).to_bytes(8, "little")[:size], count)

    def _align(self, name: Token, line: Line) -> None:
        if name.text == ".balign":
            step = self._number(line, "the alignment", range((1 << MAX_ALIGNMENT) + 1)) or 1
            if step & (step - 1):
                raise name.error(f".balign {step}: it must be a power of two")
        else:
            step = 1 << self._number(line, "the power of two", range(MAX_ALIGNMENT + 1))
        section = self._here
        size = -section.length % step
        fill: int | None = None
        if line.take_if(",") and not line.at(","):
            fill = self._number(line, "the byte", range(-128, 256))
        if line.take_if(",") and size > self._number(line, "the most bytes", range(1 << 32)):
            return
        section.alignment = max(section.alignment, step)
        if fill is None and section.group == "text" and section.length % WORD_BYTES == 0:
            self._fill_with(name, NOP, size // WORD_BYTES)
        else:
            self._fill_with(name, bytes([(fill or 0) & 0xFF]), size)

    def _origin(self, name: Token, line: Line) -> None:
        """Continue at an offset of the section."""
        token = line.ahead
        value = self._assembly.offset(self._assembly.parse(line))
        if value is None or not self._here.length <= value <= END_OF_ADDRESSES:
            raise token.error(f".org must be an offset from the start of the section, known here and not below "
                              f"{self._here.length:#x}, where the section is")
        fill = self._number(line, "the byte", range(-128, 256)) if line.take_if(",") else 0
        if fill:
            self._fill_with(name, bytes([fill & 0xFF]), value - self._here.length)
        else:
            self._here.length = value  # a gap, which no segment has

    # Names and sections

    def _set(self, name: Token, line: Line) -> None:
        token = line.take_name("what is set")
        line.take_mark(",", f"a ',' must follow the name: {name.text} {token.text}, 5")
        self._assembly.set_name(token, self._assembly.parse(line))

    def _common(self, name: Token, line: Line) -> None:
        """Zeros with a name, in .bss."""
        token = line.take_name("the name of the space")
        line.take_mark(",", "a ',' and the size must follow")
        size = self._number(line, "the size", range(END_OF_ADDRESSES))
        step = self._number(line, "the alignment", range(1, (1 << MAX_ALIGNMENT) + 1)) if line.take_if(",") else WORD_BYTES
        back = self._assembly.section
        self._assembly.enter(".bss", "bss")
        section = self._here
        section.alignment = max(section.alignment, step)
        section.add(None, -section.length % step)
        self._assembly.define(token, token.text)
        self._fill_with(name, b"\0", size)
        self._assembly.section = back

    def _enter(self, name: Token, line: Line) -> None:
        if line.ahead.kind == "number":
            line.take()  # a subsection
        self._assembly.enter(name.text, group_of(name.text, ""))

    def _section(self, name: Token, line: Line) -> None:
        section, flags = line.take_run(_SECTION).strip('"'), ""
        if not section:
            raise line.wrong("the name of a section must be here")
        while line.take_if(","):
            if line.at("@", "%"):
                line.take()
            flags += line.take().text.strip('"') if flags == "" else ""
            if line.ahead.kind in ("name", "number", "part"):
                line.take()
        loaded = not flags or "a" in flags or flags.startswith("@")
        self._assembly.enter(section, group_of(section, flags) if loaded else None)

    def _base(self, name: Token, line: Line) -> None:
        self._assembly.base = self._number(line, "the base", range(0, END_OF_ADDRESSES, WORD_BYTES))

    def _entry(self, name: Token, line: Line) -> None:
        self._assembly.entry = line.take_name("where execution begins")
