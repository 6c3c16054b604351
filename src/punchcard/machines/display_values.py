"""What a view shows of a card and a program: values, where they are and how they are read; the lines of the source.

Data only, no tensor.

A machine says it once (`Machine.display_values`). Python, the page and the terminal all read values by the rules below:

    signed, unsigned   ±1 bits, the lowest first; "–" where an entry is not within 1/4 of -1 or 1, or for unsigned below 0.
                       An unsigned number that has a label is shown as that
    numbers            real numbers to six digits; rows of a matrix are separated by " ; "
    one-hot            the label of the one entry above 1/2, or its number; "–" where not exactly one is
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Literal, NamedTuple, TypeAlias

from punchcard.card.layout import Layout
from punchcard.words.word import as_signed

ValueKind: TypeAlias = Literal["signed", "unsigned", "numbers", "one-hot"]
UNREADABLE = "–"
DIGITS = 6
MOST_BITS = 64
MOST_COLUMNS = 256
"""Of a region of larger size the layout alone names no values: a person could not read them."""
_LINE_END = re.compile(r"\r\n|\r|\n")
EntriesAt: TypeAlias = Callable[[int], Sequence[float]]
"""All entries of a column, by its number."""


@dataclass(frozen=True)
class Pending:
    """A word on its way, of a machine whose results lag behind.

    Where the bits at `address` in the column `column` are those at `own` in a value's column, the value is at
    `rows` in `column`, and not in its own place.
    """

    address: str
    own: str
    rows: str
    column: int


@dataclass(frozen=True)
class DisplayValue:
    """A value and its place on the card.

    name, group   what people call it, and what it belongs to: "a" of "memory"
    rows          a row block or a part of one; `height` are its first so many rows, where they are not all
    column        the first of its `columns`
    labels        of a one-hot value; of an unsigned number by its value, an empty one for none
    scale         an unsigned number is shown times this: an address may be held without its lowest bits
    offset        is added to a number: a program counter may be stored as the address after it. An unsigned number below 0
                  is shown as "–", as no instruction has been fetched yet
    wraps         but it is counted modulo 2^bits, unless the rows hold 0
    plus          rows that are added entry by entry: of a column that is written in two steps one of both is 0
    """

    name: str
    group: str
    rows: str
    column: int
    columns: int = 1
    kind: ValueKind = "signed"
    labels: tuple[str, ...] = ()
    height: int | None = None
    offset: int = 0
    wraps: bool = False
    scale: int = 1
    plus: str = ""
    pending: Pending | None = None

    def plain(self, layout: Layout) -> dict[str, Any]:
        """The value and its place by numbers, as plain data for pages and files."""
        start, rows = _span(layout, self.rows)
        pending = None if self.pending is None else {
            "address": _span(layout, self.pending.address), "own": _span(layout, self.pending.own),
            "rows": _span(layout, self.pending.rows), "column": self.pending.column}
        return {
            "name": self.name, "group": self.group, "start": start, "rows": min(rows, self.height or rows),
            "column": self.column, "columns": self.columns, "kind": self.kind, "labels": list(self.labels),
            "offset": self.offset, "wraps": self.wraps, "scale": self.scale,
            "plus": layout.rows(self.plus).start if self.plus else None, "pending": pending,
        }

    def text(self, layout: Layout, at: EntriesAt) -> str:
        """The value as people read it, from the entries of columns."""
        column, rows = self.column, self.rows
        if self.pending is not None and self._is_pending(self.pending, layout, at):
            column, rows = self.pending.column, self.pending.rows
        columns = [self._entries(layout, at(number), rows) for number in range(column, column + self.columns)]
        if self.kind == "numbers":
            return " ; ".join(" ".join(map(number_text, row)) for row in zip(*columns, strict=True))
        if self.kind == "one-hot":
            return ", ".join(self._label(entries) for entries in columns)
        return ", ".join(self._integer(entries) for entries in columns)

    def _entries(self, layout: Layout, column: Sequence[float], rows: str) -> list[float]:
        found = list(column[layout.rows(rows)])
        if self.plus:
            found = [a + b for a, b in zip(found, column[layout.rows(self.plus)], strict=True)]
        return found[: self.height]

    def _is_pending(self, pending: Pending, layout: Layout, at: EntriesAt) -> bool:
        wanted = bits_of(at(pending.column)[layout.rows(pending.address)])
        return wanted is not None and wanted == bits_of(at(self.column)[layout.rows(pending.own)])

    def _integer(self, entries: Sequence[float]) -> str:
        number = bits_of(entries)
        if number is None:
            return UNREADABLE
        if self.kind == "signed":
            return str(as_signed(number + self.offset, len(entries)))
        found = self.unsigned(number, len(entries))
        if found is None:
            return UNREADABLE
        return (found < len(self.labels) and self.labels[found]) or str(found * self.scale)

    def unsigned(self, number: int, bits: int) -> int | None:
        """What a number on the card means, or None if it means nothing yet."""
        found = number + self.offset
        return found if found >= 0 else found % (1 << bits) if self.wraps and number else None

    def _label(self, entries: Sequence[float]) -> str:
        set_ = [i for i, entry in enumerate(entries) if entry > 0.5]
        if len(set_) != 1:
            return UNREADABLE
        return self.labels[set_[0]] if set_[0] < len(self.labels) else str(set_[0])


def _span(layout: Layout, rows: str) -> tuple[int, int]:
    place = layout.rows(rows)
    return place.start, place.stop - place.start


def bits_of(entries: Sequence[float]) -> int | None:
    """The number that ±1 bits make, the lowest first; None where an entry is not a bit."""
    if any(not abs(abs(entry) - 1) < 0.25 for entry in entries):
        return None
    return sum(1 << i for i, entry in enumerate(entries) if entry > 0)


def number_text(number: float) -> str:
    """A number to six digits, as a browser writes `Number(x.toPrecision(6))`."""
    if number != number or number in (float("inf"), float("-inf")):
        return {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(number, "NaN")
    rounded = Context(prec=DIGITS, rounding=ROUND_HALF_UP).create_decimal(Decimal(number)).normalize()
    if not rounded:
        return "0"
    return f"{rounded:f}" if -7 < rounded.adjusted() < 21 else f"{rounded:e}"


def values_of_layout(layout: Layout, labels: Mapping[str, Sequence[str]]) -> list[DisplayValue]:
    """What a layout alone says: every block of ±1 bits and of real numbers, part by part, in every column that holds it.

    `labels` are of unsigned numbers, by the rows that hold them.
    """
    found = []
    for region in layout.regions:
        place = layout.region(region.name)
        for column in range(place.start, place.stop) if region.size <= MOST_COLUMNS else ():
            for block in layout.blocks:
                content, group = block.holds.get(region.name), layout.column_name(column)
                for name in [f"{block.name}.{part}" for part in block.parts] or [block.name]:
                    rows = layout.rows(name)
                    if content in ("real", "fixed"):
                        found.append(DisplayValue(name, group, name, column, kind="numbers"))
                    elif content == "bits" and rows.stop - rows.start <= MOST_BITS:
                        called = tuple(labels.get(name, ()))
                        found.append(DisplayValue(name, group, name, column, kind="unsigned", labels=called))
    return found


@dataclass(frozen=True)
class RealVariable:
    """A named matrix of real numbers. It is punched into the first block of rows, and is the sum of all of them.

    A column that has just been written may wait in other rows than the ones it was punched in, so there may be several.
    """

    columns: slice
    rows: tuple[slice, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """As tensors have it: a matrix of one column is a vector, one of a single number is a number."""
        height, width = self.rows[0].stop - self.rows[0].start, self.columns.stop - self.columns.start
        return () if (height, width) == (1, 1) else (height,) if width == 1 else (height, width)


class ListedInstruction(NamedTuple):
    """An instruction.

    number   its program counter
    line     its line in the source, from 1, or None if unknown
    text     what people read
    word     its encoding, as people write it; empty: it has none
    symbol   what its address is called, where a name begins there
    """

    number: int
    line: int | None
    text: str
    word: str = ""
    symbol: str = ""


class Listing(NamedTuple):
    """The lines of a program and its instructions, in the order of their numbers."""

    lines: Sequence[str]
    instructions: Sequence[ListedInstruction] = ()


def lines_of(text: str) -> list[str]:
    """The lines of a source, as languages and compilers count them: a form feed, say, ends none."""
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]
