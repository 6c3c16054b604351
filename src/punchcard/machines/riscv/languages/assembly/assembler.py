"""Assembly text to a program: labels, directives, and two passes. The words are those of the GNU assembler.

    .text                       # sections: .text, .rodata, .data, .bss, in this order in the memory
    .globl _start
    _start:                     # where execution begins; without it, the first instruction
        la   a0, message
    1:  lbu  a1, 0(a0)          # 1f and 1b are the next and the last label 1
        addi a0, a0, 1
        bnez a1, 1b
    .data
    message: .asciz "hello"

The first pass reads lines and counts bytes. The second knows all addresses and writes words.
`.base ADDRESS` and `.entry NAME` are of this assembler: the first address of the memory, and where execution begins.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, partial

from punchcard.errors import ProgramError, SourceError, shortened
from punchcard.machines.riscv.isa import WORD_BYTES
from punchcard.machines.riscv.languages.assembly import expressions
from punchcard.machines.riscv.languages.assembly.directives import Directives, Section, place
from punchcard.machines.riscv.languages.assembly.expressions import PATTERN, Expression, Value, evaluate
from punchcard.machines.riscv.languages.assembly.instructions import Code, Reader, encoded, is_known
from punchcard.machines.riscv.program import END_OF_ADDRESSES, RiscvProgram, Segment, SourceLine, segments_of
from punchcard.machines.source import Line, Token, lines, unknown

ENTRY = "_start"
MAX_DEPTH = 100
"""Of names that are set by names that are set later."""
_LABELS = re.compile(r"\s*(?:[A-Za-z0-9_.$]+:\s*)*")
_REMARK = re.compile(r"""
    "(?:\\.|[^"\\\n])*"? | '(?:\\.|[^\\\n])'? | (?P<block>/\*[\s\S]*?(?:\*/|\Z)) | (?P<rest>(?:\#|//|;)[^\n]*)
""", re.VERBOSE)


def assemble(text: str, source: str = "", *, base: int = 0) -> RiscvProgram:
    """The program in a text."""
    return _Assembly(source, base).program(text)


class _Assembly:
    """One text on its way.

    labels     as offsets in sections; those of digits, which may be defined many times, with their `counts`
    settings   names that are set, as expressions; and their `values`, where they are known already
    """

    def __init__(self, source: str, base: int) -> None:
        self.source, self.base = source, base
        self.labels: dict[str, Value] = {}
        self.settings: dict[str, Expression] = {}
        self.values: dict[str, Value] = {}
        self.counts: Counter[str] = Counter()
        self.sections: dict[str, Section] = {}
        self.section: Section | None = None
        self.entry: Token | None = None
        self._lines: dict[tuple[str, int], SourceLine] = {}
        self._uppers: dict[tuple[str, int], Code] = {}  # instructions with %pcrel_hi, by section and offset
        self._setting: list[str] = []
        self._reader = Reader(self.parse, self.known)
        self._directives = Directives(self)
        self.enter(".text", "text")

    def program(self, text: str) -> RiscvProgram:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        plain, rests = without_remarks(text, self.source)
        self._written = text.split("\n")
        for line in lines(plain, self.source, PATTERN):
            self._statement(line)
        self._check_rests(rests)
        end = place(list(self.sections.values()), self.base)
        if end > END_OF_ADDRESSES:
            raise ProgramError(f"{self.source or 'the text'}: the program ends at {end:#x}, beyond the last address: it has "
                               "too many bytes")
        segments = tuple(segments_of(self._pieces()))
        addresses = {name: self._final(value) for name, value in self.labels.items() if " " not in name}
        symbols = {name: address for name, address in addresses.items() if not name.startswith(".L")}
        source_lines = {self.sections[name].address + offset: line for (name, offset), line in self._lines.items()}
        return RiscvProgram(segments, self._entry(addresses, segments), self.base, symbols, source_lines, self.source)

    def _entry(self, addresses: dict[str, int], segments: tuple[Segment, ...]) -> int:
        if self.entry is not None:
            return self.address_of(self.entry, self.entry.text)
        if ENTRY in addresses:
            return addresses[ENTRY]
        code = [section.address for section in self.sections.values() if section.group == "text" and section.length]
        return min(code, default=segments[0].address if segments else 0)

    # The first pass

    def enter(self, name: str, group: str | None) -> None:
        """Continue in a section; without a group its content is dropped."""
        self.section = None if group is None else self.sections.setdefault(name, Section(name, group))

    def _statement(self, line: Line) -> None:
        while self._label(line):
            pass
        token = line.ahead
        if token.kind == "end":
            return
        if token.kind == "name" and line.second_is("="):
            line.take()
            line.take()
            self.set_name(token, self.parse(line))
            line.finish("the value")
        elif token.kind == "name" and token.text.startswith("."):
            self._directives.read(line)
        elif self.section is not None:
            self._instruction(line)

    def _label(self, line: Line) -> bool:
        token = line.ahead
        if token.kind not in ("name", "number") or not line.second_is(":"):
            return False
        line.take()
        line.take()
        if token.kind == "number":
            if not token.text.isdecimal() or len(token.text) > 9:
                raise token.error(f"{shortened(token.text)} is not a label: it must be a name, or digits")
            digits = token.text.lstrip("0") or "0"
            self.counts[digits] += 1
            self.define(token, f"{digits} {self.counts[digits]}")
        else:
            self.define(token, token.text)
        return True

    def define(self, token: Token, name: str) -> None:
        if self.section is None:
            return
        if name in self.labels or name in self.settings:
            raise token.error(f"the label {token.text!r} is defined twice")
        self.labels[name] = self.here

    def parse(self, line: Line) -> Expression:
        """The current expression."""
        return expressions.parse(line, self._local)

    def _local(self, token: Token) -> str:
        """The name of 1f or 1b: labels of digits may be defined many times."""
        digits = token.text[:-1].lstrip("0") or "0"
        count = self.counts[digits] + (token.text[-1] == "f")
        if not count:
            raise token.error(f"no label {digits!r} is above: {digits}f is the next one")
        return f"{digits} {count}"

    def _known_so_far(self, token: Token, name: str) -> Value:
        """The value of a name while the text is read."""
        return self.values[name] if name in self.values else self.labels[name]

    @property
    def here(self) -> Value:
        return Value(0) if self.section is None else Value(self.section.length, self.section.name)

    def _instruction(self, line: Line) -> None:
        section, token = self.section, line.ahead
        assert section is not None
        if section.length % WORD_BYTES:
            raise token.error(f"the instruction would be at an address that is not a multiple of {WORD_BYTES}: write "
                              ".align 2 before it")
        for code in self._reader.read(line):
            written = SourceLine(self.source, token.line, self._written[token.line - 1].strip())
            self._lines[section.name, section.length] = written
            bound = replace(code, expression=self.bound(code.expression))
            if code.part == "pcrel_hi":
                self._uppers[section.name, section.length] = bound
            section.add(partial(self._encoded, bound), WORD_BYTES)

    def set_name(self, token: Token, expression: Expression) -> None:
        """A name for a number; it may be set again, and what is above has meant what it was then."""
        if token.text in self.labels or token.text == ".":
            raise token.error(f"{token.text!r} is a label: another name must be set")
        value = self._value(expression)
        if value is not None:
            self.values[token.text] = value
        elif token.text in self.settings:
            raise token.error(f"{token.text!r} is set twice, and its value is not known here")
        self.settings[token.text] = self.bound(expression)

    def bound(self, expression: Expression) -> Expression:
        """An expression in which names of numbers, which may be set again, are what they are now."""
        def now(term: expressions.Term) -> expressions.Term:
            value = self.values.get(term.text) if term.kind == "name" else None
            return term if value is None or value.section is not None else term._replace(kind="number", number=value.number)

        return tuple(map(now, expression))

    def known(self, expression: Expression) -> int | None:
        """The number of an expression, where it is known already."""
        value = self._value(expression)
        return value.number if value is not None and value.section is None else None

    def offset(self, expression: Expression) -> int | None:
        """The same, or an offset in the current section."""
        value = self._value(expression)
        return value.number if value is not None and value.section in (None, self.here.section) else None

    def _value(self, expression: Expression) -> Value | None:
        try:
            return evaluate(expression, self._known_so_far, self.here)
        except (KeyError, SourceError):
            return None  # a name that comes later, or a product of addresses: the second pass knows them

    # The second pass

    def _final(self, value: Value) -> int:
        return value.number if value.section is None else self.sections[value.section].address + value.number

    def address_of(self, token: Token, name: str) -> int:
        """The value of a name once all addresses are known."""
        if name in self.labels:
            return self._final(self.labels[name])
        if name in self.values:
            return self._final(self.values[name])
        if name not in self.settings:
            if " " in name:
                raise token.error(f"no label {token.text[:-1]!r} is below: {token.text} is the next one")
            known = (each for each in (*self.labels, *self.settings) if " " not in each)
            raise unknown("name", token, known, "it must be a label, or be set by .equ")
        if name in self._setting:
            raise token.error(f"{name!r} is defined by itself")
        if len(self._setting) == MAX_DEPTH:
            raise token.error(f"{name!r} is set by names below it, more than {MAX_DEPTH} deep")
        self._setting.append(name)
        try:
            return self.number(self.settings[name], 0)
        finally:
            self._setting.pop()

    def number(self, expression: Expression, address: int) -> int:
        """The number of an expression at an address."""
        lookup = lambda token, name: Value(self.address_of(token, name))  # noqa: E731
        return evaluate(expression, lookup, Value(address)).number

    def _pieces(self) -> Iterator[tuple[int, int, bytes | None]]:
        for section in sorted((s for s in self.sections.values() if s.length), key=lambda each: each.address):
            for item in section.items:
                address = section.address + item.offset
                yield address, item.size, item.content(address) if callable(item.content) else item.content

    def datum(self, token: Token, expression: Expression, size: int, address: int) -> bytes:
        """A number of so many bytes at an address."""
        number, bits = self.number(expression, address), 8 * size
        if not -(1 << bits - 1) <= number < 1 << bits:
            raise token.error(f"{number} does not fit {size} bytes: the range is {-(1 << bits - 1)} to {(1 << bits) - 1}")
        return (number & (1 << bits) - 1).to_bytes(size, "little")

    def _encoded(self, code: Code, address: int) -> bytes:
        return encoded(code, self._operand(code, address), address).to_bytes(WORD_BYTES, "little")

    def _operand(self, code: Code, address: int) -> int:
        """The number of an instruction's expression; of a lower part, the distance from the upper part."""
        if code.part == "pair_lo":
            return self.number(code.expression, address - WORD_BYTES) - (address - WORD_BYTES)
        if code.part != "pcrel_lo":
            return self.number(code.expression, address) if code.expression else 0
        at = self.number(code.expression, address)
        upper = self._uppers_by_address.get(at)
        if upper is None:
            raise code.expression[0].token.error("%pcrel_lo must name the label of an instruction with %pcrel_hi")
        return self.number(upper.expression, at) - at

    @cached_property
    def _uppers_by_address(self) -> dict[int, Code]:
        return {self.sections[name].address + offset: code for (name, offset), code in self._uppers.items()}

    # Remarks after a semicolon

    def _check_rests(self, rests: list[Token]) -> None:
        """Refuse what other assemblers would execute: an instruction after a semicolon, which begins a remark."""
        for rest in rests:
            text = _LABELS.sub("", rest.text, count=1)
            word = text.split(maxsplit=1)[0].lower() if text.strip() else ""
            if self._directives.knows(word) or (is_known(word) and self._is_instruction(text)):
                raise rest.error(f"';' begins a remark, but {shortened(rest.text.strip())} looks like code: give it a line "
                                 "of its own, or begin the remark with '#'")

    def _is_instruction(self, text: str) -> bool:
        try:
            return any(self._reader.read(line) for line in lines(text, self.source, PATTERN))
        except SourceError:
            return False


def without_remarks(text: str, source: str) -> tuple[str, list[Token]]:
    """The text with blanks for remarks, so that places stay; and what is after semicolons."""
    rests: list[Token] = []
    starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        if match["block"] is None and match["rest"] is None:
            return found
        if found.startswith(";") or (match["block"] is not None and not found.endswith("*/")):
            line = bisect_right(starts, match.start())
            column = match.start() - starts[line - 1] + 1
            if not found.startswith(";"):
                raise Token("", "/*", line, column, source).error("this remark is not closed: write '*/'")
            rests.append(Token("", found[1:].partition("#")[0].partition(";")[0], line, column, source))
        return re.sub(r"[^\n]", " ", found)

    return _REMARK.sub(blank, text), rests
