"""Expansion of macros: calls become labels and cells, with labels of their own in every use.

Macros within macros grow fast, so what they may make is limited: cells, uses, depth, and the terms of all sums together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from punchcard.errors import SourceError
from punchcard.machines.source import Token, unknown
from punchcard.machines.von_neumann.languages.asq.items import (
    AsqText,
    Cell,
    CellRun,
    Expression,
    Item,
    Label,
    Macro,
    MacroCall,
    Pool,
    Summand,
    collected,
)
from punchcard.machines.von_neumann.languages.asq.parser import MAX_CELLS

MAX_USES = 1 << 18
MAX_DEPTH = 100  # so that what walks macros, or constants within constants, may call itself
MAX_TERMS = 1 << 21
Expanded: TypeAlias = Label | Cell | Pool


@dataclass(frozen=True)
class _Scope:
    """What names mean in one use of a macro: parameters are operands, its own labels have names that no text can have."""

    parameters: Mapping[str, Expression] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


class Expander:
    """Expands the calls of a text; `macros` are those of the library and of the text.

    `constants` has the sum of every constant by its number. A constant within a constant is a number there, so that
    nothing is written out twice.
    """

    def __init__(self, text: AsqText, library: Mapping[str, Macro]) -> None:
        for name, macro in text.macros.items():
            if name in library:
                raise macro.token.error(f"macro {name!r} is one of the standard macros: choose another name", text.source)
        self._source = text.source
        self._macros = {**library, **text.macros}
        self._uses = self._cells = self._terms = 0
        self._within: list[MacroCall] = []
        self._expanded: list[Expanded] = []
        self.constants: dict[Expression, int] = {}

    def expand(self, items: Sequence[Item]) -> list[Expanded]:
        self._expand(items, _Scope())
        return self._expanded

    def _expand(self, items: Sequence[Item], scope: _Scope) -> None:
        for item in items:
            if isinstance(item, MacroCall):
                self._call(item, scope)
            elif isinstance(item, Cell):
                self._spend_cells(1, item.token)
                self._expanded.append(Cell(self._sum(item.expression, scope), item.token, item.written, self._line(item)))
            elif isinstance(item, CellRun):
                self._spend_cells(item.count, item.token)
                codes = item.codes or bytes(item.count)
                self._expanded += [Cell((Summand(1, "number", item.token, number=code),), item.token, line=self._line(item))
                                   for code in codes]
            elif isinstance(item, Label):
                self._spend_terms(1, item.token)
                self._expanded.append(Label(item.token, scope.labels.get(item.name, item.name)))
            else:
                self._expanded.append(item)

    def _line(self, item: Cell | CellRun) -> int:
        """The line of a cell; of one from a macro, the line of its use."""
        return self._within[0].token.line if self._within else item.token.line

    def _call(self, call: MacroCall, scope: _Scope) -> None:
        macro = self._macros.get(call.name)
        if macro is None:
            raise unknown("macro", call.token, [f"@{name}" for name in self._macros],
                          "it is neither a standard macro nor defined with @def", self._source)
        if len(call.operands) != len(macro.parameters):
            form = " ".join([f"@{call.name}", *macro.parameters[:10], *["..."] * (len(macro.parameters) > 10)])
            raise self._error(call.token, f"@{call.name} has {len(call.operands)} operands here, and takes "
                                          f"{len(macro.parameters)}: write {form}")
        if any(outer.name == call.name for outer in self._within):
            raise self._error(call.token, f"macro {call.name!r} uses itself, which has no end: use a routine and @call")
        if len(self._within) == MAX_DEPTH:
            raise self._error(call.token, f"macros use each other at most {MAX_DEPTH} deep")
        self._uses += 1
        if self._uses > MAX_USES:
            raise self._too_large(call.token, f"macros are used more than {MAX_USES:,} times")
        self._spend_terms(len(macro.labels), call.token)
        inner = _Scope(
            {name: self._sum(operand, scope) for name, operand in zip(macro.parameters, call.operands, strict=True)},
            {name: f"{name}~{self._uses}" for name in macro.labels},
        )
        self._within.append(call)
        self._expand(macro.items, inner)
        self._within.pop()

    def _sum(self, expression: Expression, scope: _Scope) -> Expression:
        """A sum as it is in one use of a macro."""
        terms: list[Summand] = []
        for term in expression:
            if term.kind == "constant":
                value = self._sum(term.constant, scope)
                number = self.constants.setdefault(value, len(self.constants))
                terms.append(Summand(term.factor, "constant", term.token, number=number))
            elif term.kind == "name" and term.name in scope.parameters:
                operand = scope.parameters[term.name]
                self._spend_terms(len(operand), term.token)
                terms += [part.times(term.factor) for part in operand]
            elif term.kind == "name" and term.name in scope.labels:
                terms.append(Summand(term.factor, "name", term.token, scope.labels[term.name]))
            else:
                terms.append(term)
        self._spend_terms(len(terms), expression[0].token)
        return tuple(terms) if len(terms) == 1 else collected(terms)

    def _spend_cells(self, count: int, token: Token) -> None:
        self._cells += count
        if self._cells > MAX_CELLS:
            raise self._too_large(token, f"the program has more than {MAX_CELLS:,} cells")

    def _spend_terms(self, count: int, token: Token) -> None:
        self._terms += count
        if self._terms > MAX_TERMS:
            raise self._too_large(token, f"macros make more than {MAX_TERMS:,} labels and terms")

    def _too_large(self, token: Token, message: str) -> SourceError:
        """The use in the text that made too much is to blame, not the macro."""
        return self._error(self._within[0].token if self._within else token, message)

    def _error(self, token: Token, message: str) -> SourceError:
        return token.error(message, self._source)
