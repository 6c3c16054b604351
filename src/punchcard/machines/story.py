"""The story of a loop: one sentence for each half layer, with the values of the card in it.

A design says it once (`Design.story`), as texts with names in braces, and says for each name where its value is:

    read = ValuePlace(0, head=0)
    Sentence("Head 1 fetches mem[{a}] = {word}.", {"a": name(read), "word": Quote(read, "memory")})

`{loop}`, `{instruction}` and `{coming}` need no quote: the number of the loop, the instruction that it executes, and in the
last half layer the one that the next loop executes. Data only, no tensor: the page has the same rules in JavaScript. A half
layer without a sentence is described by its formulas (`viewer/story.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from punchcard.card.layout import Layout
from punchcard.machines.display_values import UNREADABLE, DisplayValue, ValueKind, number_text

LEAST_WEIGHT = 0.25
"""A column takes from another if its weight there is at least this."""
WHOLE = 0.99
"""A column with such a weight is taken as it is."""
MOST_MOVES = 3
"""Moves that a sentence lists."""
UNLISTED = "a word that the program does not list"
_NAME = re.compile(r"\{(\w+)\}")
Comparison: TypeAlias = Literal["<=", ">=", "=="]


@dataclass(frozen=True)
class ValuePlace:
    """A column: that of the number `column`, or one that a head of this layer finds from there.

    head    the other column that `column` takes most from in this head, or `column` itself where it takes from no other
    gives   instead, the first other column that takes most from `column`
    """

    column: int
    head: int | None = None
    gives: bool = False


@dataclass(frozen=True)
class Quote:
    """A value in a sentence.

    place    the column
    rows     a row block or a part of one, read as a `DisplayValue` of this `kind`; empty: the column's name is quoted
    offset   is added to the number
    names    the number is that of a column, and the column's name is quoted
    before   as it was before the half layer; default: after it
    """

    place: ValuePlace
    rows: str = ""
    kind: ValueKind = "signed"
    offset: int = 0
    scale: int = 1
    names: bool = False
    before: bool = False
    height: int | None = None

    @property
    def value(self) -> DisplayValue | None:
        """What is read, in column 0."""
        if not self.rows:
            return None
        kind = "unsigned" if self.names else self.kind
        return DisplayValue("", "", self.rows, 0, kind=kind, offset=self.offset, scale=self.scale, height=self.height)

    @property
    def is_signed(self) -> bool:
        """Whether a word is read with its sign."""
        return bool(self.rows) and not self.names and self.kind == "signed"

    def plain(self, layout: Layout) -> dict[str, Any]:
        """As plain data for pages."""
        value = self.value
        return {"place": [self.place.column, self.place.head, self.place.gives], "names": self.names, "before": self.before,
                "value": None if value is None else value.plain(layout)}


class HeadMoves(NamedTuple):
    """The moves of a head as a quote: who takes from whom. A column that takes from several takes their average.

    idle   regions that nothing is taken from: what a head finds there is left out
    into   only columns of this region take; empty: all
    rows   what a text quotes of what is taken: its first `height` entries in these row blocks, added up, without zeros at
           the end
    """

    head: int
    idle: tuple[str, ...] = ()
    into: str = ""
    rows: tuple[str, ...] = ()
    height: int = 0

    def plain(self, layout: Layout) -> dict[str, Any]:
        """As plain data for pages."""
        regions = [*self.idle, *([self.into] if self.into else [])]
        spans = [[layout.region(name).start, layout.region(name).stop] for name in regions]
        return {"moves": self.head, "idle": spans[: len(self.idle)], "into": spans[-1] if self.into else None,
                "starts": [layout.rows(rows).start for rows in self.rows], "height": self.height}


class Condition(NamedTuple):
    """A quoted number compared with another number."""

    name: str
    comparison: Comparison
    number: int

    def holds(self, text: str) -> bool:
        """Whether the condition is true; a text that is not a number satisfies none."""
        try:
            found = int(text)
        except ValueError:
            return False
        return {"<=": found <= self.number, ">=": found >= self.number, "==": found == self.number}[self.comparison]


WARMS_UP = Condition("loop", "==", 0)
"""The loop before the first instruction, of a design that fetches at the end of a loop."""


@dataclass(frozen=True)
class Sentence:
    """A text with quotes. `cases` are other texts for the same half layer: the first whose condition holds is used."""

    text: str
    quotes: Mapping[str, Quote | HeadMoves] = field(default_factory=dict)
    cases: Sequence[tuple[Condition, str]] = ()

    def plain(self, layout: Layout) -> dict[str, Any]:
        """As plain data for pages."""
        return {"text": self.text, "cases": [[*condition, text] for condition, text in self.cases],
                "quotes": {name: quote.plain(layout) for name, quote in self.quotes.items()}}


Story: TypeAlias = Sequence[tuple[Sentence | None, Sentence | None]]
"""For each layer the sentence of its attention and of its ReLU layer, or None if the formulas tell it."""


class Scene(Protocol):
    """A half layer as it happened: what sentences are filled in from."""

    loop: int
    instruction: str | None
    coming: str | None

    def at(self, column: int, *, before: bool) -> Sequence[float]:
        """All entries of a column, before the half layer or after it."""

    def taken(self, head: int) -> Mapping[int, int]:
        """Who takes from whom: for each column the other column that it takes most from, if it takes from another."""

    def mixtures(self, head: int) -> Mapping[int, Mapping[int, float]]:
        """For each column that takes from another: what it takes from, and the weights there.

        Columns of less than `LEAST_WEIGHT` of the largest weight are left out.
        """

    def name(self, column: int) -> str:
        """What a column is called."""


def name(place: ValuePlace) -> Quote:
    """The name of a column."""
    return Quote(place)


def tell(sentence: Sentence, scene: Scene, layout: Layout) -> tuple[str, dict[str, str]]:
    """A sentence with its values, and the values by name."""
    found = {"loop": str(scene.loop), "instruction": scene.instruction or UNREADABLE, "coming": scene.coming or UNLISTED}
    for quoted, quote in sentence.quotes.items():
        found[quoted] = _moves(quote, scene, layout) if isinstance(quote, HeadMoves) else _quoted(quote, scene, layout)
    text = next((text for condition, text in sentence.cases if condition.holds(found[condition.name])), sentence.text)
    return _NAME.sub(lambda match: found[match[1]], text), found


def _quoted(quote: Quote, scene: Scene, layout: Layout) -> str:
    column = find(quote.place, scene)
    value = quote.value
    if value is None:
        return scene.name(column)
    entries = scene.at(column, before=quote.before)
    text = value.text(layout, lambda _: entries)
    if not quote.names or text == UNREADABLE:
        return text
    return scene.name(int(text)) if int(text) < layout.columns else text


def find(place: ValuePlace, scene: Scene) -> int:
    """The number of a column."""
    if place.head is None:
        return place.column
    taken = scene.taken(place.head)
    if place.gives:
        return min((target for target, source in taken.items() if source == place.column), default=place.column)
    return taken.get(place.column, place.column)


def _moves(quote: HeadMoves, scene: Scene, layout: Layout) -> str:
    idle = {column for region in quote.idle for column in range(*layout.region(region).indices(layout.columns))}
    into = range(*layout.region(quote.into).indices(layout.columns)) if quote.into else range(layout.columns)
    targets: dict[tuple[tuple[int, float], ...], list[int]] = {}
    for target, mixture in sorted(scene.mixtures(quote.head).items()):
        parts = tuple((source, 1.0 if weight >= WHOLE else float(f"{weight:.3g}")) for source, weight in mixture.items()
                      if source not in idle)
        if parts and target in into:
            targets.setdefault(parts, []).append(target)
    told = [f"{_together(each, scene.name)} {'takes' if len(each) == 1 else 'take'} {_taken(quote, parts, scene, layout)}"
            for parts, each in targets.items()]
    more = len(told) - MOST_MOVES
    return (", ".join(told[:MOST_MOVES]) or "nothing moves") + (f" and {more} more" if more > 0 else "")


def _together(columns: Sequence[int], called: Callable[[int], str]) -> str:
    if len(columns) <= 2:
        return " and ".join(map(called, columns))
    return f"{called(columns[0])} and {len(columns) - 1} more columns"


def _taken(quote: HeadMoves, parts: Sequence[tuple[int, float]], scene: Scene, layout: Layout) -> str:
    """`x = 4 2`, `0.38 of x`, `the average of x and y = 3 1`"""
    sources = _together([source for source, _ in parts], scene.name)
    if len(parts) == 1 and parts[0][1] < WHOLE:
        return f"{number_text(parts[0][1])} of {sources}"
    return f"{sources if len(parts) == 1 else f'the average of {sources}'}{_numbers(quote, parts, scene, layout)}"


def _numbers(quote: HeadMoves, parts: Sequence[tuple[int, float]], scene: Scene, layout: Layout) -> str:
    """` = 4 2`"""
    if not quote.rows:
        return ""
    starts = [layout.rows(rows).start for rows in quote.rows]
    whole = sum(weight for _, weight in parts)
    found = [0.0] * quote.height
    for source, weight in parts:
        entries = scene.at(source, before=True)
        found = [total + weight / whole * sum(entries[start + i] for start in starts) for i, total in enumerate(found)]
    while len(found) > 1 and found[-1] == 0:
        found.pop()
    return f" = {' '.join(map(number_text, found))}"
