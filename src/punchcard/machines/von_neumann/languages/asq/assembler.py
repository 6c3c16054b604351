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
from dataclasses import dataclass
from functools import cache

from punchcard.errors import ProgramError
from punchcard.machines.source import unknown
from punchcard.machines.von_neumann.isa import STANDARD, Dialect, Image, find_dialect
from punchcard.machines.von_neumann.languages.asq import parser as asq_source
from punchcard.machines.von_neumann.languages.asq.items import (
    AsqText,
    Cell,
    Expression,
    Label,
    Macro,
    Pool,
    Summand,
    number,
)
from punchcard.machines.von_neumann.languages.asq.library import LIBRARY
from punchcard.machines.von_neumann.languages.asq.macros import Expanded, Expander
from punchcard.machines.von_neumann.languages.images import check_word


@dataclass(frozen=True)
class LabelledWords:
    """An assembled text: its words, and the address of every label outside of macros."""

    words: tuple[int, ...]
    labels: Mapping[str, int]
    lines: Sequence[int]
    """The line that each word comes from; 0: none."""


def assemble(text: str, source: str = "", *, word_bits: int | None = None, dialect: str | Dialect = STANDARD) -> Image:
    """The image of an `.asq` text; `source` names it in error messages, and `word_bits` limits its words."""
    listed = listing(text, source, word_bits=word_bits, dialect=dialect)
    inside = {name: address for name, address in listed.labels.items() if 0 <= address < len(listed.words)}
    return Image(listed.words, source, inside, listed.lines)


def listing(text: str, source: str = "", *, word_bits: int | None = None,
            dialect: str | Dialect = STANDARD) -> LabelledWords:
    """As `assemble`, with the addresses of the labels."""
    return place(asq_source.parse(text, source), word_bits=word_bits, dialect=dialect)


def place(parsed: AsqText, *, word_bits: int | None = None, dialect: str | Dialect = STANDARD) -> LabelledWords:
    """The words of items, which a parser or a compiler made: macros expanded, and an address for every label."""
    source = parsed.source
    expander = Expander(parsed, standard_macros())
    items = expander.expand(parsed.items)
    _refuse_written_constants(items, source)
    layout = _Layout(_with_pool(items, list(expander.constants)), source)
    words = tuple(layout.words(word_bits, find_dialect(dialect)))
    if not words:
        where = f"{source}: " if source else ""
        raise ProgramError(f"{where}the program is empty: it needs at least one instruction or data line")
    return LabelledWords(words, {name: address for name, address in layout.labels.items() if "~" not in name}, layout.lines)


@cache
def standard_macros() -> Mapping[str, Macro]:
    """The macros that every text can use."""
    return asq_source.parse(LIBRARY, "standard macros").macros


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
            check_word(word, cell.token, word_bits, self._source, dialect)
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
