"""What of a card a picture shows: rows by block, columns by region, and the rest folded.

A card may have thousands of columns, and most of them hold what an empty column of their region holds. A picture shows the
others, up to a number, and says how many are folded. Row blocks that are 0 wherever one looks are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from punchcard.card.formats import AnyArray, as_array
from punchcard.card.layout import Card, Layout, Region, RowBlock
from punchcard.card.packed import PackedCard
from punchcard.errors import PunchcardError
from punchcard.viewer.stages import entries_of

FEW = 12
"""Columns of a region that is always shown whole."""
MOST = 48
"""Default number of columns of a picture."""
LOOKED_AT = 1 << 14
"""Columns of a region among which used ones are looked for."""


@dataclass(frozen=True)
class Band:
    """A block of rows, or a part of one, that is shown."""

    name: str
    entries: AnyArray
    """Rows by shown columns."""
    other: AnyArray
    """The same of the card beside."""
    scaled: AnyArray
    """The entries from -1 to 1."""
    scale: float = 1.0
    """The largest number that has the full colour."""


@dataclass(frozen=True)
class ShownColumns:
    """The shown columns of a region, and how many of it are folded."""

    region: Region
    columns: tuple[int, ...]
    folded: int


@dataclass(frozen=True)
class CardExcerpt:
    """The shown part of a card."""

    bands: tuple[Band, ...]
    groups: tuple[ShownColumns, ...]

    @property
    def columns(self) -> tuple[int, ...]:
        """Their numbers on the card."""
        return tuple(column for group in self.groups for column in group.columns)


def excerpt(
    layout: Layout, card: Card, *, most: int = MOST, keep: Collection[int] = (), rows: Sequence[str] | None = None,
    beside: Card | None = None,
) -> CardExcerpt:
    """Choose what to show of a card: at most about `most` columns, those of `keep` first; row blocks by name, or all.

    `beside` is another card, such as the one before: a block that holds something on one of the two is shown.
    """
    layout.check(card)
    if card.ndim != 2:
        raise PunchcardError(f"a picture is of one card, not of a batch of shape {tuple(card.shape)}: choose one, cards[0]")
    if most < 1:
        raise PunchcardError(f"columns={most}: a picture has at least one")
    groups = _groups(layout, card, most, keep)
    columns = np.array([column for group in groups for column in group.columns], np.intp)
    here, there = (entries_of(some, columns).astype(np.float64) for some in (card, card if beside is None else beside))
    bands = []
    for name in [block.name for block in layout.blocks] if rows is None else rows:
        entries, other = here[layout.rows(name)], there[layout.rows(name)]
        if rows is not None or entries.any() or other.any():
            bands.append(_band(name, layout.place(name).block, entries, other, groups))
    return CardExcerpt(tuple(bands), groups)


def _band(name: str, block: RowBlock, entries: AnyArray, other: AnyArray, groups: Sequence[ShownColumns]) -> Band:
    """Bits have the full colour. Real numbers are scaled by the largest of their region."""
    scales = []
    for group, first in zip(groups, np.cumsum([0, *(len(group.columns) for group in groups)]), strict=False):
        here = slice(first, first + len(group.columns))
        real = block.holds.get(group.region.name) in ("real", "fixed")
        largest = max(float(np.abs(some[:, here]).max(initial=0)) for some in (entries, other)) if real else 1.0
        scales += [largest or 1.0] * len(group.columns)
    return Band(name, entries, other, np.clip(entries / np.array(scales), -1, 1), max(scales, default=1.0))


def _groups(layout: Layout, card: Card, most: int, keep: Collection[int]) -> tuple[ShownColumns, ...]:
    """The columns of each region: small ones whole, of the others those to keep and then the first that are used."""
    wanted: dict[str, list[int]] = {}
    large = []
    for region in layout.regions:
        place = layout.region(region.name)
        if region.size <= min(FEW, most):
            wanted[region.name] = list(range(place.start, place.stop))
        else:
            wanted[region.name] = sorted({column for column in keep if place.start <= column < place.stop})
            large.append(region)
    left = max(len(large), most - sum(map(len, wanted.values())))
    for number, region in enumerate(large):  # what one region does not need is the next one's
        share = max(1, left // (len(large) - number))
        here = wanted[region.name]
        more = [column for column in _used(layout, card, region) if column not in here][:share]
        wanted[region.name] = sorted([*here, *more]) or [layout.region(region.name).start]
        left -= len(more)
    return tuple(ShownColumns(region, tuple(wanted[region.name]), region.size - len(wanted[region.name]))
                 for region in layout.regions)


def _used(layout: Layout, card: Card, region: Region) -> list[int]:
    """The columns of a region that hold something else than most of them, in a block that does not number them."""
    place = layout.region(region.name)
    columns = slice(place.start, min(place.stop, place.start + LOOKED_AT))
    used = np.zeros(columns.stop - columns.start, dtype=bool)
    for block in layout.blocks:
        if isinstance(card, PackedCard):
            if block.holds.get(region.name) in (None, "one"):
                continue
            entries = card.entries(block.name, region.name, columns)
        else:
            entries = as_array(card)[layout.rows(block.name), columns]
        _, which, counts = np.unique(entries, axis=1, return_inverse=True, return_counts=True)
        if counts.max() > 1 and len(counts) > 1:  # where no two are alike they are addresses
            used |= which.reshape(-1) != counts.argmax()
    return [columns.start + int(offset) for offset in np.flatnonzero(used)]
