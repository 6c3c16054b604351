"""The scratchpad engine: only the scratchpad needs attention, so a loop costs O(n d) and not O(n^2 d).

The paper remarks that only the columns of the scratchpad attend to all the others. Here that is made exact. The *active*
columns are those whose keys or queries a loop may change, by the layout's facts: a region is active if one of the rows that
a head matches by changes there. The weights and the facts decide, no name does. How the rest is computed, and why
it comes out as the equation has it, is in `incremental`; this file chooses the columns and makes the run.

Heads whose softmax leaves a tail, and cards without facts, are computed in full; the notes say so.
"""

from __future__ import annotations

import torch
from torch import Tensor

from punchcard.card.layout import Card, Layout, as_tensor
from punchcard.engines.base import EngineCache
from punchcard.engines.dense import Stepping
from punchcard.engines.scratchpad.incremental import Incremental, TooLarge
from punchcard.transformer.model import LoopedTransformer, TransformerLayer
from punchcard.transformer.sums import LayerSums, largest_entry
from punchcard.transformer.torch_settings import equation_settings
from punchcard.transformer.weights import Weights, active_columns

FEW_COLUMNS = 1 << 17
"""Up to here one thread is faster: a loop is many small steps. Three loops of 65,571 columns, the first among them, take 2 s
of CPU on one thread, and 12 s on two of a busy machine."""
SCORES_AT_ONCE = 1 << 24


class Scratchpad(Stepping):
    """See `Engine`. The card is computed incrementally as long as that is exact, else in full."""

    def __init__(self, model: LoopedTransformer, layout: Layout | None, card: Tensor, *, loops: int | None = None,
                 cache: EngineCache | None = None) -> None:
        super().__init__("scratchpad", layout, card, one_thread=card.numel() // card.shape[-2] <= FEW_COLUMNS)
        self._model, self._loops = model, 0
        self._incremental: Incremental | None = None
        active = None if layout is None else torch.from_numpy(active_columns(model, layout)).to(card.device)
        if active is None:
            self._in_full = "no facts about the card: full softmax in all heads"
        elif len(active) == card.shape[-1]:
            self._in_full = "every column is active: full softmax in all heads"
        elif (limit := _limit(model)) < 0:
            self._in_full = "sums may leave the number format: full softmax in all heads"
        else:
            with torch.no_grad(), equation_settings(card.device):
                self._incremental = Incremental(model, card, active, limit)
        self._whole = card if self._incremental is None else card.new_empty(0)
        self.notes = self.own_notes

    def loop(self) -> None:
        self._loops += 1
        if self._incremental is not None:
            try:
                self._incremental.loop()
                return
            except TooLarge:
                self._in_full = (f"from loop {self._loops} on: entries beyond {self._incremental.limit:.3g}, "
                                 "or not numbers; full softmax in all heads")
                self._whole, self._incremental = self.card, None
        self._whole = whole_loop(self._model, self._whole)

    @property
    def view(self) -> Tensor:
        return self._whole if self._incremental is None else self._incremental.card

    def take(self, card: Card) -> None:
        if self._incremental is not None:
            self._incremental.replace(as_tensor(card))
        else:
            self._whole = as_tensor(card)

    @property
    def own_notes(self) -> tuple[str, ...]:
        return (self._in_full,) if self._incremental is None else self._incremental.notes


def _limit(model: LoopedTransformer) -> float:
    """Entries up to here keep all that a loop computes within the number format."""
    weights = Weights.of(model)
    return largest_entry([LayerSums(layer) for layer in weights.layers], weights.width, weights.format)


def whole_loop(model: LoopedTransformer, card: Tensor) -> Tensor:
    """The equation for all columns, a few columns at a time where all would need too much memory."""
    step = max(1, SCORES_AT_ONCE // max(1, card.numel() // card.shape[-2]))
    if step >= card.shape[-1]:
        found: Tensor = model(card)
        return found
    for layer in model.layers:
        if isinstance(layer, TransformerLayer):
            offers = list(layer.offers(card))
            card = torch.cat([layer.feed_forward(layer.attend(part, offers)) for part in torch.split(card, step, -1)], -1)
    return card
