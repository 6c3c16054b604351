"""Assembler of SUBLEQ with one memory: `.asq` text, in the syntax of Mazonka's assembler, to an Image.

    loop:  x y c          an instruction: mem[y] -= mem[x]; if mem[y] <= 0 goto c
           x y            the same as x y ?, where ? is the address of the next cell
           x              the same as x x ?, which clears x
    . x:5 "text" 0        data; every cell can have a label

Macros are ours: `@mov a b` uses one, `@def name parameters` to `@end` defines one. So are `=5`, the address of a cell that
holds 5, and `$name`, a scratch cell. Both are made where they are used and stand behind the program, or at `@pool`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from punchcard.errors import ProgramError
from punchcard.machines.source import unknown
from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.languages.asq import parser as asq_source
from punchcard.machines.von_neumann.languages.asq.library import LIBRARY
from punchcard.machines.von_neumann.languages.asq.macros import Expander
from punchcard.machines.von_neumann.languages.asq.parser import Cell, Expression, Label, Macro, Pool, Term
from punchcard.machines.von_neumann.languages.images import check_word


@dataclass(frozen=True)
class LabelledWords:
    """An assembled text: its words, and the address of every label that stands in it outside of macros."""

    words: tuple[int, ...]
    labels: Mapping[str, int]


def assemble(text: str, source: str = "", *, word_bits: int | None = None) -> Image:
    """The image of an `.asq` text; `source` names it in error messages, and `word_bits` limits its words."""
    listed = listing(text, source, word_bits=word_bits)
    inside = {name: address for name, address in listed.labels.items() if 0 <= address < len(listed.words)}
    return Image(listed.words, source, inside)


def listing(text: str, source: str = "", *, word_bits: int | None = None) -> LabelledWords:
    """As `assemble`, with the addresses of the labels."""
    parsed = asq_source.parse(text, source)
    items = Expander(parsed, standard_macros()).expand(parsed.items)
    _refuse_written_constants(items, source)
    layout = _Layout(_with_pool(items), source)
    words = tuple(layout.words(word_bits))
    if not words:
        where = f"{source}: " if source else ""
        raise ProgramError(f"{where}the program is empty: it needs at least one instruction or data line")
    return LabelledWords(words, {name: address for name, address in layout.labels.items() if "~" not in name})


@cache
def standard_macros() -> Mapping[str, Macro]:
    """The macros that every text can use."""
    return asq_source.parse(LIBRARY, "standard macros").macros


def _refuse_written_constants(items: list[Label | Cell | Pool], source: str) -> None:
    for item in items:
        if isinstance(item, Cell) and item.written and [term.kind for term in item.expression] == ["constant"]:
            raise item.expression[0].token.error("a constant would be changed here: copy it to a cell of your own", source)


def _with_pool(items: list[Label | Cell | Pool]) -> list[Label | Cell]:
    """The items with the pool in its place: where `@pool` stands, else behind the last cell."""
    pool: dict[Term, Cell] = {}
    for item in items:
        if isinstance(item, Cell):
            for term in _pooled(item.expression):
                value = term.constant or (Term(1, "number", term.token),)
                pool.setdefault(_key(term), Cell(value, term.token))
    cells: list[Label | Cell] = []
    for key, cell in pool.items():
        cells += [Label(cell.token, _pool_name(key)), cell]
    marks = [place for place, item in enumerate(items) if isinstance(item, Pool)]
    last = max((place for place, item in enumerate(items) if isinstance(item, Cell)), default=-1)
    place = marks[0] if marks else last + 1
    whole = [*items[:place], *cells, *items[place:]]
    return [item for item in whole if not isinstance(item, Pool)]


def _pooled(expression: Expression) -> Iterator[Term]:
    """The terms that need a cell of the pool, with those within them."""
    for term in expression:
        if term.kind in ("constant", "scratch"):
            yield from _pooled(term.constant)
            yield term


def _key(term: Term) -> Term:
    """The same for all uses of a pool cell, with whatever sign."""
    return term if term.sign == 1 else term.times(-1)


def _pool_name(key: Term) -> str:
    """A name that no text can declare."""
    if key.kind == "scratch":
        return key.name
    return "=~" + "".join(f"{'+' if t.sign > 0 else '-'}{_pool_name(_key(t)) if t.constant else t.name or t.number}"
                          for t in key.constant)


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

    def words(self, word_bits: int | None) -> Iterator[int]:
        for address, cell in enumerate(self._cells):
            word = sum(term.sign * self._value(term, address) for term in cell.expression)
            check_word(word, cell.token, word_bits, self._source)
            yield word

    def _value(self, term: Term, address: int) -> int:
        if term.kind == "number":
            return term.number
        if term.kind == "next":
            return address + 1
        name = term.name if term.kind == "name" else _pool_name(_key(term))
        if name not in self.labels:
            known = [label for label in self.labels if label[0] not in "=$" and "~" not in label]
            raise unknown("label", term.token, known, "declare it before a cell, as `name:`", self._source)
        return self.labels[name]
