"""Assembler of FLEQ: `.fleq` text to a FleqProgram. The disassembler is beside it, in `writer`.

Variables are laid out in the order of their declaration, from memory column 0. The code is read when all of them, and all
labels, are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from punchcard.arguments import checked
from punchcard.errors import ProgramError
from punchcard.machines.assembler import take_labels, take_section
from punchcard.machines.fleq.functions import ALIASES, BUILT_IN, KNOWN, POINTER_FUNCTIONS, Function
from punchcard.machines.fleq.isa import FleqProgram, Halt, variables_in_order
from punchcard.machines.fleq.text.code import Code
from punchcard.machines.fleq.text.counters import (
    CounterDeclaration,
    Counters,
    CounterStatement,
    declares_counter,
    is_counter_statement,
    take_counter,
    take_counter_statement,
)
from punchcard.machines.fleq.text.source import lines, take_number
from punchcard.machines.fleq.text.value_files import MOST_VALUES
from punchcard.machines.fleq.text.values import Declaration, beyond, take_declaration
from punchcard.machines.fleq.text.writer import disassemble
from punchcard.machines.source import Line, where
from punchcard.machines.subleq.isa import NAME

__all__ = ["assemble", "disassemble"]

_TAKEN = (*POINTER_FUNCTIONS, *ALIASES, "file")


@dataclass
class _SourceParts:
    """The parts of a source text: variables and counters, statements, and labels by the number of their statement."""

    declarations: dict[str, Declaration | CounterDeclaration] = field(default_factory=dict)
    code: list[Line | CounterStatement] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    range: float | None = None

    @property
    def limit(self) -> float:
        return FleqProgram.range if self.range is None else self.range

    def counters(self) -> Counters:
        """The counters, all of them known."""
        declared = [each for each in self.declarations.values() if isinstance(each, CounterDeclaration)]
        return Counters(declared, self.limit, (name for name, each in self.declarations.items()
                                               if isinstance(each, Declaration)))


@checked
def assemble(
    text: str, source: str = "", functions: Mapping[str, Function] | None = None, folder: str | Path | None = None
) -> FleqProgram:
    """The program of a `.fleq` text.

    `source` names the text in error messages, `functions` are declared functions beyond the built-in ones, by name, and
    `folder` is where `file(...)` looks.
    """
    known, listing = _all_functions(functions or {}), _SourceParts()
    _parse(text, source, listing, None if folder is None else Path(folder))
    if not listing.code:
        raise ProgramError(f"{where(source)}the program is empty: .code needs at least one instruction")
    counters, limit = listing.counters(), listing.limit
    declared = [each for one in listing.declarations.values()
                for each in ([one] if isinstance(one, Declaration) else counters.digits(one.name.text))]
    declared += counters.constants(each for each in listing.code if isinstance(each, CounterStatement))
    variables = variables_in_order([(d.name.text, d.shape) for d in declared])
    for declaration in declared:
        value = beyond(declaration, limit)
        if value is not None:
            raise declaration.name.error(f"{value!r} of {declaration.name.text!r} is beyond the range, {limit!r}: declare a "
                                         "larger one with `.range`")
    last = listing.code[-1]
    halts = isinstance(last, Line) and last.at("halt") and len(listing.code) not in listing.labels.values()
    sizes = [1 if isinstance(each, Line) else len(counters.additions(each)) for each in listing.code]
    starts = [0, *accumulate(sizes)]
    labels = {name: starts[number] for name, number in listing.labels.items()}
    lines_of_code = tuple(line for each, size in zip(listing.code, sizes, strict=True) for line in [_line_of(each)] * size)
    code = Code(known, {v.name: v for v in variables}, labels, starts[-1] + (not halts), frozenset(counters.names))
    instructions = [step for each in listing.code for step in (
        [code.take_instruction(each)] if isinstance(each, Line) else counters.steps(each, code))]
    instructions += [] if halts else [Halt()]
    code.check_updates(instructions)
    values = {d.name.text: d.value for d in declared}
    return FleqProgram(tuple(instructions), variables, values, known, tuple(labels.items()), limit, lines_of_code)


def _line_of(statement: Line | CounterStatement) -> int:
    return (statement.ahead if isinstance(statement, Line) else statement.word).line


def _all_functions(extra: Mapping[str, Function]) -> dict[str, Function]:
    """The built-in functions and those of the user, which need names and arities that the language can write."""
    for name, function in extra.items():
        if name != function.name or not NAME.fullmatch(name):
            raise ProgramError(f"function {name!r}, declared as {function.name!r}: both names are the same, letters, digits "
                               "and _, and start with no digit")
        if name in _TAKEN or BUILT_IN.get(name, function) is not function:
            raise ProgramError(f"function {name!r}: the language has one of this name already")
        if function.arity not in (1, 2):
            raise ProgramError(f"function {name!r} takes {function.arity} operands: an instruction has one or two")
    return {**KNOWN, **extra}


def _parse(text: str, source: str, listing: _SourceParts, folder: Path | None) -> None:
    section, room = None, MOST_VALUES
    for line in lines(text, source):
        if line.ahead.text.lower() == ".range":
            _take_range(line, listing)
        elif line.ahead.kind == "directive":
            section = take_section(line, (".range",))
        elif section == ".data":
            declaration: Declaration | CounterDeclaration
            if declares_counter(line):
                declaration = take_counter(line)
            else:
                declaration = take_declaration(line, folder, room)
                room -= declaration.value.size
            if declaration.name.text in listing.declarations:
                raise declaration.name.error(f"variable {declaration.name.text!r} is declared twice")
            listing.declarations[declaration.name.text] = declaration
        elif section == ".code":
            take_labels(line, listing.labels, len(listing.code))
            if line.ahead.kind != "end":
                listing.code.append(take_counter_statement(line) if is_counter_statement(line) else line)
        else:
            raise line.wrong("a program begins with .data or .code")


def _take_range(line: Line, listing: _SourceParts) -> None:
    directive = line.take()
    if listing.range is not None:
        raise directive.error("the range is declared twice")
    limit, token = take_number(line, "the range")
    if limit <= 0:
        raise token.error(f"range {limit!r}: the range must be positive")
    line.finish("the range")
    listing.range = limit
