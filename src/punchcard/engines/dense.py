"""The dense engine: the equation, literally. X <- TF(W; X), T times (algorithm "Looped Transformer").

`Stepping`: what it shares with the scratchpad engine. One loop after the other in Python, and a look at the card after each.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import torch
from torch import Tensor

from punchcard.budget import attending, require
from punchcard.card.layout import Card, Layout, Pattern, as_tensor
from punchcard.engines.base import EngineCache, LoopRunner, Reason, Run, Stops, skip_loops
from punchcard.engines.controls import Controls, Skip, card_for
from punchcard.transformer.model import LoopedTransformer
from punchcard.transformer.torch_settings import equation_settings

FEW_COLUMNS = 512
"""Up to here the matrices are so small that more than one thread makes torch slower, many times so under load."""


class Stepping(LoopRunner):
    """What engines of one loop at a time share. `one_thread`: matrices so small that more threads make torch slower."""

    def __init__(self, engine: str, layout: Layout | None, card: Tensor, *, one_thread: bool) -> None:
        if layout is not None:
            layout.check(card)
        self.engine, self.layout, self.shape, self.one_thread = engine, layout, tuple(card.shape), one_thread
        self._why_this: tuple[str, ...] = ()

    def noting(self, why: str) -> Self:
        """The same runner, with a note on why it was taken."""
        self._why_this = (why,)
        self.notes = (why, *self.own_notes)
        return self

    @abstractmethod
    def loop(self) -> None:
        """X <- TF(W; X)."""

    @property
    @abstractmethod
    def view(self) -> Tensor:
        """The card, which must not be changed."""

    @property
    def own_notes(self) -> tuple[str, ...]:
        """Why a loop is slower than it might be with this engine."""
        return ()

    @property
    def card(self) -> Tensor:
        return self.view.clone(memory_format=torch.contiguous_format)

    def make_loops(self, loops: int, controls: Controls, stops: Stops) -> Run:
        if self.layout is not None:
            self.layout.check(self.view)
        watch = controls.watch
        one = 1 if self.one_thread else torch.get_num_threads()
        with torch.no_grad(), equation_settings(self.view.device), threads(one):
            loop = 0
            while loop < loops:
                loop += 1
                self.loop()
                if watch is not None:
                    watch(loop, card_for(watch, self.view))
                matched = stops.matched(self.view)
                if matched is not None:
                    return self._end(loop, "matched", matched)
                stopped, skipped = self._serve(stops, loop, loops - loop if watch is None else 0)
                loop += skipped
                if stopped is not None:
                    return self._end(loop, "stopped", stopped)
                controls.report(loop)
                if controls.is_interrupted():
                    return self._end(loop, "interrupted")
            return self._end(loops, "loops")

    def _serve(self, stops: Stops, loop: int, room: int) -> tuple[Pattern | None, int]:
        """Ports work on a copy of the card, which then takes the card's place. The loops that were skipped are counted."""
        if not stops.at_port(self.view):
            return None, 0
        card, skips = self.card, list[Skip]()
        stopped = stops.serve(loop, card, skips=skips)
        skipped = skip_loops(skips, card, room)
        self.take(card)
        return stopped, skipped

    def _end(self, loops: int, reason: Reason, matched: Pattern | None = None) -> Run:
        self.notes = (*self._why_this, *self.own_notes)
        return Run(self.card, loops, reason, self.engine, matched, self.notes, made={self.engine: loops})


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch use this many threads inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Dense(Stepping):
    """See `Engine`. There is nothing to prepare."""

    def __init__(self, model: LoopedTransformer, layout: Layout | None, card: Tensor, *, loops: int | None = None,
                 cache: EngineCache | None = None) -> None:
        super().__init__("dense", layout, card, one_thread=card.shape[-1] <= FEW_COLUMNS)
        cards = card.numel() // (card.shape[-1] * card.shape[-2])
        require(attending(card.shape[-1], card.element_size(), cards),
                f"attention over {card.shape[-1]} columns on the dense engine")
        self._model, self._card = model, card

    @property
    def view(self) -> Tensor:
        return self._card

    def take(self, card: Card) -> None:
        self._card = as_tensor(card)

    def loop(self) -> None:
        self._card = self._model(self._card)
