"""What happens inside one loop: the card before each layer and after its attention.

A small card is computed in full, as the dense engine computes it: with torch where numbers are real, and with NumPy where
no sum is rounded, so that the order of a sum makes no difference and torch need not be imported. A large card is computed
in some columns only (`column_subset.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from punchcard.card.formats import AnyArray, as_array
from punchcard.card.layout import Card
from punchcard.card.packed import PackedCard
from punchcard.transformer.weights import LayerArrays, Weights

if TYPE_CHECKING:
    from torch import Tensor

Columns = NDArray[np.intp]
SMALL = 512
"""Cards of so many columns are computed in full."""


@dataclass(frozen=True)
class LoopStages:
    """One loop in some columns: `stages` are the card before each layer and after its attention, and after the last layer.

    All of them are matrices of all rows and these columns.
    """

    columns: Columns
    stages: Sequence[AnyArray]

    def at(self, stage: int, columns: Columns) -> AnyArray:
        """Some of its columns at a stage."""
        return self.stages[stage][:, np.searchsorted(self.columns, columns)]


def entries_of(card: Card, columns: Columns | None = None) -> AnyArray:
    """All rows of some columns of a card, by default of all."""
    if isinstance(card, PackedCard):
        return card.dense() if columns is None else card.columns(columns)
    found = as_array(card)
    return found if columns is None else found[:, columns]


def softmax(scores: AnyArray) -> AnyArray:
    """Down each column."""
    powers = np.exp(scores - scores.max(axis=0))
    found: AnyArray = powers / powers.sum(axis=0)
    return found


def taken(layer: LayerArrays, head: int, card: AnyArray, weights: AnyArray) -> tuple[Columns, AnyArray]:
    """The rows that a head writes, and what it adds there."""
    rows = np.flatnonzero(layer.value[head].any(axis=1))
    return rows, layer.value[head][rows] @ card @ weights


def feed_forward(layer: LayerArrays, card: AnyArray) -> AnyArray:
    """X + W2 relu(W1 X + b1 1^T) + b2 1^T."""
    found: AnyArray = card + layer.w2 @ np.maximum(layer.w1 @ card + layer.b1, 0) + layer.b2
    return found


@cache
def _threads() -> Any:
    """What sets NumPy's threads; to look for it takes a while."""
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Let NumPy use one thread: for small matrices two are slower, ten times so where other programs are at work."""
    limited: AbstractContextManager[Any] = _threads().limit(limits=1)
    return limited


def whole(weights: Weights, card: AnyArray, *, exact: bool) -> LoopStages:
    """A loop in all columns. `exact`: no sum is rounded."""
    if not exact:
        return _with_torch(weights, card)
    stages = [card]
    with one_thread():
        for layer in weights.layers:
            attended = card.copy()
            for head in range(layer.heads):
                scores = (layer.key[head] @ card).T @ (layer.query[head] @ card)
                rows, added = taken(layer, head, card, softmax(layer.temperature[head] * scores))
                attended[rows] += added
            card = feed_forward(layer, attended)
            stages += [attended, card]
    return LoopStages(np.arange(card.shape[1]), stages)


def _with_torch(weights: Weights, card: AnyArray) -> LoopStages:
    """The equation as the model has it."""
    import torch

    from punchcard.engines.stepping import threads
    from punchcard.transformer.model import TransformerLayer

    stages: list[Tensor] = [torch.from_numpy(card).to(weights.module.dtype)]
    with torch.no_grad(), threads(1):
        for layer in weights.module.layers:
            assert isinstance(layer, TransformerLayer)
            attended = layer.attend(stages[-1])
            stages += [attended, layer.feed_forward(attended)]
    return LoopStages(np.arange(card.shape[1]), [as_array(stage) for stage in stages])
