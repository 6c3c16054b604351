"""The items of `.asq` text: labels, cells, data and uses of macros, before any name has a value.

An expression has only sums and differences, so it is kept as a flat sum of summands with factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from punchcard.machines.source import Token

MADE = Token("made", "", 0, 1)
"""The token of what no text says: a compiler made it."""
TermKind: TypeAlias = Literal["number", "name", "next", "scratch", "constant"]


@dataclass(frozen=True)
class Summand:
    """A part of a sum: a number, a label, `?`, a scratch cell's address, or the address of a constant's cell.

    A constant is the sum that its cell holds, `constant`; once macros are expanded it is that sum's number in a table.
    """

    factor: int
    kind: TermKind
    token: Token = field(compare=False)
    name: str = ""
    number: int = 0
    constant: tuple[Summand, ...] = ()

    def times(self, factor: int) -> Summand:
        if factor == 1:
            return self
        return Summand(factor * self.factor, self.kind, self.token, self.name, self.number, self.constant)


Expression: TypeAlias = tuple[Summand, ...]


@dataclass(frozen=True)
class Label:
    """A name for the address of what comes next."""

    token: Token
    name: str


@dataclass(frozen=True)
class Cell:
    """A word of the image. `written` says that it is the operand b of an instruction, whose cell changes."""

    expression: Expression
    token: Token
    written: bool = False
    line: int = 0
    """The line of the program's own text, also of a cell that comes from a macro; 0: none."""


@dataclass(frozen=True)
class CellRun:
    """Cells in a row: the bytes of a string; or `[5]`, so many that are 0."""

    token: Token
    count: int
    codes: bytes = b""


@dataclass(frozen=True)
class MacroCall:
    """A use of a macro."""

    token: Token
    name: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class Pool:
    """The place for constants and scratch cells."""

    token: Token


Item: TypeAlias = Label | Cell | CellRun | MacroCall | Pool


@dataclass(frozen=True)
class Macro:
    """A named piece of program; labels that it declares are its own in every use."""

    token: Token
    parameters: tuple[str, ...]
    items: tuple[Item, ...]
    labels: tuple[str, ...]


@dataclass
class AsqText:
    """A source text, parsed."""

    source: str
    items: list[Item] = field(default_factory=list)
    macros: dict[str, Macro] = field(default_factory=dict)


def number(value: int, token: Token = MADE) -> Expression:
    return (Summand(1, "number", token, number=value),)


def name(label: str, factor: int = 1) -> Expression:
    """The address of a label."""
    return (Summand(factor, "name", MADE, label),)


def scratch(label: str) -> Expression:
    """The address of a scratch cell, `$label`."""
    return (Summand(1, "scratch", MADE, f"${label}"),)


def constant(value: Expression, token: Token = MADE) -> Expression:
    """The address of a cell that holds a value, `=value`."""
    return (Summand(1, "constant", token, constant=collected(value)),)


def collected(expression: Sequence[Summand]) -> Expression:
    """The same sum with like terms as one, so that =5, =(5) and =2+3 share a cell, and no sum grows by being repeated."""
    total = 0
    rest: dict[tuple[str, str, int, Expression], Summand] = {}
    for term in expression:
        if term.kind == "number":
            total += term.factor * term.number
            continue
        key = term.kind, term.name, term.number, term.constant
        before = rest.get(key)
        rest[key] = term if before is None else replace(before, factor=before.factor + term.factor)
    return (*rest.values(), *number(total, expression[0].token)) if total or not rest else tuple(rest.values())
