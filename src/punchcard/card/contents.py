"""What a fact of a layout is, and those about rows that are more than bits, which machines with real numbers need.

A block may hold constants, or one number in all columns of a region; what a column holds may be in one of two blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from punchcard.card.encoding import Numbers, as_numbers, pack_bits
from punchcard.card.formats import AnyArray
from punchcard.errors import LayoutError

if TYPE_CHECKING:
    from punchcard.card.layout import Card, Layout


Truths: TypeAlias = npt.NDArray[np.bool_]
"""A truth for each column of a region: (..., columns)."""


class AnyFact(ABC):
    """What a layout declares of the columns of a region."""

    region: str
    rows: str
    says: ClassVar[str]
    """What it says in words, by its own fields."""

    @property
    def about(self) -> str:
        """What it says, in words."""
        return self.says.format(self)

    def check(self, layout: Layout) -> None:
        """Refuse a fact that this layout cannot have."""
        layout.region(self.region)

    @abstractmethod
    def truths(self, layout: Layout, card: Card) -> Truths:
        """Whether it holds, in each column of its region."""

    def mentions(self, layout: Layout) -> set[str]:
        """The rows of its region that it is about."""
        return {self.rows}


@dataclass(frozen=True, eq=False)
class Constants(AnyFact):
    """A block holds these numbers in a region, rows by columns, and never changes there; one column is for all."""

    rows: str
    region: str
    values: AnyArray
    says: ClassVar[str] = "{0.rows} in {0.region} holds its constants"

    def truths(self, layout: Layout, card: Card) -> Truths:
        return _everywhere(layout.array(card, self.rows, self.region) == self.values)


@dataclass(frozen=True)
class Uniform(AnyFact):
    """A block of bits holds one number in all columns of a region."""

    rows: str
    region: str
    says: ClassVar[str] = "{0.rows} is the same in all columns of {0.region}"

    def truths(self, layout: Layout, card: Card) -> Truths:
        entries = layout.array(card, self.rows, self.region)
        return _everywhere(entries == entries[..., :1])


@dataclass(frozen=True)
class Contents(AnyFact):
    """What a column of a region holds is in one of two blocks, and the other is 0 in all its rows; or there is one block.

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

    def truths(self, layout: Layout, card: Card) -> Truths:
        held = [layout.array(card, block, self.region) for block in self.blocks]
        apart: Truths = np.sum([(one != 0).any(-2) for one in held], axis=0) <= 1
        content: AnyArray = np.sum(held, axis=0)
        if self.parts:
            apart &= _everywhere(np.abs(content[..., : self.size, :]) == 1)
            return apart & _everywhere(content[..., self.size :, :] == 0)
        return apart & _everywhere(np.isfinite(content))

    def mentions(self, layout: Layout) -> set[str]:
        return set(self.blocks)


@dataclass(frozen=True)
class CopiesContents(AnyFact):
    """In every column of a region, a block of bits holds the contents of the column that the number at `by` names."""

    rows: str
    region: str
    contents: str
    by: str
    says: ClassVar[str] = "{0.rows} in {0.region} is the {0.contents} that {0.by} names"

    def of(self, layout: Layout) -> Contents:
        """The contents that are copied."""
        found = next((fact for fact in layout.contents if fact.name == self.contents), None)
        if found is None:
            raise LayoutError(f"{self.about}: no column's contents are called {self.contents!r}")
        return found

    def check(self, layout: Layout) -> None:
        block, parts = layout.place(self.rows).block, self.of(layout).parts
        if block.name != self.rows or list(block.parts.items()) != list(parts.items()):
            raise LayoutError(f"{self.about}: {self.rows!r} must have the parts of {self.contents!r}, in their order: "
                              + ", ".join(f"{part} {size}" for part, size in parts.items()))

    def truths(self, layout: Layout, card: Card) -> Truths:
        of, found = self.of(layout), layout.array(card, self.rows, self.region)
        span = layout.region(of.region)
        held = np.sum([layout.array(card, block, of.region) for block in of.blocks], axis=0)[..., : found.shape[-2], :]
        named = np.asarray(layout.numbers(card, self.by, self.region)) - span.start
        inside = (named >= 0) & (named < span.stop - span.start)
        named_one = np.take_along_axis(held, np.where(inside, named, 0)[..., None, :], axis=-1)
        return np.asarray(inside & _everywhere(found == named_one))

    def mentions(self, layout: Layout) -> set[str]:
        return {self.rows, self.by}


def _everywhere(entries: Truths) -> Truths:
    """In which columns it is so in all rows."""
    return np.asarray(entries.all(-2))


def _contents_at(layout: Layout, region: str, rows: str) -> Contents | None:
    """The contents of a region's columns that have these rows as a part, or None."""
    return next((fact for fact in layout.contents if fact.region == region and rows in fact.places()), None)


def word_size(layout: Layout, rows: str, region: str) -> int:
    """How many bits the numbers at some rows of a region have, in a block or in its columns' contents."""
    contents = _contents_at(layout, region, rows)
    if contents is not None:
        return contents.parts[rows.partition(".")[2]]
    place = layout.place(rows)
    if place.block.holds.get(region) != "bits":
        raise LayoutError(f"{rows!r} holds no bits in {region!r}")
    return place.size


def read_numbers(layout: Layout, card: Card, region: str, rows: str) -> Numbers:
    """The numbers at some rows of a region, or at a part of its columns' contents."""
    contents = _contents_at(layout, region, rows)
    if contents is None:
        return layout.numbers(card, rows, region)
    entries = sum(layout.array(card, block, region)[..., contents.places()[rows], :] for block in contents.blocks)
    return as_numbers(pack_bits(np.asarray(entries) > 0), word_size(layout, rows, region))
