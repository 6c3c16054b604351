"""The loops of a fused model on Punchcard's engines: prepared once, then a card a position.

The weights are those of the stream's parameters as they are now: change one, and the code is made anew from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from punchcard.card.formats import AnyArray
from punchcard.card.layout import Card, Layout, as_tensor
from punchcard.card.packed import PackedCard
from punchcard.engines import Controls, EngineCache, NoCopyWatch, Runner, prepare
from punchcard.errors import LoweringError
from punchcard.language_models.fusion.machine import machine_of, patterns_of
from punchcard.transformer.weights import NAMES, LayerArrays, Weights

if TYPE_CHECKING:
    from torch import Tensor

    from punchcard.language_models.fusion.fused_model import CardStream

WORD = 32
TWO = np.float32(2)


class KeptRunner:
    """What `ScratchpadLoops` of the fused model does, on the fastest engine that applies."""

    def __init__(self, stream: CardStream) -> None:
        self.stream, self.sizes = stream, stream.sizes
        self.machine = machine_of(self.sizes)
        self.layout: Layout = self.machine.layout
        self.controls = Controls(until=patterns_of(self.machine), traces=None)  # a run is short
        self.guarded = replace(self.controls, watch=NoCopyWatch(_check))  # a packed card is finite as it is
        self.cards: dict[int, PackedCard] = {}
        self.version: tuple[Any, ...] = ()
        self.runner: Runner | None = None
        self.cache = EngineCache()

    def run(self, skill: int, words: Tensor, columns: Sequence[int]) -> tuple[Tensor, int, bool]:
        """Words in some columns after a run that begins with these words in the window; loops; whether it ended."""
        self._renew()
        bits = words.numpy() > 0
        card = self._packed(skill, bits) if np.array_equal(words.numpy(), bits * TWO) else self._dense(skill, words)
        runner = self.runner
        if runner is None or not isinstance(card, PackedCard):
            runner = self._prepared(card)
        else:
            runner.take(card)
        ran = runner.run(self.sizes["most_loops"], self.controls if runner is self.runner else self.guarded)
        if ran.reason == "declined":
            runner = prepare("auto", self._weights(), self.layout, card, cache=self.cache)
            ran = runner.run(self.sizes["most_loops"], self.guarded)
        proper = ran.reason == "matched" and ran.matched in self.controls.until[: self.sizes["proper"]]  # type: ignore[index]
        return torch.from_numpy(self._read(ran.raw_card, columns)), ran.loops, proper

    def _prepared(self, card: Card) -> Runner:
        """A runner for this card; one of the lowered engine is kept."""
        if isinstance(card, PackedCard):
            try:
                self.runner = prepare("lowered", self._weights(), self.layout, card, cache=self.cache)
                return self.runner
            except LoweringError:
                pass
        return prepare("auto", self._weights(), self.layout, card, loops=self.sizes["most_loops"], cache=self.cache)

    def _renew(self) -> None:
        """Forget what was prepared, if a weight or a card is not what it was."""
        tensors = [*self.stream.layers.parameters(), self.stream.cards]
        version = tuple((each._version, each.data_ptr()) for each in tensors)
        if version != self.version:
            self.version, self.runner, self.cards = version, None, {}

    def _weights(self) -> Weights:
        layers = [LayerArrays(*(layer.get_parameter(name).numpy() for name in NAMES)) for layer in self.stream.looped_layers]
        return Weights(self.sizes["width"], "float32", layers)

    def _packed(self, skill: int, bits: AnyArray) -> PackedCard:
        """The program's card with these bits in its window: they were -1, and got 0 or 2."""
        known = self.cards.get(skill)
        if known is None:
            known = self.cards[skill] = PackedCard.of(self.layout, self.stream.cards[skill].float())
        card = known.copy()
        first = self.sizes["skills"][skill]["context"]
        packed = np.packbits(bits, axis=1, bitorder="little").view("<u4")[:, 0]
        card.fields["memory"][first : first + len(packed)] = packed
        return card

    def _dense(self, skill: int, words: Tensor) -> Tensor:
        """The same where the words are not bits: as the head has brought them."""
        card = self.stream.cards[skill].float()
        first, row = self.sizes["skills"][skill]["context"], self.sizes["word_row"]
        card[row : row + WORD, first : first + len(words)] += words.T
        return card

    def _read(self, card: Card, columns: Sequence[int]) -> AnyArray:
        row = self.sizes["word_row"]
        if isinstance(card, PackedCard):
            words = card.fields["memory"][list(columns)].astype("<u4")
            bits = np.unpackbits(words.view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
            return bits.astype(np.float32) * 2 - 1
        return np.asarray(card)[row : row + WORD, list(columns)].T.copy()


def _check(loop: int, card: Card) -> None:
    from punchcard.language_models.fusion.fused_model import check_card

    check_card(loop, as_tensor(card))
