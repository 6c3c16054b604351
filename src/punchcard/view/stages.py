"""The stages of one loop: the card before each layer, after its attention, and after the last layer.

A small card is computed in full, as the dense engine computes it: with torch if numbers are real, and with NumPy if no sum
is rounded, so that the order of a sum makes no difference and torch need not be imported. A large card is computed in some
columns only (`column_subset.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from punchcard.card.formats import AnyArray, as_array
from punchcard.card.layout import Card
from punchcard.card.packed import PackedCard
from punchcard.transformer import equation
from punchcard.transformer.weights import Weights

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


def stages_in_full(weights: Weights, card: AnyArray, *, exact: bool) -> LoopStages:
    """A loop in all columns. `exact`: no sum is rounded."""
    if exact:
        with equation.one_thread():
            found = equation.stages(weights.layers, card)
    else:
        import torch

        from punchcard.engines.dense import threads

        with torch.no_grad(), threads(1):
            found = [as_array(stage) for stage in weights.module.stages(torch.from_numpy(card).to(weights.module.dtype))]
    return LoopStages(np.arange(card.shape[1]), found)
