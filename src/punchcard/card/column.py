"""A column's words: what the predicate of a fact is written with, and its truths on a card.

    Fact("scratchpad", lambda column: column["halted"].equals(1) | column.names(column["counter"], "instructions"),
         "the program counter is that of an instruction, unless the machine has halted")

The same predicate is evaluated on cards, with NumPy, and in proofs, with z3.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from punchcard.card.contents import Truths, read_numbers, word_size
from punchcard.card.encoding import Words, pointer_bits
from punchcard.errors import LayoutError
from punchcard.words.renderer import evaluate_arrays
from punchcard.words.word import Word, any_of, variable, variables_of

if TYPE_CHECKING:
    from punchcard.card.layout import Card, Layout

OWN_NUMBER = "(column)"
"""The name of the variable that is a column's own number; no row block has it."""


class ColumnWords:
    """The words of any column of a region, as variables. `offset`: which column it is, counted from the region's first."""

    def __init__(self, layout: Layout, region: str, offset: int | None = None) -> None:
        self._layout, self._region, self._offset = layout, region, offset

    def __getitem__(self, rows: str) -> Word:
        """The bits at a block's rows, or at a part, as an unsigned number."""
        return variable(rows, word_size(self._layout, rows, self._region))

    @property
    def offset(self) -> int:
        """Which column of its region it is, where the predicate is made for each."""
        if self._offset is None:
            raise LayoutError("a predicate that depends on the column's offset: declare the fact with each=True")
        return self._offset

    @property
    def number(self) -> Word:
        """The column's own number on the card."""
        return variable(OWN_NUMBER, pointer_bits(self._layout.columns))

    def own_number(self, size: int) -> Word:
        """The same, modulo 2^size."""
        number = self.number
        return number.extend(size) if size > number.size else number[:size]

    def names(self, pointer: Word, *regions: str) -> Word:
        """Whether a number is that of a column of one of these regions."""
        return any_of(*(pointer.at_least(span.start) & pointer.less(span.stop)
                        for span in map(self._layout.region, regions)))

    def spans(self, first: Word, count: Word, *regions: str) -> Word:
        """Whether `count` columns from a number on belong to one of these regions; no columns do."""
        size = max(first.size, count.size, pointer_bits(self._layout.columns)) + 2  # no sum is cut, and no end
        begin, end = first.extend(size), first.extend(size) + count.extend(size)
        return any_of(count.equals(0), *(begin.at_least(span.start) & end.less(span.stop + 1)
                                         for span in map(self._layout.region, regions)))


Predicate: TypeAlias = Callable[[ColumnWords], Word]
"""What a column's words must satisfy: a word of one bit."""


def rows_of(condition: Word) -> set[str]:
    """The rows that a condition is about."""
    return {str(name) for name in variables_of(condition) if name != OWN_NUMBER}


class _Numbers(dict[Hashable, Words]):
    """The numbers at rows of a region's columns, or of one of them, read when they are asked for."""

    def __init__(self, layout: Layout, card: Card, region: str, columns: slice) -> None:
        place = layout.region(region)
        super().__init__({OWN_NUMBER: np.arange(place.start, place.stop, dtype=np.uint64)[columns]})
        self._read = partial(read_numbers, layout, card, region)
        self._columns = columns

    def __missing__(self, rows: Hashable) -> Words:
        self[rows] = found = self._read(str(rows))[..., self._columns].astype(np.uint64)
        return found


def truths(condition: Word, layout: Layout, card: Card, region: str, offset: int | None = None) -> Truths:
    """Whether a condition holds, in each column of a region, or in the one with this offset."""
    columns = slice(None) if offset is None else slice(offset, offset + 1)
    return np.atleast_1d(evaluate_arrays(condition, _Numbers(layout, card, region, columns)) != 0)
