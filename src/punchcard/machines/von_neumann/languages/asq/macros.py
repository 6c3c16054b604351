"""Expansion of macros: calls become labels and cells, with labels of their own in every use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from punchcard.errors import SourceError
from punchcard.machines.source import unknown
from punchcard.machines.von_neumann.languages.asq.parser import Call, Cell, Expression, Item, Label, Macro, Pool, Term, Text

MAX_CELLS = 1 << 18  # macros within macros grow fast


@dataclass(frozen=True)
class _Scope:
    """What names mean in one use of a macro: parameters are operands, its own labels have a name that nobody can write."""

    parameters: Mapping[str, Expression] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def expression(self, expression: Expression) -> Expression:
        return tuple(renamed for term in expression for renamed in self._term(term))

    def _term(self, term: Term) -> Iterator[Term]:
        if term.kind == "constant":
            yield replace(term, constant=self.expression(term.constant))
        elif term.kind == "name" and term.name in self.parameters:
            for part in self.parameters[term.name]:
                yield part.times(term.sign)
        elif term.kind == "name" and term.name in self.labels:
            yield replace(term, name=self.labels[term.name])
        else:
            yield term


class Expander:
    """Expands the calls of a text; `macros` are those of the library and of the text."""

    def __init__(self, text: Text, library: Mapping[str, Macro]) -> None:
        for name, macro in text.macros.items():
            if name in library:
                raise macro.token.error(f"macro {name!r} is one of the standard macros: choose another name", text.source)
        self._source = text.source
        self._macros = {**library, **text.macros}
        self._uses = 0
        self._cells = 0
        self._expanded: list[Label | Cell | Pool] = []

    def expand(self, items: Sequence[Item]) -> list[Label | Cell | Pool]:
        self._expand(items, _Scope(), ())
        return self._expanded

    def _expand(self, items: Sequence[Item], scope: _Scope, within: tuple[Call, ...]) -> None:
        for item in items:
            if isinstance(item, Call):
                self._call(item, scope, within)
            elif isinstance(item, Cell):
                self._cells += 1
                if self._cells > MAX_CELLS:
                    raise self._error(within[0] if within else item, f"the program has more than {MAX_CELLS:,} cells")
                self._expanded.append(replace(item, expression=scope.expression(item.expression)))
            elif isinstance(item, Label):
                self._expanded.append(replace(item, name=scope.labels.get(item.name, item.name)))
            else:
                self._expanded.append(item)

    def _call(self, call: Call, scope: _Scope, within: tuple[Call, ...]) -> None:
        macro = self._macros.get(call.name)
        if macro is None:
            raise unknown("macro", call.token, [f"@{name}" for name in self._macros],
                          "it is neither a standard macro nor defined with @def", self._source)
        if len(call.operands) != len(macro.parameters):
            form = " ".join([call.token.text, *macro.parameters])
            raise self._error(call, f"{call.token.text} has {len(call.operands)} operands here, and takes "
                                    f"{len(macro.parameters)}: write {form}")
        if any(outer.name == call.name for outer in within):
            raise self._error(call, f"macro {call.name!r} uses itself, which has no end: use a routine and @call")
        self._uses += 1
        if self._uses > MAX_CELLS:
            raise self._error((*within, call)[0], f"macros are used more than {MAX_CELLS:,} times")
        inner = _Scope(
            {name: scope.expression(operand) for name, operand in zip(macro.parameters, call.operands, strict=True)},
            {name: f"{name}~{self._uses}" for name in macro.labels},
        )
        self._expand(macro.items, inner, (*within, call))

    def _error(self, item: Call | Cell, message: str) -> SourceError:
        return item.token.error(message, self._source)
