"""The dense engine: the equation, literally. X <- TF(W; X), T times (algorithm "Looped Transformer")."""

from __future__ import annotations

from torch import Tensor

from punchcard.budget import require
from punchcard.card.layout import Card, Layout, as_tensor
from punchcard.engines.engine_cache import EngineCache
from punchcard.engines.stepping import Stepping
from punchcard.transformer.model import LoopedTransformer

FEW_COLUMNS = 512
"""Up to here the matrices are so small that more than one thread makes torch slower, many times so under load."""


class Dense(Stepping):
    """See `Engine`. There is nothing to prepare."""

    def __init__(self, model: LoopedTransformer, layout: Layout | None, card: Tensor, *, loops: int | None = None,
                 cache: EngineCache | None = None) -> None:
        super().__init__("dense", layout, card, one_thread=card.shape[-1] <= FEW_COLUMNS)
        # scores, weights and a copy of them are n by n for each card
        require(3 * card.shape[-1] * card.numel() // card.shape[-2] * card.element_size(),
                f"attention over {card.shape[-1]} columns on the dense engine")
        self._model, self._card = model, card

    @property
    def view(self) -> Tensor:
        return self._card

    def take(self, card: Card) -> None:
        self._card = as_tensor(card)

    def loop(self) -> None:
        self._card = self._model(self._card)
