"""A function and all that it calls, as one program for the von Neumann machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from punchcard.errors import ProgramError, SourceError, shortened
from punchcard.machines.von_neumann.isa import MAX_MEMORY, MIN_MEMORY, Image
from punchcard.machines.von_neumann.languages.asq import assembler
from punchcard.machines.von_neumann.languages.asq import items as asq
from punchcard.machines.von_neumann.languages.asq.items import Expression, Item
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.python.front_end import Snapshot, snapshot
from punchcard.python.integers.analysis import analyse
from punchcard.python.integers.assembly import ERROR, Assembly, AssemblyEntry, cell, items_of, text_of
from punchcard.python.integers.findings import Findings
from punchcard.python.integers.functions import IntegerFunction, ProgramFunctions
from punchcard.python.integers.generator import CodeGenerator
from punchcard.python.integers.routines import GENERAL, Routine, find_routine
from punchcard.python.integers.storage import message_items
from punchcard.python.integers.values import AbstractValue
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
    result: AbstractValue | None
    places: tuple[str, ...]
    errors: Mapping[str, str]
    word_bits: int
    memory: int
    parameters: Mapping[str, tuple[str, AbstractValue]]
    """The cell and the kind of each parameter."""
    outside: tuple[tuple[FunctionSource, Snapshot], ...] = ()
    """The functions of the program, and what their names outside meant."""

    @property
    def is_current(self) -> bool:
        """Whether these names still mean the same."""
        return all(snapshot(source) == before for source, before in self.outside)

    def machine(self) -> VonNeumannMachine:
        return machine_of(self.word_bits, self.memory)

    def given(self, arguments: Mapping[str, object], name: str) -> CompiledIntegers:
        """The same program with other numbers for its parameters; its text keeps the first ones."""
        words = {}
        for parameter, value in arguments.items():
            cell_name, kind = self.parameters[parameter]
            words[cell_name] = check_number(f"{name}(): {parameter}", value, kind, self.word_bits)
        return replace(self, program=self.program.with_values(words))


def sizes(word_bits: int | None, memory: int | None) -> tuple[int, int]:
    """Bits of a word and cells of the memory of a compiled program."""
    bits = DEFAULT_WORD_BITS if word_bits is None else word_bits
    if not LEAST_WORD_BITS <= bits <= MOST_WORD_BITS:
        raise ProgramError(f"word_bits={bits}: words of a Python program have {LEAST_WORD_BITS} to {MOST_WORD_BITS} bits")
    most = min(MAX_MEMORY, (1 << (bits - 1)) - 1)  # addresses are compared as signed numbers; -2 is left for the machine
    if memory is not None and not MIN_MEMORY <= memory <= most:
        raise ProgramError(f"memory={memory}: with words of {bits} bits the memory of a Python program has {MIN_MEMORY} to "
                           f"{most} cells")
    return bits, min(DEFAULT_MEMORY, most) if memory is None else memory


@lru_cache(maxsize=8)
def machine_of(word_bits: int, memory: int) -> VonNeumannMachine:
    """Machines are used again: they depend on sizes alone."""
    return VonNeumannMachine(word_bits=word_bits, memory=memory)


def compile_function(
    source: FunctionSource, arguments: Mapping[str, object], *, word_bits: int | None = None, memory: int | None = None,
    check: bool = False, show: bool = False,
) -> CompiledIntegers:
    """The program of a function. A missing argument is 0, or empty; `show` writes what the function returns."""
    bits, cells = sizes(word_bits, memory)
    functions = ProgramFunctions()
    entry = functions.add(source)
    try:
        return _Program(analyse(functions, entry, bits, check=check), entry, bits, cells).made(arguments, show=show)
    except RecursionError:
        raise ProgramError(f"{source.file}: {source.name}() is nested too deeply to be compiled") from None


class _Program:
    """The parts of a program."""

    def __init__(self, findings: Findings, entry: IntegerFunction, bits: int, memory: int) -> None:
        self.code, self.entry, self.bits, self.memory = CodeGenerator(findings, bits), entry, bits, memory
        self.functions = [function for function in findings.functions
                          if function is entry or function.result is not None or function.given]

    def made(self, arguments: Mapping[str, object], *, show: bool) -> CompiledIntegers:
        code, entry = self.code, self.entry
        parameters = self._parameters(arguments)
        inline = not any(entry in function.calls for function in self.functions)
        code.frame.function, code.out.prefix = entry, entry.name
        if inline:
            code.statements.body(entry, inline=True)
        else:
            code.out.call(entry.name)
        places = self._places()
        if show and entry.result is not None:
            self._show(places, entry.result)
        code.out.macro("halt", leaves="-")
        for function in self.functions:
            if function is not entry or not inline:
                code.out.comment("")
                code.out.comment(f"{function.name}({', '.join(function.parameters)})")
                code.statements.body(function, inline=False)
        return self._assembled(parameters, places)

    def _places(self) -> tuple[str, ...]:
        result = self.entry.result
        if result is None or result.kind == "none":
            return ()
        count = len(result.results) if result.kind == "results" else 1
        return tuple(self.code.storage.result_label(self.entry, at) for at in range(count))

    def _show(self, places: tuple[str, ...], result: AbstractValue) -> None:
        printing = self.code.printing
        several = result.kind == "results"
        values = result.results if several else (result,) if places else ()
        if several:
            printing.write_bytes(b"(")
        for at, (place, value) in enumerate(zip(places, values, strict=True)):
            if at:
                printing.write_bytes(b", ")
            if value.kind in ("number", "mixed"):
                self.entry.source.fail(self.entry.node, f"{self.entry.source.name}() returns an int or a bool: it cannot be "
                                       "written", "write int(...) or bool(...)")
            printing.write_value(value, cell(asq.name(place)))
        if places:
            printing.write_bytes(b")\n" if several else b"\n")

    def _parameters(self, arguments: Mapping[str, object]) -> dict[str, Expression]:
        """The first values of the parameters' cells, by label."""
        entry = self.entry
        found: dict[str, Expression] = {}
        seen: dict[int, Expression] = {}  # a list that is passed twice is one list
        for parameter in entry.parameters:
            kind = entry.given[parameter]
            if parameter in arguments:
                value = arguments[parameter]
            elif parameter in entry.defaults:
                value = entry.default(parameter).value
            else:
                value = {"list": [], "str": ""}.get(kind.kind, 0)
            first = self._argument(parameter, value, kind)
            if kind.kind == "list":
                first = seen.setdefault(id(value), first)
            found[self.code.storage.label_of(entry, parameter)] = first
        return found

    def _argument(self, parameter: str, value: object, kind: AbstractValue) -> Expression:
        storage = self.code.storage
        what = f"{self.entry.source.name}(): {parameter}"
        shown = f"{what}={shortened(value, 60)}"
        if kind.kind == "str":
            if not isinstance(value, str) or not value.isascii() or "\0" in value:
                raise ProgramError(f"{shown}: it must be a text of ASCII characters")
            return asq.name(storage.text_object(value))
        if kind.kind == "list":
            if not isinstance(value, list | tuple) or not all(isinstance(item, int) for item in value):
                raise ProgramError(f"{shown}: it must be a list of integers")
            for item in value:
                check_number(shown, item, kind.list.item or AbstractValue("int"), self.bits)
            return asq.name(storage.list_object(list(value)))
        return asq.number(check_number(what, value, kind, self.bits))

    def _assembled(self, parameters: Mapping[str, Expression], places: tuple[str, ...]) -> CompiledIntegers:
        entry, storage = self.entry, self.code.storage
        body = self.code.out.finish()
        routines = self._routines()
        cells = [label for label in storage.cells.values() if label not in parameters]
        stack = self.memory // STACK_SHARE if "stack" in storage.needed else 0
        behind = self._behind({label: parameters.get(label, asq.number(0)) for label in (*parameters, *cells)}, stack)
        parsed = asq.AsqText(entry.source.file, [*items_of(body)])
        for routine in routines:
            parsed.items += routine.parsed.items
            parsed.macros.update(routine.parsed.macros)
        parsed.items += items_of(behind)
        try:
            placed = assembler.place(parsed, word_bits=self.bits)
        except SourceError as error:
            if "does not fit a word" not in str(error):
                raise
            raise ProgramError(f"{entry.source.file}: words of {self.bits} bits cannot address this program: use longer "
                               "words (word_bits=, --bits)") from None
        if len(placed.words) > self.memory - stack:
            raise ProgramError(f"{entry.source.file}: the program has {len(placed.words)} words, and the memory has "
                               f"{self.memory - stack} for them: use a larger memory")
        listing = "\n".join([
            f"# {entry.name}({', '.join(entry.parameters)}) of {entry.source.file}, for words of {self.bits} bits", "",
            text_of(body), *(routine.text for routine in routines), text_of(behind)])
        kinds = {parameter: (storage.label_of(entry, parameter), entry.given[parameter]) for parameter in entry.parameters}
        outside = tuple((function.source, snapshot(function.source)) for function in self.code.facts.functions)
        # the image has the names that a reader of its source knows, and those of errors
        known = {*cells, *parameters, *storage.needed, *storage.messages, "error", *(each.name for each in self.functions)}
        labels = {label: place for label, place in placed.labels.items() if label in known and place < len(placed.words)}
        messages = {labels[label]: message for label, message in storage.messages.items() if label in labels}
        image = Image(placed.words, entry.source.file, labels, placed.lines, messages=messages)
        return CompiledIntegers(listing, image, entry.result, places, dict(storage.messages), self.bits, self.memory, kinds,
                                outside)

    def _behind(self, variables: Mapping[str, Expression], stack: int) -> list[AssemblyEntry]:
        """What is behind the code: variables, errors, objects, the stack's cells, and the heap, which begins at the end."""
        storage, out = self.code.storage, Assembly(self.bits)
        out.comment("variables")
        for label, value in variables.items():
            out.data(_cell(label, value))
        for label, message in storage.messages.items():
            out.label(label.removesuffix("_text") if label.endswith("_text") else "error_" + label)
            out.clear(ERROR)
            out.sub(asq.constant(asq.name(label, -1)), ERROR)
            out.jump("failed")
            out.data(message_items(label, message))
        out.pool()
        for each in storage.data:
            out.data(each)
        if stack:
            frame = max([len(function.locals) + 8 for function in self.functions], default=8)
            out.data([*_cell("stack_top", asq.number(stack - self.memory)), *_cell("depth", asq.number(stack // frame))])
        if "heap" in storage.needed:
            out.data([*_cell("heap_limit", asq.number(self.memory - stack)), *_cell("heap_free", asq.name("heap"))])
            out.label("heap")
        return out.entries

    def _routines(self) -> list[Routine]:
        """The routines that the program uses, and those that they use."""
        storage = self.code.storage
        found = [find_routine("go", self.bits)]
        ahead, seen = list(storage.needed), set()
        while ahead:
            needed = ahead.pop(0)
            if needed in seen:
                continue
            seen.add(needed)
            storage.need(needed)
            if needed in GENERAL:
                storage.messages[f"{needed}_text"] = f"{self.entry.source.file}: {GENERAL[needed]}"
                ahead.append("failed")
            elif needed != "heap":
                found.append(find_routine(needed, self.bits))
                ahead += found[-1].uses
        return found


def _cell(label: str, value: Expression) -> list[Item]:
    return [asq.Label(asq.MADE, label), asq.Cell(value, asq.MADE)]


def check_number(what: str, value: object, kind: AbstractValue, bits: int) -> int:
    """A number as the word that it is; what is not a number of the word size, or not a truth, is refused."""
    shown = f"{what}={shortened(value, 60)}"
    if not isinstance(value, int) or (kind.kind == "bool" and value not in (0, 1)):
        raise ProgramError(f"{shown}: it must be {'True or False' if kind.kind == 'bool' else 'an integer'}")
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if not low <= value <= high:
        raise ProgramError(f"{shown} does not fit a word of {bits} bits, {low} to {high}; use longer words (word_bits=, "
                           "--bits)")
    return int(value)
