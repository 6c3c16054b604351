"""What a card must hold so that the code applies to it: what its layout declares, and what the code took from the card.

A loop that the code makes keeps these facts: what it stores is checked. They are looked at when a card comes from
elsewhere: when a run begins, after a port, and after a loop that a slower engine made.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from punchcard.engines.lowered.analysis.columns import Columns, limit_of
from punchcard.engines.lowered.graph.nodes import Array


@dataclass(frozen=True)
class Bounds:
    """Rows of a region whose entries have sizes from `least` to `most`."""

    rows: slice
    columns: slice
    least: float
    most: float


class Facts:
    """The facts about the cards of one machine."""

    def __init__(self, columns: Columns, read: set[int], card: Array) -> None:
        layout = columns.layout
        self.sizes: list[Bounds] = []
        self.static: list[tuple[slice, slice, Array]] = []
        for region in layout.regions:
            place = layout.region(region.name)
            ends: list[tuple[float, float]] = [(0.0, 0.0)] * layout.width
            static = set() if region.name in columns.busy else set(read)
            for block in layout.blocks:
                content, rows = block.holds.get(region.name), layout.rows(block.name)
                if content in ("one", "fixed"):
                    static |= set(range(rows.start, rows.stop))
                most = 0.0 if content is None else limit_of(block, content)
                ends[rows] = [(1.0 if content in ("bits", "one") else 0.0, most)] * block.size
            for (least, most), run in groupby(range(layout.width), key=lambda row: ends[row]):
                self.sizes.append(Bounds(_slice(list(run)), place, least, most))
            for _, rows_of in groupby(enumerate(sorted(static)), key=lambda item: item[1] - item[0]):
                part = _slice([row for _, row in rows_of])
                self.static.append((part, place, card[part, place].copy()))
        self.alike = sorted(columns.shared_rows())
        self.busy = [c for g in columns.groups for c in range(g.start, g.stop)]
        self.busy_least, self.busy_most = (np.zeros((layout.width, len(self.busy))) for _ in range(2))
        for number, column in enumerate(self.busy):
            for piece in self.sizes:
                if piece.columns.start <= column < piece.columns.stop:
                    self.busy_least[piece.rows, number] = piece.least
                    self.busy_most[piece.rows, number] = piece.most

    def hold(self, card: npt.NDArray[Any], *, everywhere: bool = True) -> bool:
        """Whether a card, rows by columns, is one for which the code was made; or at least its busy columns are."""
        if not everywhere:
            size = np.abs(card[:, self.busy])
            return bool(np.all((size >= self.busy_least) & (size <= self.busy_most))) and self._agree(card)
        for piece in self.sizes:
            size = np.abs(card[piece.rows, piece.columns])
            if not (bool(np.all(size >= piece.least)) and bool(np.all(size <= piece.most))):
                return False
        if any(not np.array_equal(card[rows, columns], values) for rows, columns, values in self.static):
            return False
        return self._agree(card)

    def _agree(self, card: npt.NDArray[Any]) -> bool:
        """Whether busy columns hold the same where the code takes that for granted."""
        if len(self.busy) == 1:
            return True
        alike = card[np.ix_(self.alike, self.busy)]
        return bool(np.all(alike == alike[:, :1]))


def _slice(rows: list[int]) -> slice:
    return slice(rows[0], rows[-1] + 1)
