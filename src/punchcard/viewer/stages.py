"""The stages of one loop: the card before each layer, after its attention, and after the last layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from punchcard.card.formats import AnyArray, as_array
from punchcard.card.layout import Card
from punchcard.card.packed import PackedCard

Columns = NDArray[np.intp]
SMALL = 512
"""Cards of so many columns are computed in full."""


@dataclass(frozen=True)
class LoopStages:
    """One loop in some columns: each of the `stages` is a matrix of all rows and these columns."""

    columns: Columns
    stages: Sequence[AnyArray]

    def only(self, columns: Columns) -> LoopStages:
        """The same in fewer columns."""
        places = np.searchsorted(self.columns, columns)
        return LoopStages(columns, [stage[:, places] for stage in self.stages])


def entries_of(card: Card, columns: Columns | None = None) -> AnyArray:
    """All rows of some columns of a card, by default of all."""
    if isinstance(card, PackedCard):
        return card.dense() if columns is None else card.columns(columns)
    found = as_array(card)
    return found if columns is None else found[:, columns]


def differing_columns(one: Card, other: Card) -> Columns:
    """The columns in which two cards of one layout differ."""
    if isinstance(one, PackedCard) and isinstance(other, PackedCard):
        differs = np.zeros(one.layout.columns, bool)
        for name, field in one.fields.items():
            if field is not other.fields[name]:
                unequal = field != other.fields[name]
                differs |= unequal if unequal.ndim == 1 else unequal.any(axis=1)
        return np.flatnonzero(differs)
    return np.flatnonzero((entries_of(one) != entries_of(other)).any(axis=0))
