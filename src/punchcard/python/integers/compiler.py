"""A function and all that it calls, as the `.asq` text of one program."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from punchcard.errors import ProgramError, SourceError
from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.languages.asq import assembler
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.python.integers.analysis import Analysis
from punchcard.python.integers.forms import cell
from punchcard.python.integers.functions import Function, Functions
from punchcard.python.integers.generator import GENERAL, characters
from punchcard.python.integers.runtime import GO, routine
from punchcard.python.integers.statements import Statements
from punchcard.python.integers.values import Value
from punchcard.python.outside import Snapshot, snapshot
from punchcard.python.source import FunctionSource

DEFAULT_WORD_BITS = 32
LEAST_WORD_BITS = 12
MOST_WORD_BITS = 47
DEFAULT_MEMORY = 1 << 16
STACK_SHARE = 4
"""The stack has one part of the memory in so many."""


@dataclass(frozen=True)
class CompiledIntegers:
    """A program, its text, what it returns and where, and the errors that it may stop with, by the label of their text."""

    listing: str
    program: Image
    result: Value | None
    places: tuple[str, ...]
    errors: Mapping[str, str]
    word_bits: int
    memory: int
    parameters: Mapping[str, tuple[str, Value]]
    """The cell and the kind of each parameter."""
    outside: tuple[tuple[FunctionSource, Snapshot], ...] = ()
    """The functions of the program, and what their names outside meant."""

    @property
    def is_current(self) -> bool:
        """Whether these names still mean the same."""
        return all(snapshot(source) == before for source, before in self.outside)

    def machine(self) -> VonNeumannMachine:
        return machine_of(self.word_bits, self.memory)

    def given(self, arguments: Mapping[str, int], name: str) -> CompiledIntegers:
        """The same program with other numbers for its parameters; its text keeps the first ones."""
        words = {}
        for parameter, value in arguments.items():
            cell_name, kind = self.parameters[parameter]
            check_number(f"{name}(): {parameter}", value, kind, self.word_bits)
            words[cell_name] = int(value)
        return replace(self, program=self.program.with_values(words))


def sizes(word_bits: int | None, memory: int | None) -> tuple[int, int]:
    """Bits of a word and cells of the memory of a compiled program."""
    bits = DEFAULT_WORD_BITS if word_bits is None else word_bits
    if not LEAST_WORD_BITS <= bits <= MOST_WORD_BITS:
        raise ProgramError(f"word_bits={bits}: words of a Python program have {LEAST_WORD_BITS} to {MOST_WORD_BITS} bits")
    most = 1 << (bits - 1)  # addresses are compared as signed numbers; and -2 is left, which the machine reports
    return bits, min(DEFAULT_MEMORY if memory is None else memory, most - 1)


@lru_cache(maxsize=8)
def machine_of(word_bits: int, memory: int) -> VonNeumannMachine:
    """Machines are used again: they depend on sizes alone."""
    return VonNeumannMachine(word_bits=word_bits, memory=memory)


def compile_function(
    source: FunctionSource, arguments: Mapping[str, Any], *, word_bits: int | None = None, memory: int | None = None,
    check: bool = False, show: bool = False,
) -> CompiledIntegers:
    """The program of a function. A missing argument is 0, or empty; `show` writes what the function returns."""
    bits, cells = sizes(word_bits, memory)
    functions = Functions()
    entry = functions.add(source)
    try:
        analysis = Analysis(functions, bits, check=check)
        analysis.run(entry)
        return _Program(analysis, entry, bits, cells).made(arguments, show=show)
    except RecursionError:
        raise ProgramError(f"{source.file}: {source.name}() is nested too deeply to be compiled") from None


class _Program:
    """The parts of a program's text."""

    def __init__(self, analysis: Analysis, entry: Function, bits: int, memory: int) -> None:
        self.code, self.entry, self.bits, self.memory = Statements(analysis, bits), entry, bits, memory
        self.functions = [function for function in analysis.functions if _is_called(function, entry)]

    def made(self, arguments: Mapping[str, Any], *, show: bool) -> CompiledIntegers:
        code, entry = self.code, self.entry
        data = self._parameters(arguments)
        inline = not any(entry in function.calls for function in self.functions)
        code.function, code.prefix = entry, entry.name
        if inline:
            code.body(entry, inline=True)
        else:
            code.call(entry.name)
        places = self._places()
        if show and entry.result is not None:
            self._show(places)
        code.put("@halt", leaves="-")
        for function in self.functions:
            if function is not entry or not inline:
                code.comment("")
                code.comment(f"{function.name}({', '.join(function.parameters)})")
                code.body(function, inline=False)
        return self._assembled(data, places)

    def _places(self) -> tuple[str, ...]:
        result = self.entry.result
        if result is None or result.kind == "none":
            return ()
        count = len(result.results) if result.kind == "results" else 1
        return tuple(self.code.result_cell(self.entry, at) for at in range(count))

    def _show(self, places: tuple[str, ...]) -> None:
        result = self.entry.result
        assert result is not None
        several = result.kind == "results"
        values = result.results if several else (result,) if places else ()
        if several:
            self.code.write_bytes(b"(")
        for at, (place, value) in enumerate(zip(places, values, strict=True)):
            if at:
                self.code.write_bytes(b", ")
            if value.kind in ("number", "mixed"):
                self.code.fail(self.entry.node, f"{self.entry.source.name}() returns an int or a bool: it cannot be written",
                               "write int(...) or bool(...)")
            self.code.write_value(value, cell(place))
        if places:
            self.code.write_bytes(b")\n" if several else b"\n")

    def _parameters(self, arguments: Mapping[str, Any]) -> list[str]:
        """The cells of the function's parameters, with what is given."""
        entry = self.entry
        lines = []
        seen: dict[int, str] = {}  # a list that is given twice is one list
        for name in entry.parameters:
            kind = entry.given[name]
            if name in arguments:
                value = arguments[name]
            elif name in entry.defaults:
                value = entry.default(name).value
            else:
                value = {"list": [], "str": ""}.get(kind.kind, 0)
            argument = self._argument(name, value, kind)
            if kind.kind == "list":
                argument = seen.setdefault(id(value), argument)
            lines.append(f". {self.code.cell_of(entry, name)}:{argument}")
        return lines

    def _argument(self, name: str, value: Any, kind: Value) -> str:
        code = self.code
        what = f"{self.entry.source.name}(): {name}={str(value)[:60]!r}" if isinstance(value, str) else (
            f"{self.entry.source.name}(): {name}={str(value)[:60]}")
        if kind.kind == "str":
            if not isinstance(value, str) or not value.isascii() or "\0" in value:
                raise ProgramError(f"{what}: it must be a text of ASCII characters")
            return code.text_object(value)
        if kind.kind == "list":
            if not isinstance(value, list | tuple) or not all(isinstance(item, int) for item in value):
                raise ProgramError(f"{what}: it must be a list of integers")
            item_kind = kind.items.root.item if kind.items is not None else None
            for item in value:
                check_number(what, item, item_kind or Value("int"), self.bits)
            return code.list_object(list(value))
        check_number(f"{self.entry.source.name}(): {name}", value, kind, self.bits)
        return f"({int(value)})"

    def _assembled(self, parameters: list[str], places: tuple[str, ...]) -> CompiledIntegers:
        code = self.code
        body = code.text()
        routines = self._routines()
        stack = self.memory // STACK_SHARE if "stack" in code.needed else 0
        frame = max([len(f.locals) + 8 for f in self.functions], default=8)
        known = {line.partition(":")[0][2:] for line in parameters}
        cells = [place for _, _, place in code.variables() if place not in known]
        parts = [f"# {self.entry.name}({', '.join(self.entry.parameters)}) of {self.entry.source.file}, for words of "
                 f"{self.bits} bits", "", body, *routines, "# variables", *parameters,
                 *(f". {place}:0" for place in cells), *self._errors(), "@pool", *code.data]
        if stack:
            parts.append(f". stack_top:-{self.memory - stack} depth:{stack // frame}")
        if "heap" in code.needed:
            parts.append(f". heap_limit:{self.memory - stack} heap_free:heap")
            parts.append("heap:")
        text = "\n".join(parts) + "\n"
        try:
            listed = assembler.listing(text, self.entry.source.file, word_bits=self.bits)
        except SourceError as error:
            if "does not fit a word" not in str(error):
                raise
            raise ProgramError(f"{self.entry.source.file}: words of {self.bits} bits cannot address this program: use "
                               "longer words (word_bits=, --bits)") from None
        if len(listed.words) > self.memory - stack:
            raise ProgramError(f"{self.entry.source.file}: the program has {len(listed.words)} words, and the memory has "
                               f"{self.memory - stack} for them: use a larger memory")
        entry = self.entry
        cells_of = {name: (code.cell_of(entry, name), entry.given[name]) for name in entry.parameters}
        outside = tuple((function.source, snapshot(function.source)) for function in code.analysis.functions)
        return CompiledIntegers(text, self._named(text, listed, cells), entry.result, places, dict(code.error_texts),
                                self.bits, self.memory, cells_of, outside)

    def _named(self, text: str, listed: assembler.LabelledWords, cells: list[str]) -> Image:
        """The image with the names that a reader of its source knows, and those of errors."""
        known = {*cells, *self.code.needed, *self.code.error_texts, "error", *(f.name for f in self.functions),
                 *(self.code.cell_of(self.entry, name) for name in self.entry.parameters)}
        labels = {name: place for name, place in listed.labels.items() if name in known and place < len(listed.words)}
        messages = {labels[label]: message for label, message in self.code.error_texts.items() if label in labels}
        return Image(listed.words, self.entry.source.file, labels, _lines(text, listed.lines), messages=messages)

    def _routines(self) -> list[str]:
        found: list[str] = [GO]
        ahead, seen = list(self.code.needed), set()
        while ahead:
            name = ahead.pop(0)
            if name in seen:
                continue
            seen.add(name)
            self.code.need(name)
            if name in GENERAL:
                self._general(name)
                ahead.append("failed")
            elif name != "heap":
                text, uses = routine(name, self.bits)
                found.append(text)
                ahead += uses
        return found

    def _general(self, name: str) -> None:
        self.code.error_texts[name + "_text"] = f"{self.entry.source.file}: {GENERAL[name]}"

    def _errors(self) -> list[str]:
        lines = []
        for label, message in self.code.error_texts.items():
            place = label.removesuffix("_text") if label.endswith("_text") else "error_" + label
            lines += [f"{place}: $error; =-{label} $error; @jump failed",
                      f". {label}:{characters(chr(10).encode() + message.encode() + b'%c' % 10)} 0"]
        return lines


def check_number(what: str, value: Any, kind: Value, bits: int) -> None:
    """Refuse what is not a number of the word size, or not a truth where one is wanted."""
    shown = f"{what}={str(value)[:60]!r}" if isinstance(value, str) else f"{what}={str(value)[:60]}"
    if not isinstance(value, int) or (kind.kind == "bool" and value not in (0, 1)):
        raise ProgramError(f"{shown}: it must be {'True or False' if kind.kind == 'bool' else 'an integer'}")
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if not low <= value <= high:
        raise ProgramError(f"{shown} does not fit a word of {bits} bits, {low} to {high}; use longer words (word_bits=, "
                           "--bits)")


def _is_called(function: Function, entry: Function) -> bool:
    return function is entry or function.result is not None or bool(function.given)


def _lines(text: str, written: Sequence[int]) -> list[int]:
    """The line of the source of each word, by way of the written text's lines; 0: none, as in a routine.

    A comment such as `# 3: while b:` stands above what became of a line; any other, or an empty line, begins something else.
    """
    found, line = [0], 0
    for each in map(str.strip, text.split("\n")):
        if not each or each.startswith("#"):
            place = re.match(r"# (\d+): ", each)
            line = int(place[1]) if place else 0
        found.append(line)
    return [found[number] for number in written]
