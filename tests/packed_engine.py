"""An engine for tests that keeps its card packed between loops, and shows it so; the loops are the equation's."""

from __future__ import annotations

from typing import Any

import torch

from punchcard.card.layout import Layout, Pattern
from punchcard.card.packed import PackedCard
from punchcard.engines.base import Reason, Run, Runner, Stops
from punchcard.engines.controls import NO_CONTROLS, Controls
from punchcard.transformer.weights import as_module


class PackedDense(Runner):
    """What an engine with packed state looks like from outside."""

    takes_packed = True

    def __init__(self, model: Any, layout: Layout, card: Any, *, loops: int | None = None, cache: object = None) -> None:
        self.engine, self.layout, self._model = "packed", layout, as_module(model)
        self.take(card)

    @property
    def card(self) -> torch.Tensor:
        return self._card.tensor()

    @property
    def raw_card(self) -> PackedCard:
        return self._card.snapshot()

    def take(self, card: Any) -> None:
        self._card = card.copy() if isinstance(card, PackedCard) else PackedCard.of(self.layout, card)

    def run(self, loops: int, controls: Controls = NO_CONTROLS) -> Run:
        stops = Stops.of(self._card, self.layout, controls)
        for loop in range(1, loops + 1):
            with torch.no_grad():
                self._card = PackedCard.of(self.layout, self._model(self._card.tensor()))
            if controls.watch is not None:
                controls.watch(loop, self._card)
            matched = stops.matched(self._card)
            if matched is not None:
                return self._end(loop, "matched", matched)
            stopped = stops.serve(loop, self._card)
            if stopped is not None:
                return self._end(loop, "stopped", stopped)
            if controls.is_interrupted():
                return self._end(loop, "interrupted")
        return self._end(loops, "loops")

    def _end(self, loops: int, reason: Reason, matched: Pattern | None = None) -> Run:
        return Run(self.raw_card, loops, reason, self.engine, matched, made={self.engine: loops})
