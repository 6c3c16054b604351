"""Where a card's rows and columns are in a picture, and the holes of a card there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from docs.draw.svg import EMPTY, FRESH, INK, REGIONS, box
from torch import Tensor

from punchcard.card.layout import Layout


def short_name(column: str) -> str:
    """The name of a column below the name of its region: `instruction 2` is `2`."""
    return column.removeprefix("instruction ").removeprefix("constant ")


class Places:
    """A column's middle, a region's span, a block's span.

    `widths` are those of a column, by region; `wide` is how wide a hole is, in heights of a row.
    """

    def __init__(self, layout: Layout, left: float, top: float, widths: Mapping[str, float], row: float, gap: float,
                 wide: float = 1.8) -> None:
        self.layout, self.top, self.row, self.wide = layout, top, row, wide * row
        self.columns: list[float] = []
        self.regions: dict[str, tuple[float, float]] = {}
        self.rows: list[float] = []
        self.blocks: dict[str, tuple[float, float]] = {}
        x, y = left, top
        for region in layout.regions:
            width = widths[region.name]
            self.columns += [x + width * (i + 0.5) for i in range(region.size)]
            self.regions[region.name] = x, x + width * region.size
            x += width * region.size + gap
        for block in layout.blocks:
            self.rows += [y + row * i for i in range(block.size)]
            self.blocks[block.name] = y, y + row * block.size
            y += row * block.size + gap
        self.right, self.bottom = x - gap, y

    def tints(self) -> Iterator[str]:
        """A band for each block and region, in the region's colour where the layout says that it holds something."""
        for block in self.layout.blocks:
            top, bottom = self.blocks[block.name]
            for region in self.layout.regions:
                left, right = self.regions[region.name]
                tint = REGIONS[region.name] if region.name in block.holds else EMPTY
                yield box(left, top - 1, right - left, bottom - top + 2, tint, "opacity='.5' rx='3'")

    def hole(self, row: int, column: int, value: float, more: str = "", *, colour: str = INK) -> str:
        """A hole for 1, a mark for -1."""
        x, y, size = self.columns[column], self.rows[row], self.row
        if value > 0:
            return box(x - self.wide / 2, y + 0.15 * size, self.wide, 0.7 * size, colour, f"rx='{0.2 * size:g}' {more}")
        opacity = 0.35 if colour == INK else 1
        width = 0.56 * self.wide
        return box(x - width / 2, y + 0.45 * size, width, 0.1 * size, colour, f"opacity='{opacity:g}' {more}")

    def holes(self, card: Tensor, before: Tensor | None = None) -> Iterator[str]:
        """What is on a card, nothing for 0. With the card before: what is new has another colour."""
        for row, column in card.nonzero().tolist():
            fresh = before is not None and bool(card[row, column] != before[row, column])
            yield self.hole(row, column, float(card[row, column]), colour=FRESH if fresh else INK)
