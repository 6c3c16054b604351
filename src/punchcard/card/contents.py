"""Facts about rows that are more than bits: constants of each column, one number for a whole region, contents in two blocks.

They say of what kind the entries are, where `facts` says which numbers stand there. A machine with real numbers needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from punchcard.errors import LayoutError

if TYPE_CHECKING:
    from punchcard.card.layout import Card, Layout


@dataclass(frozen=True, eq=False)
class Constants:
    """A block holds these numbers in a region, rows by columns, and never changes there; one column is for all."""

    rows: str
    region: str
    values: Any

    @property
    def about(self) -> str:
        return f"{self.rows} in {self.region} holds its constants"

    def truths(self, layout: Layout, card: Card) -> Any:
        """In which columns it is so."""
        return (layout.array(card, self.rows, self.region) == self.values).all(-2)


@dataclass(frozen=True)
class Uniform:
    """A block of bits holds one number in all columns of a region."""

    rows: str
    region: str

    @property
    def about(self) -> str:
        return f"{self.rows} is the same in all columns of {self.region}"

    def truths(self, layout: Layout, card: Card) -> Any:
        """In which columns it is that of the first."""
        entries = layout.array(card, self.rows, self.region)
        return (entries == entries[..., :1]).all(-2)


@dataclass(frozen=True)
class Contents:
    """What a column of a region holds stands in one of two blocks; the other is 0 in all its rows. There may be one only.

    With `parts` the first rows of the sum are ±1 bits, and the others are 0; conditions know them as `name.part`.
    Without, the sum is real numbers; that they are within the blocks' limit is a program's promise.
    """

    name: str
    region: str
    blocks: tuple[str, ...]
    parts: Mapping[str, int] = field(default_factory=dict)

    @property
    def about(self) -> str:
        kind = "bits" if self.parts else "numbers"
        rest = ", and the other is 0" if len(self.blocks) > 1 else ""
        return f"{' or '.join(self.blocks)} in {self.region} holds {kind}{rest}"

    @property
    def size(self) -> int:
        """How many rows are bits."""
        return sum(self.parts.values())

    def places(self) -> dict[str, slice]:
        """The rows of each part."""
        found, start = {}, 0
        for part, size in self.parts.items():
            found[f"{self.name}.{part}"] = slice(start, start + size)
            start += size
        return found

    def truths(self, layout: Layout, card: Card) -> Any:
        """In which columns it is so."""
        held = [layout.array(card, block, self.region) for block in self.blocks]
        apart = sum((one != 0).any(-2) for one in held) <= 1
        content = np.sum(held, axis=0)
        if self.parts:
            return apart & (np.abs(content[..., : self.size, :]) == 1).all(-2) & (content[..., self.size :, :] == 0).all(-2)
        return apart & np.isfinite(content).all(-2)


@dataclass(frozen=True)
class CopiesContents:
    """In every column of a region, a block of bits shows the contents of the column that the number at `by` names."""

    rows: str
    region: str
    contents: str
    by: str

    @property
    def about(self) -> str:
        return f"{self.rows} in {self.region} is the {self.contents} that {self.by} names"

    def of(self, layout: Layout) -> Contents:
        """The contents that it shows."""
        return next(fact for fact in layout.facts_given if isinstance(fact, Contents) and fact.name == self.contents)

    def check(self, layout: Layout) -> None:
        """Refuse contents that are not there, or a block with other parts than they have."""
        if not any(isinstance(fact, Contents) and fact.name == self.contents for fact in layout.facts_given):
            raise LayoutError(f"{self.about}: no column's contents are called {self.contents!r}")
        block, parts = layout.place(self.rows).block, self.of(layout).parts
        if block.name != self.rows or list(block.parts.items()) != list(parts.items()):
            raise LayoutError(f"{self.about}: {self.rows!r} must have the parts of {self.contents!r}, in their order: "
                              + ", ".join(f"{part} {size}" for part, size in parts.items()))

    def truths(self, layout: Layout, card: Card) -> Any:
        """In which columns it is so."""
        of, found = self.of(layout), layout.array(card, self.rows, self.region)
        span = layout.region(of.region)
        held = np.sum([layout.array(card, block, of.region) for block in of.blocks], axis=0)[..., : found.shape[-2], :]
        named = np.asarray(layout.numbers(card, self.by, self.region)) - span.start
        inside = (named >= 0) & (named < span.stop - span.start)
        shown = np.take_along_axis(held, np.where(inside, named, 0)[..., None, :], axis=-1)
        return inside & (found == shown).all(-2)


AnyContent: TypeAlias = Constants | Uniform | Contents | CopiesContents


def held_numbers(layout: Layout, card: Card, rows: str, region: str) -> Any:
    """The numbers at some rows of a region, or at a part of its columns' contents."""
    for fact in layout.facts:
        if isinstance(fact, Contents) and fact.region == region and rows in fact.places():
            place = fact.places()[rows]
            content = sum(layout.array(card, block, region)[..., place, :] for block in fact.blocks)
            weights = 2 ** np.arange(place.stop - place.start, dtype=np.int64)
            return np.tensordot(weights, np.moveaxis(np.asarray(content) > 0, -2, 0), axes=1)
    return layout.numbers(card, rows, region)


def held_size(layout: Layout, rows: str) -> int:
    """How many bits the numbers at some rows have."""
    for fact in layout.facts_given:
        if isinstance(fact, Contents) and rows in fact.places():
            return fact.parts[rows.partition(".")[2]]
    return layout.place(rows).size
