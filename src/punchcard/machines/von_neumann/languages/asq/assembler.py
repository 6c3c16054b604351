"""Assembler of SUBLEQ with one memory: `.asq` text, in the syntax of Mazonka's assembler, to an Image.

    loop:  x y c          an instruction: mem[y] -= mem[x]; if mem[y] <= 0 goto c
           x y            the same as x y ?, where ? is the address of the next cell
           x              the same as x x ?, which clears x
    . x:5 "text" 0        data; every cell can have a label

Macros are ours: `@mov a b` uses one, `@def name parameters` to `@end` defines one. So are `=5`, the address of a cell that
holds 5, and `$name`, a scratch cell. Both are made when they are used and are placed behind the program, or at `@pool`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeAlias

from punchcard.errors import ProgramError, SourceError
from punchcard.machines.source import Token, unknown, where
from punchcard.machines.von_neumann.isa import STANDARD, Dialect, Image, find_dialect
from punchcard.machines.von_neumann.languages.asq import parser as asq_source
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
    number,
)
from punchcard.machines.von_neumann.languages.images import check_word
from punchcard.machines.von_neumann.languages.options import MAX_CELLS

MAX_USES = 1 << 18
"""Macros within macros grow fast, so what they make is limited: cells, uses, depth, and the terms of all sums together."""
MAX_DEPTH = 100  # so that what walks macros, or constants within constants, may call itself
MAX_TERMS = 1 << 21
Expanded: TypeAlias = Label | Cell | Pool


def assemble(text: str, source: str = "", *, word_bits: int | None = None, dialect: str | Dialect = STANDARD) -> Image:
    """The image of an `.asq` text; `source` names it in error messages, and `word_bits` limits its words."""
    return place(asq_source.parse(text, source), word_bits=word_bits, dialect=dialect)


def listing(text: str) -> Image:
    """As `assemble`, with the labels behind the last word too."""
    return place(asq_source.parse(text), behind=True)


def place(
    parsed: AsqText, *, word_bits: int | None = None, dialect: str | Dialect = STANDARD, behind: bool = False
) -> Image:
    """The image of items that a parser or a compiler made: macros expanded, and an address for every label outside them.

    `behind`: also for those behind the last word.
    """
    source = parsed.source
    expander = Expander(parsed, standard_macros())
    items = expander.expand(parsed.items)
    _refuse_written_constants(items, source)
    layout = _Layout(_with_pool(items, list(expander.constants)), source)
    words = tuple(layout.words(word_bits, find_dialect(dialect)))
    if not words:
        raise ProgramError(f"{where(source)}the program is empty: it needs at least one instruction or data line")
    labels = {name: address for name, address in layout.labels.items()
              if "~" not in name and (behind or address < len(words))}
    return Image(words, source, labels, layout.lines)


@cache
def standard_macros() -> Mapping[str, Macro]:
    """The macros that every text can use, written in the language itself."""
    return asq_source.parse(library()).macros


def library() -> str:
    """The text of the standard macros."""
    return (Path(__file__).parent / "library.asq").read_text("utf-8")


def _refuse_written_constants(items: list[Expanded], source: str) -> None:
    for item in items:
        if isinstance(item, Cell) and item.written and [term.kind for term in item.expression] == ["constant"]:
            raise item.expression[0].token.error("a constant would be changed here: copy it to a cell of your own", source)


def _with_pool(items: list[Expanded], constants: Sequence[Expression]) -> list[Label | Cell]:
    """The items with the pool in its place: at `@pool`, else behind the last cell."""
    pool: dict[str, Cell] = {}
    for item in items:
        if isinstance(item, Cell):
            _fill(pool, item.expression, constants)
    cells: list[Label | Cell] = []
    for name, cell in pool.items():
        cells += [Label(cell.token, name), cell]
    marks = [place for place, item in enumerate(items) if isinstance(item, Pool)]
    last = max((place for place, item in enumerate(items) if isinstance(item, Cell)), default=-1)
    place = marks[0] if marks else last + 1
    whole = [*items[:place], *cells, *items[place:]]
    return [item for item in whole if not isinstance(item, Pool)]


def _fill(pool: dict[str, Cell], expression: Expression, constants: Sequence[Expression]) -> None:
    """Add the cells that a sum needs, those within them first. Macros limit how deep constants are nested."""
    for term in expression:
        if term.kind in ("constant", "scratch") and _pool_name(term) not in pool:
            value = constants[term.number] if term.kind == "constant" else number(0, term.token)
            _fill(pool, value, constants)
            pool[_pool_name(term)] = Cell(value, term.token)


def _pool_name(term: Summand) -> str:
    """A name that no text can declare."""
    return term.name if term.kind == "scratch" else f"=~{term.number}"


class _Layout:
    """Addresses for labels, then values for cells."""

    def __init__(self, items: list[Label | Cell], source: str) -> None:
        self._source = source
        self._cells: list[Cell] = []
        self.labels: dict[str, int] = {}
        for item in items:
            if isinstance(item, Cell):
                self._cells.append(item)
            elif item.name in self.labels:
                raise item.token.error(f"label {item.token.text!r} is declared twice", source)
            else:
                self.labels[item.name] = len(self._cells)

    @property
    def lines(self) -> array[int]:
        """The line of each cell."""
        return array("I", (cell.line for cell in self._cells))

    def words(self, word_bits: int | None, dialect: Dialect) -> Iterator[int]:
        for address, cell in enumerate(self._cells):
            word = sum(term.factor * self._value(term, address) for term in cell.expression)
            check_word(word, cell.token, word_bits, dialect, self._source)
            yield word

    def _value(self, term: Summand, address: int) -> int:
        if term.kind == "number":
            return term.number
        if term.kind == "next":
            return address + 1
        name = term.name if term.kind == "name" else _pool_name(term)
        if name not in self.labels:
            known = [label for label in self.labels if label[0] not in "=$" and "~" not in label]
            raise unknown("label", term.token, known, "declare it before a cell, as `name:`", self._source)
        return self.labels[name]


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
        self._source, self._library = text.source, library
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
                self._expanded.append(
                    Cell(self._sum(item.expression, scope), self._place(item.token), item.written, self._line(item)))
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

    def _place(self, token: Token) -> Token:
        """Where the text says what this token says: a standard macro is not part of it, but its use is."""
        return next((call.token for call in self._within if call.name in self._library), token)

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
                terms.append(Summand(term.factor, "constant", self._place(term.token), number=number))
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
