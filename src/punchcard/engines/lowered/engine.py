"""The lowered engine: a model and its layout become machine code, and a loop costs about a hundred nanoseconds.

It applies to cards that keep what their layout declares. A loop in which a check fails (a bit that is not ±1, a number
beyond its limit, a pointer that matches nothing) is not made: the run ends there, and says why.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from punchcard.card.formats import name_of
from punchcard.card.layout import Card, Layout, Pattern
from punchcard.card.packed import PackedCard
from punchcard.engines.base import EngineCache, LoopRunner, Reason, Run, Stops, TraceReport, skip_loops
from punchcard.engines.controls import Controls, Skip, Watch, card_for
from punchcard.engines.lowered.analysis.columns import limit_of
from punchcard.engines.lowered.card_state import CardState
from punchcard.engines.lowered.compiled_model import REALS, CompiledModel
from punchcard.engines.lowered.pattern_table import OutputLog, pattern_parts, pattern_table
from punchcard.errors import LoweringError, PunchcardError
from punchcard.transformer.torch_settings import small_numbers_kept
from punchcard.transformer.weights import Model, Weights

if TYPE_CHECKING:
    from torch import Tensor

SLICE_SECONDS = 0.05
"""Between two questions whether the run is interrupted."""


class Declined(Exception):
    """A card of a batch cannot make its next loop."""

    def __init__(self, loops: int) -> None:
        self.loops = loops


class Lowered(LoopRunner):
    """See `Engine`. Raises a `LoweringError` that says what is in the way."""

    takes_packed: ClassVar[bool] = True

    def __init__(self, model: Model, layout: Layout | None, card: Card, *, loops: int | None = None,
                 cache: EngineCache | None = None) -> None:
        self.engine, self.layout, self.shape, self.packed = "lowered", layout, card.shape, isinstance(card, PackedCard)
        cards = _single(card)
        if not cards:
            raise LoweringError("the batch is empty")
        if layout is None:
            raise LoweringError("it needs the card's layout")
        packed = [packed_card(name_of(model.dtype), layout, one) for one in cards]
        started = time.perf_counter()
        find = finder(cache or EngineCache(), model, layout)
        self.states = [CardState(find(one), one) for one in packed]
        self.prepare_seconds = time.perf_counter() - started
        self.compile_seconds = self.prepare_seconds
        self.log, self.why, self.trace_seconds = OutputLog(), "", 0.0

    @property
    def card(self) -> Tensor:
        if len(self.shape) == 2:
            return self.states[0].tensor()
        import torch

        return torch.stack([state.tensor() for state in self.states]).reshape(self.shape)

    @property
    def raw_card(self) -> Card:
        """Packed, if the runner was given a packed card, and as long as it can be."""
        state = self.states[0]
        return state.show().copy() if self.packed and state.unpacked is None else self.card

    def _shown(self, watch: Watch) -> Card:
        """What a watch is called with: the card as the runner was given it. A tensor is new, and needs no copy."""
        return card_for(watch, self.states[0].show()) if self.packed else self.card

    def take(self, card: Card) -> None:
        for state, one in zip(self.states, _single(card), strict=True):
            state.take(as_packed(self.states[0].compiled_model.layout, one))

    @small_numbers_kept()
    def make_loops(self, loops: int, controls: Controls, stops: Stops) -> Run:
        watch, self.stops = controls.watch, stops
        patterns, own = (*self.stops.until, *self.stops.ports), self.packed and watch is None
        for state in self.states:
            buffers = self.log.serve(state.compiled_model, len(self.stops.until), self.stops.ports if own else {})
            state.patterns = pattern_table(state.compiled_model, patterns, self.log.address, buffers, self.log.inputs)
            state.tier = None if watch is not None or controls.traces is None or len(self.states) > 1 else (
                state.compiled_model.trace_tier(pattern_parts(state.compiled_model, patterns, self.log.inputs),
                                                controls.traces))
        self.traced_before = self._traced()
        advance = self.states[0].advance if len(self.states) == 1 else self._advance
        until, made, piece, asked_at, asked = len(self.stops.until), 0, 1 << 10, 0, time.perf_counter()
        while made < loops:
            count = 1 if watch is not None else min(piece, loops - made)
            done, matched = advance(count)
            made += done
            if self.log.flush():
                self.states[0].unseen = True  # the code has written it, where no field is protected
            if watch is not None and done:
                watch(made, self._shown(watch))
            if matched is not None:
                if matched < until:
                    return self._end(made, "matched", self.stops.until[matched])
                stopped, skipped = self._serve(made, matched - until, loops - made if watch is None else 0)
                made, asked_at = made + skipped, asked_at + skipped
                if stopped is not None:
                    return self._end(made, "stopped", stopped)
            now = time.perf_counter()
            if done < count and matched is not None and now - asked < SLICE_SECONDS:
                continue  # a port took a moment: who wants to interrupt can wait
            if done == count:
                piece = max(64, min(piece * 4, int((made - asked_at) * SLICE_SECONDS / max(now - asked, 1e-6))))
            asked_at, asked = made, now
            if done:
                controls.report(made)
            if done and controls.is_interrupted():
                return self._end(made, "interrupted")
            if done < count and matched is None:
                self.why = self.states[0].why() if len(self.states) == 1 else self.why
                return self._end(made, "declined")
        return self._end(made, "loops")

    def _serve(self, made: int, first: int, room: int) -> tuple[Pattern | None, int]:
        """Call the ports, from the one on whose pattern is on the card, with the card as the runner was given it.

        `room`: how many loops may be skipped. Those that are skipped are counted.
        """
        state, skips = self.states[0], list[Skip]()
        card: Card = state.show() if self.packed else state.show().tensor()
        stopped = self.stops.serve(made, card, first, skips, found=True)
        skipped = skip_loops(skips, card, room) if skips else 0
        self.log.inputs.fill()
        state.resume(None if self.packed else as_packed(state.compiled_model.layout, card))
        return stopped, skipped

    def _advance(self, count: int) -> tuple[int, int | None]:
        """All cards by the same number of loops; fewer than `count` when a pattern is met or a loop is declined."""
        kept = [state.snapshot() for state in self.states]
        while True:
            try:
                return self._in_step(count)
            except Declined as at:  # the others may have gone further: all come back, and go as far as that one
                count = at.loops
                for state, before in zip(self.states, kept, strict=True):
                    state.restore(before)

    def _in_step(self, count: int) -> tuple[int, int | None]:
        """A batch: a pattern counts only when each card shows one."""
        made, first = 0, self.states[0]
        while made < count:  # no card can be the last to show a pattern before the first one does
            done, _ = self._one(first, made, count - made, stop=True)
            for state in self.states:
                if state is not first:
                    self._one(state, made, done, stop=False)
            made += done
            matched = [self._matched(state) for state in self.states]
            if None not in matched or made == count:
                return made, None if None in matched else matched[-1]
            first = self.states[matched.index(None)]
        return made, None

    def _matched(self, state: CardState) -> int | None:
        found = self.stops.matched(state.tensor()) if self.stops.until else None
        return None if found is None else self.stops.until.index(found)

    def _one(self, state: CardState, before: int, count: int, *, stop: bool) -> tuple[int, int | None]:
        done, matched = state.advance(count, stop=stop)
        if done < count and matched is None:
            self.why = state.why()
            raise Declined(before + done)
        return done, matched

    def _traced(self) -> TraceReport | None:
        tier = self.states[0].tier
        return None if tier is None else tier.report

    def _end(self, made: int, reason: Reason, matched: Pattern | None = None) -> Run:
        for state in self.states:
            state.check_last()
        card = self.raw_card
        before = self.compile_seconds
        traced, traced_before = self._traced(), self.traced_before
        traces = None if traced is None or traced_before is None else traced - traced_before
        self.trace_seconds += 0.0 if traces is None else traces.seconds
        self.compile_seconds = self.prepare_seconds + self.trace_seconds + sum(state.seconds for state in self.states)
        self.notes = tuple({doubt: None for state in self.states for doubt in state.compiled_model.doubts})
        return Run(card, made, reason, self.engine, matched, (*self.notes, self.why) if reason == "declined" else self.notes,
                   self.compile_seconds - before, {self.engine: made}, traces)


def _single(card: Card) -> list[Card]:
    """The cards of a batch, one by one."""
    return [card] if isinstance(card, PackedCard) else list(card.reshape(-1, *card.shape[-2:]))


def as_packed(layout: Layout, card: Card) -> Card:
    """A card as words, where its layout allows that; else as it is."""
    if isinstance(card, PackedCard):
        return card
    try:
        return PackedCard.of(layout, card)
    except PunchcardError:
        return card


def packed_card(dtype: str, layout: Layout, card: Card) -> PackedCard:
    """A card for which there may be code, of a model with this number format."""
    if dtype not in REALS or name_of(card.dtype) != dtype:
        raise LoweringError(f"there is no code for {name_of(card.dtype)}, only for float32 and float64")
    if isinstance(card, PackedCard):
        packed = card
    else:
        device = str(getattr(card, "device", "cpu"))
        if not device.startswith("cpu"):
            raise LoweringError(f"the card is on {device}, the code runs on the cpu")
        try:
            packed = PackedCard.of(layout, card)
        except PunchcardError as why:
            raise LoweringError(f"the card is not what its layout declares: {why}") from None
    for block in layout.blocks:
        field, limit = packed.fields.get(block.name), limit_of(block, "real")
        if field is not None and field.dtype.kind == "f" and not float(np.max(np.abs(field))) <= limit:
            raise LoweringError(f"{block.name} holds {float(np.max(np.abs(field))):g}, more than its limit {limit:g}")
    return packed


def finder(cache: EngineCache, model: Model, layout: Layout) -> Callable[[PackedCard], CompiledModel]:
    """A function that finds the code for a card: code that is kept for these weights and this layout, or new code."""
    weights = Weights.of(model)
    if cache.compiled_models and not cache.compiled_models[0].is_of(weights, layout):
        cache.compiled_models = []
    known = cache.compiled_models

    def find_or_compile(card: PackedCard) -> CompiledModel:
        for compiled_model in known:
            if compiled_model.requirements.hold(card):
                return compiled_model
        known.append(CompiledModel(weights, layout, card, known[0].weights if known else None, cache.count))
        return known[-1]

    return find_or_compile
