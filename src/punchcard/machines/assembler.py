"""What the assemblers share: `.data` and `.code` sections, labels, and operands by the instruction table.

    .data
    name   value value ...        a cell for each value; `name` is the first, `name+1` the second; no value means 0
    .code
    label: mnemonic operand, operand, ...

`;` and `#` begin a comment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from punchcard.errors import ProgramError
from punchcard.machines.source import MAX_DIGITS, Line, Token, lines, unknown, where

SECTIONS = (".data", ".code")
_RUN = re.compile(rf"(?:[+-]?[0-9]{{1,{MAX_DIGITS}}}(?:\s*+,\s*+|\s++|$))*+")  # decimal values in a row


OperandKind: TypeAlias = Literal["cell", "target"]


@dataclass(frozen=True)
class Operation:
    """An entry of the instruction table, which assembler and disassembler read."""

    mnemonic: str
    operands: tuple[OperandKind, ...]
    optional: int = 0


@dataclass(frozen=True)
class Symbol:
    """A name for `size` consecutive memory cells."""

    name: str
    address: int
    size: int = 1


class _Operand(NamedTuple):
    """An operand as written in the text: a name with an offset for arrays, or an instruction's number."""

    kind: OperandKind
    token: Token
    offset: int = 0
    number: int | None = None


class Statement(NamedTuple):
    """One instruction: its operands are the numbers of memory cells and of instructions."""

    operation: Operation
    operands: tuple[int, ...]
    line: int


@dataclass
class ParsedText:
    """A source text, parsed: what was declared and what was written."""

    symbols: dict[str, Symbol] = field(default_factory=dict)
    symbol_tokens: dict[str, Token] = field(default_factory=dict)
    values: list[int] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    _code: list[tuple[Operation, list[_Operand], Token]] = field(default_factory=list)
    """The instructions before their names are resolved."""

    def _cell(self, operand: _Operand) -> int:
        """The number of the memory cell that an operand names."""
        name = operand.token.text
        if name not in self.symbols:
            raise unknown("memory cell", operand.token, self.symbols, "declare it under .data")
        symbol = self.symbols[name]
        if operand.offset >= symbol.size:
            raise operand.token.error(f"'{name}+{operand.offset}' is beyond {name!r}, which has {symbol.size} "
                                      f"cell{'s' * (symbol.size != 1)}, counted from 0")
        return symbol.address + operand.offset

    def _target(self, operand: _Operand) -> int:
        """The number of the instruction that an operand names."""
        if operand.number is None:
            return labelled(operand.token, self.labels)
        ends = self._code[-1][0].mnemonic == "halt"
        if operand.number >= len(self._code) + (not ends):
            raise operand.token.error(f"no instruction {operand.number}: there are {len(self._code)}, counted from 0")
        return operand.number


def parse(text: str, operations: Mapping[str, Operation], source: str, *, declares: bool = False) -> ParsedText:
    """Parse a text. It begins with `.data` or `.code`; if it `declares` cells by their use, it is all code without them."""
    parsed = ParsedText()
    section, has_data = ".code" if declares else None, False
    for line in lines(text, source):
        if line.ahead.kind == "directive":
            section = take_section(line)
            has_data |= section == ".data"
        elif section == ".data":
            _parse_data(line, parsed)
        elif section == ".code":
            _parse_code(line, parsed, operations)
        else:
            raise line.wrong("a program begins with .data or .code")
    if not parsed._code:
        raise ProgramError(f"{where(source)}the program is empty: .code needs at least one instruction")
    for operation, operands, token in parsed._code:
        for operand in operands:
            name = operand.token.text
            if declares and not has_data and operand.kind == "cell" and name not in parsed.symbols:
                parsed.symbols[name] = Symbol(name, len(parsed.values))
                parsed.values.append(0)
        numbers = [parsed._cell(each) if each.kind == "cell" else parsed._target(each) for each in operands]
        parsed.statements.append(Statement(operation, tuple(numbers), token.line))
    return parsed


def take_section(line: Line, others: tuple[str, ...] = ()) -> str:
    """The section that a line begins; `others` are the language's directives that begin none."""
    token = line.take()
    if token.text.lower() not in SECTIONS:
        known = (*SECTIONS, *others)
        raise unknown("section", token, known, f"there are {' and '.join(known)}")
    line.finish(token.text)
    return token.text.lower()


def take_labels(line: Line, labels: dict[str, int], number: int) -> None:
    """Note the labels at the beginning of a line as names of the instruction with this number."""
    while line.second_is(":"):
        label = line.take_name("a label")
        line.take()
        if label.text in labels:
            raise label.error(f"label {label.text!r} is declared twice")
        labels[label.text] = number


def labelled(token: Token, labels: Mapping[str, int]) -> int:
    """The number of the instruction that has this label."""
    if token.text not in labels:
        raise unknown("label", token, labels, "write it before an instruction, as `name:`")
    return labels[token.text]


def _parse_data(line: Line, parsed: ParsedText) -> None:
    name = line.take_name("a memory cell")
    if name.text in parsed.symbols:
        raise name.error(f"memory cell {name.text!r} is declared twice")
    if line.at(":"):
        raise line.wrong("a memory cell is declared as `name value`, without a colon")
    parsed.symbol_tokens[name.text] = name
    address = len(parsed.values)
    while line.ahead.kind != "end":
        run = line.take_run(_RUN)
        if run:
            parsed.values += map(int, run.replace(",", " ").split())
        else:
            parsed.values.append(line.take_integer("a value")[0])
        if not run.rstrip().endswith(","):
            line.take_if(",")
    if len(parsed.values) == address:
        parsed.values.append(0)
    parsed.symbols[name.text] = Symbol(name.text, address, len(parsed.values) - address)


def _parse_code(line: Line, parsed: ParsedText, operations: Mapping[str, Operation]) -> None:
    take_labels(line, parsed.labels, len(parsed._code))
    if line.ahead.kind == "end":
        return
    mnemonic = line.take_name("an instruction")
    operation = operations.get(mnemonic.text.lower())
    if operation is None:
        raise unknown("instruction", mnemonic, operations, f"there are {', '.join(operations)}")
    parsed._code.append((operation, _parse_operands(line, operation, mnemonic), mnemonic))


def _parse_operands(line: Line, operation: Operation, mnemonic: Token) -> list[_Operand]:
    operands: list[_Operand] = []
    for place, kind in enumerate(operation.operands):
        if place:
            if line.ahead.kind == "end" and place >= len(operation.operands) - operation.optional:
                break
            line.take_mark(",", f"operands of {operation.mnemonic} are separated by commas, and there are "
                                f"{_count(operation)}")
        if kind == "target" and line.ahead.kind == "number":
            number, token = line.take_integer("an instruction number")
            operands.append(_Operand(kind, token, number=number))
            continue
        if kind == "cell" and line.ahead.kind in ("number", "character"):
            raise line.wrong("an operand is the name of a memory cell; declare a constant under .data and name it")
        if kind == "target" and line.ahead.kind != "name":
            raise line.wrong("a target is a label, or an instruction's number counted from 0")
        token = line.take_name(f"operand {place + 1} of {operation.mnemonic}")
        offset = 0
        if kind == "cell" and line.take_if("+"):
            offset, _ = line.take_integer("an offset")
            if offset < 0:
                raise token.error(f"offset {offset}: an array's cells count from 0")
        operands.append(_Operand(kind, token, offset))
    line.finish(f"the {_count(operation)} operands of {mnemonic.text}" if operation.operands else mnemonic.text)
    return operands


def _count(operation: Operation) -> str:
    most = len(operation.operands)
    return f"{most - operation.optional} or {most}" if operation.optional else str(most)
