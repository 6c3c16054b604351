"""The lowered engine: a model and its layout become machine code, and a loop costs about a hundred nanoseconds.

It applies to cards that keep what their layout declares. A loop in which a check fails (a bit that is not ±1, a number
beyond its limit, a pointer that matches nothing) is not made: the run ends there, and says why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from punchcard.card.layout import Layout, Pattern
from punchcard.engines.base import Port, Reason, Run, Runner, Stops, Watch, shown
from punchcard.engines.lowered.analysis.columns import limit_of
from punchcard.engines.lowered.computer import REALS, Computer, digest_of
from punchcard.engines.lowered.graph.nodes import Array
from punchcard.engines.lowered.live import LiveCard
from punchcard.engines.prepared import Prepared
from punchcard.errors import LoweringError
from punchcard.transformer.model import LoopedTransformer

SLICE_SECONDS = 0.05
"""Between two questions whether the run is interrupted."""


class Declined(Exception):
    """A card of a batch cannot make its next loop."""

    def __init__(self, loops: int) -> None:
        self.loops = loops


class Lowered(Runner):
    """See `Engine`. Raises a `LoweringError` that says what is in the way."""

    def __init__(self, model: LoopedTransformer, layout: Layout | None, card: Tensor, *, loops: int | None = None,
                 kept: Prepared | None = None) -> None:
        self.engine, self.layout, self.shape = "lowered", layout, card.shape
        cards = card.reshape(-1, *card.shape[-2:])
        if not len(cards):
            raise LoweringError("the batch is empty")
        if layout is None:
            raise LoweringError("it needs the card's layout")
        numbers = [_numbers(model, layout, one) for one in cards]
        started = time.perf_counter()
        known = (kept or Prepared()).computers(digest_of(model))
        self.lives = [LiveCard(_computer(model, layout, one, known), one_card)
                      for one, one_card in zip(numbers, cards, strict=True)]
        self.prepare_seconds = time.perf_counter() - started
        self.compile_seconds = self.prepare_seconds

    @property
    def card(self) -> Tensor:
        return self._card().contiguous().clone()

    def take(self, card: Tensor) -> None:
        for live, one in zip(self.lives, card.reshape(-1, *card.shape[-2:]), strict=True):
            live.take(one)

    def run(
        self, loops: int, *, until: Pattern | Sequence[Pattern] = (), ports: Mapping[Pattern, Port] | None = None,
        watch: Watch | None = None, interrupted: Callable[[], bool] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Run:
        self.stops = Stops.of(self._card(), self.layout, until, ports)
        for live in self.lives:
            live.look_for((*self.stops.until, *self.stops.ports))
        made, piece = 0, 1 << 10
        while made < loops:
            count = 1 if watch is not None else min(piece, loops - made)
            started = time.perf_counter()
            done, matched = self._advance(count)
            made += done
            spent = time.perf_counter() - started
            declined = done < count and matched is None
            piece = max(64, min(piece * 4, int(done * SLICE_SECONDS / max(spent, 1e-6)))) if done == count else piece
            if watch is not None and done:
                watch(made, shown(watch, self._card()))
            if matched is not None and matched < len(self.stops.until):
                return self._end(made, "matched", self.stops.until[matched])
            if matched is not None:
                stopped = self._serve(made)
                if stopped is not None:
                    return self._end(made, "stopped", stopped)
            if progress is not None and done:
                progress(made)
            if interrupted is not None and done and interrupted():
                return self._end(made, "interrupted")
            if declined:
                return self._end(made, "declined")
        return self._end(made, "loops")

    def _serve(self, made: int) -> Pattern | None:
        live = self.lives[0]
        card = live.show()
        stopped = None
        for number, (pattern, port) in enumerate(self.stops.ports.items(), start=len(self.stops.until)):
            if live.stands(number) and not port(made, card):
                stopped = pattern
                break
        live.take_back()
        return stopped

    def _advance(self, count: int) -> tuple[int, int | None]:
        """All cards by the same number of loops; fewer than `count` when a pattern is met or a loop is declined."""
        if len(self.lives) == 1:
            done, matched = self.lives[0].advance(count)
            if done < count and matched is None:
                self.why = self.lives[0].why()
            return done, matched
        kept = [live.keep() for live in self.lives]
        while True:
            try:
                return self._in_step(count)
            except Declined as at:  # the others may have gone further: all come back, and go as far as that one
                count = at.loops
                for live, before in zip(self.lives, kept, strict=True):
                    live.come_back(before)

    def _in_step(self, count: int) -> tuple[int, int | None]:
        """A batch: a pattern counts only when each card shows one."""
        made = [0] * len(self.lives)
        matched: list[int | None] = [None] * len(self.lives)
        target = 0  # no card stops before this loop, and none goes beyond the largest one
        while True:
            for i, live in enumerate(self.lives):
                if made[i] < target:
                    made[i] += self._one(live, made[i], target - made[i], stop=False)[0]
                    matched[i] = None
                if matched[i] is None and self.stops.until and made[i] < count:
                    if not (made[i] and made[i] == target and self._shows(live, i, matched)):
                        done, matched[i] = self._one(live, made[i], count - made[i], stop=True)
                        made[i] += done
                elif not self.stops.until:
                    made[i] += self._one(live, made[i], count - made[i], stop=False)[0]
            if len(set(made)) == 1:
                for i, live in enumerate(self.lives):
                    if matched[i] is None and self.stops.until and made[i]:
                        self._shows(live, i, matched)
                every = all(m is not None for m in matched)
                return made[0], (matched[-1] if every else None)
            target = max(made)

    def _one(self, live: LiveCard, before: int, count: int, *, stop: bool) -> tuple[int, int | None]:
        done, matched = live.advance(count, stop=stop)
        if done < count and matched is None:
            self.why = live.why()
            raise Declined(before + done)
        return done, matched

    def _shows(self, live: LiveCard, number: int, matched: list[int | None]) -> bool:
        found = self.stops.matched(live.show())
        matched[number] = None if found is None else self.stops.until.index(found)
        return found is not None

    def _card(self) -> Tensor:
        """The card as it is now, which the next loop may change."""
        if len(self.shape) == 2:
            return self.lives[0].show()
        return torch.stack([live.show() for live in self.lives]).reshape(self.shape)

    def _end(self, made: int, reason: Reason, matched: Pattern | None = None) -> Run:
        card = self.card
        for live in self.lives:
            live.seen()
        before = self.compile_seconds
        self.compile_seconds = self.prepare_seconds + sum(live.seconds for live in self.lives)
        self.notes = tuple({doubt: None for live in self.lives for doubt in live.computer.doubts})
        return Run(card, made, reason, self.engine, matched, (*self.notes, self.why) if reason == "declined" else self.notes,
                   self.compile_seconds - before, {self.engine: made})


def _numbers(model: LoopedTransformer, layout: Layout, card: Tensor) -> Array:
    """The entries of a card for which there may be code."""
    if model.dtype not in REALS or card.dtype != model.dtype:
        raise LoweringError(f"there is no code for {str(card.dtype).removeprefix('torch.')}, only for float32 and float64")
    if card.device.type != "cpu":
        raise LoweringError(f"the card is on {card.device.type}, the code runs on the cpu")
    wrong = layout.violations(card)
    if wrong:
        raise LoweringError(f"the card is not what its layout declares: {wrong[0]}")
    numbers: Array = card.detach().numpy().astype(np.float64)
    for block in layout.blocks:
        most, limit = float(np.max(np.abs(numbers[layout.rows(block.name)]))), limit_of(block, "real")
        if not most <= limit:
            raise LoweringError(f"{block.name} holds {most:g}, more than its limit {limit:g}")
    return numbers


def _computer(model: LoopedTransformer, layout: Layout, card: Array, known: list[Computer]) -> Computer:
    """Code that is known, or new and then known."""
    for computer in known:
        if computer.fits(layout, card):
            return computer
    known.append(Computer(model, layout, card))
    return known[-1]
