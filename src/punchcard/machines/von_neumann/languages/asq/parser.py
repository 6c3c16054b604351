"""Parser of `.asq` text to its items. Parentheses vanish: an expression is a flat sum."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from punchcard.errors import SourceError, shortened
from punchcard.machines.source import Line, Token, lines, unescape
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
    constant,
    number,
)
from punchcard.machines.von_neumann.languages.options import MAX_CELLS

_TOKEN = re.compile(r"""
    (?P<space>\s+)
  | (?P<comment>(?:\#|//).*)
  | (?P<string>"[^\\"]*+(?:\\.[^\\"]*+)*+")
  | (?P<character>'(?:\\.|[^\\\n])')
  | (?P<unclosed>["'].*)
  | (?P<macro>@[A-Za-z_][A-Za-z0-9_]*)
  | (?P<scratch>\$[A-Za-z_][A-Za-z0-9_]*)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<number>[0-9][0-9A-Za-z_]*)
  | (?P<mark>[:;?.()\[\]+\-=])
""", re.VERBOSE)
# A line ends at a line end that is not in a string. One that is never closed ends on its line, to be refused there.
_STRETCH = re.compile(r"""
    (?: [^"'\#/\n]++ | "[^\\"]*+(?:\\[\s\S][^\\"]*+)*+" | '(?:\\.|[^\\\n])' | (?:\#|//).* | [^"\n] )++ (?: ".* )?
  | ".*
""", re.VERBOSE)

MAX_DEPTH = 100  # of parentheses
OPERANDS = 3


def parse(text: str, source: str = "") -> AsqText:
    """The items of a text in their order, and the macros that it defines."""
    return _Parser(source).parse(text)


class _Parser:
    def __init__(self, source: str) -> None:
        self._text = AsqText(source)
        self._macro: tuple[Token, tuple[str, ...]] | None = None
        self._body: list[Item] = []
        self._cells = 0
        self._is_data = False
        """Whether a dot is before the statement that comes; it waits for its first cell."""
        self._begun: list[Item] = []
        """A statement that ends with a label so far: the next line continues with it."""

    def parse(self, text: str) -> AsqText:
        for line in lines(text, self._text.source, _TOKEN, _STRETCH):
            while line.ahead.kind != "end":
                self._statement(line)
                line.take_if(";")
        if self._begun:
            self._finish(self._begun[-1].token.error)
        if self._macro is not None:
            raise self._macro[0].error(f"macro {self._macro[0].text!r} has no end: close it with @end")
        return self._text

    def _add(self, item: Item) -> None:
        if self._macro is not None:
            self._body.append(item)
            return
        self._text.items.append(item)
        self._cells += isinstance(item, Cell)
        if self._cells > MAX_CELLS:  # macros only add to them
            raise item.token.error(f"the program has more than {MAX_CELLS:,} cells")

    def _statement(self, line: Line) -> None:
        if self._begun and (line.at(".") or line.ahead.kind == "macro"):  # neither continues with a statement
            self._finish(line.wrong)
        if not self._begun:
            for label in self._labels(line):
                self._add(label)
            if line.ahead.kind == "macro":
                self._is_data = False
                self._directive(line, line.take())
                return
            self._is_data |= line.take_if(".")
        self._begun += self._items(line)
        if line.at(";") or not (_count(self._begun) and isinstance(self._begun[-1], Label)):
            self._finish(line.wrong)

    def _finish(self, wrong: Callable[[str], SourceError]) -> None:
        """The statement that was begun ends here."""
        items, count = [item for item in self._begun if isinstance(item, Label) or _count([item])], _count(self._begun)
        if count and not self._is_data:
            if isinstance(self._begun[-1], Label):
                raise wrong("a label within an instruction is before an operand")
            items = _instruction(items, count)
        for item in items:
            self._add(item)
        self._begun = []
        self._is_data &= not count

    def _items(self, line: Line) -> Iterator[Item]:
        """The labels and cells up to the end of a statement."""
        while not _ends(line):
            yield from self._labels(line)
            if not _ends(line):
                yield self._data(line)

    def _labels(self, line: Line) -> Iterator[Label]:
        while line.second_is(":"):
            token = line.take_name("a label")
            line.take()
            if self._macro is not None and token.text in self._macro[1]:
                raise token.error(f"label {token.text!r} is a parameter of the macro: choose another name")
            yield Label(token, token.text)

    def _data(self, line: Line) -> Cell | CellRun:
        token = line.ahead
        if line.at("["):
            return self._zeros(line)
        if token.kind != "string":
            return Cell(self._operand(line), token)
        line.take()
        codes = unescape(token).encode("utf-8", "surrogatepass")
        return CellRun(token, len(codes), codes)

    def _zeros(self, line: Line) -> CellRun:
        token = line.take()
        count, written = line.take_integer("the number of cells")
        if count < 1:
            raise written.error(f"[{count}] has no cells: write 1 or more")
        line.take_mark("]", "an opened bracket is closed with ']', as in [5]")
        return CellRun(token, count)

    def _directive(self, line: Line, token: Token) -> None:
        if token.text == "@def":
            self._begin_macro(line, token)
        elif token.text == "@end":
            self._end_macro(token)
        elif token.text == "@pool":
            if self._macro is not None:
                raise token.error("@pool cannot be in a macro")
            if any(isinstance(item, Pool) for item in self._text.items):
                raise token.error("a second @pool: constants and scratch cells have one place")
            self._add(Pool(token))
        else:
            operands = []
            while not _ends(line):
                if line.second_is(":"):
                    raise line.wrong("an operand of a macro has no label")
                operands.append(self._operand(line))
                if any(term.kind == "next" for term in operands[-1]):
                    raise token.error(f"'?' is not an operand of {token.text}: in a macro it means another cell at every "
                                      "use; use a label")
            self._add(MacroCall(token, token.text[1:], tuple(operands)))
            return
        if not _ends(line):
            raise line.wrong(f"{token.text} ends here; the next statement is on a new line or after ';'")

    def _begin_macro(self, line: Line, token: Token) -> None:
        if self._macro is not None:
            raise token.error(f"a macro within macro {self._macro[0].text!r}: close that with @end first")
        name = line.take_name("the name of a macro")
        if name.text in self._text.macros:
            raise name.error(f"macro {name.text!r} is defined twice")
        if name.text in ("def", "end", "pool"):
            raise name.error(f"@{name.text} is a word of the language: choose another name")
        parameters: dict[str, None] = {}
        while not _ends(line):
            parameter = line.take_name("a parameter")
            if parameter.text in parameters:
                raise parameter.error(f"parameter {parameter.text!r} occurs twice")
            parameters[parameter.text] = None
        self._macro, self._body = (name, tuple(parameters)), []

    def _end_macro(self, token: Token) -> None:
        if self._macro is None:
            raise token.error("@end closes a macro, and none is open: it begins with @def")
        name, parameters = self._macro
        declared: dict[str, None] = {}
        for item in self._body:
            if isinstance(item, Label):
                if item.name in declared:
                    raise item.token.error(f"label {item.name!r} is declared twice in macro {name.text!r}")
                declared[item.name] = None
        self._text.macros[name.text] = Macro(name, parameters, tuple(self._body), tuple(declared))
        self._macro = None

    def _operand(self, line: Line) -> Expression:
        """An expression; after `=` the address of a cell that holds its value."""
        if not line.at("="):
            return self._sum(line, 0)
        token = line.take()
        value = self._sum(line, 0)
        if any(term.kind == "next" for term in value):
            raise token.error("'?' has no meaning in a constant: use a label")
        return constant(value, token)

    def _sum(self, line: Line, depth: int) -> Expression:
        terms = list(self._term(line, depth))
        while line.at("+", "-"):
            sign = -1 if line.take().text == "-" else 1
            terms += [term.times(sign) for term in self._term(line, depth)]
        return tuple(terms)

    def _term(self, line: Line, depth: int) -> Expression:
        sign = 1
        while line.at("+", "-"):
            sign = -sign if line.take().text == "-" else sign
        token = line.ahead
        if line.at("("):
            if depth == MAX_DEPTH:
                raise line.wrong(f"parentheses are at most {MAX_DEPTH} deep")
            line.take()
            terms = self._sum(line, depth + 1)
            line.take_mark(")", "an opened parenthesis is closed with ')'")
            return tuple(term.times(sign) for term in terms)
        if token.kind in ("number", "character"):
            value, _ = line.take_integer("a value")
            if value > 127 and token.kind == "character":
                raise token.error(f"{token.text} is more than one byte: write it as a string on a data line")
            return number(sign * value, token)
        if token.kind in ("name", "scratch"):
            line.take()
            return (Summand(sign, "name" if token.kind == "name" else "scratch", token, token.text),)
        if line.take_if("?"):
            return (Summand(sign, "next", token),)
        if token.kind == "unclosed":
            rule = "a character is 'a' or '\\n'" if token.text.startswith("'") else "a string ends with a quote"
            raise token.error(f"{shortened(token.text)[1:-1]} is not closed: {rule}")
        raise line.wrong("an operand is a sum of numbers, labels and '?', such as 12, loop, ?+2 or (-1)")


def _count(items: Iterable[Item]) -> int:
    """How many cells these are."""
    return sum(item.count if isinstance(item, CellRun) else isinstance(item, Cell) for item in items)


def _instruction(items: list[Item], count: int) -> list[Item]:
    """The cells of a statement without a dot: one or two are made an instruction, and more than three are data."""
    if count > OPERANDS:
        return items
    cells = [item for item in items if isinstance(item, Cell | CellRun)]
    first, last = cells[0], cells[-1]
    if len(cells) > 1 and isinstance(cells[1], Cell) and isinstance(first, Cell):
        items = [replace(item, written=True) if item is cells[1] else item for item in items]
    if count == 1:
        same = _one_cell_later(first.expression) if isinstance(first, Cell) else _value(first)
        items = [*items, Cell(same, last.token, written=True)]
    if count < OPERANDS:
        items = [*items, Cell((Summand(1, "next", first.token),), first.token)]
    return items


def _value(run: CellRun) -> Expression:
    """What the first cell of a run holds."""
    return number(run.codes[0] if run.codes else 0, run.token)


def _ends(line: Line) -> bool:
    return line.ahead.kind == "end" or line.at(";")


def _one_cell_later(expression: Expression) -> Expression:
    """The same number in the next cell, where `?` is one more."""
    count = sum(term.factor for term in expression if term.kind == "next")
    return (*expression, *number(-count, expression[0].token)) if count else expression
