"""The lowered engine for many cards: one call of the generated code runs some of them, and every core makes calls."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from punchcard.card.layout import Card, Layout
from punchcard.card.packed import PackedCard
from punchcard.engines.base import Run, Stops
from punchcard.engines.batch import BatchRunner, Ports
from punchcard.engines.controls import NO_CONTROLS, Controls
from punchcard.engines.engine_cache import EngineCache
from punchcard.engines.lowered.batch_run import BatchRun, CardEnd
from punchcard.engines.lowered.card_group import CardGroup
from punchcard.engines.lowered.compiled_model import CompiledModel
from punchcard.engines.lowered.engine import as_packed, find_or_compile, packed_card
from punchcard.engines.lowered.thread_pool import ThreadPool, cores
from punchcard.errors import LoweringError, PunchcardError
from punchcard.transformer.weights import Model, Weights


class LoweredBatchRunner(BatchRunner):
    """See `prepare_batch`."""

    def __init__(self, model: Model, layout: Layout | None, cards: Sequence[Card], *, loops: int | None = None,
                 cache: EngineCache | None = None, threads: int | None = None) -> None:
        if layout is None:
            raise LoweringError("it needs the card's layout")
        self.engine, self.layout, self.threads = "lowered", layout, threads or cores()
        started = time.perf_counter()
        weights = Weights.of(model)
        known = (cache or EngineCache()).compiled_models(weights.digest())
        found, self.refused = group_by_code(weights, layout, cards, known)
        self.groups = [CardGroup(*group) for group in found]
        self.places = {number: (group, row) for group in self.groups for row, number in enumerate(group.numbers)}
        self.compile_seconds = time.perf_counter() - started

    def take(self, number: int, card: Card) -> None:
        if number in self.refused:
            self.refused[number] = card, self.refused[number][1]
        else:
            group, row = self.places[number]
            group.states[row].take(as_packed(self.layout, card))

    def run(
        self, loops: int, controls: Controls = NO_CONTROLS, *, ports: Ports | None = None, among: Sequence[int] | None = None
    ) -> list[Run]:
        numbers = range(len(self.places) + len(self.refused)) if among is None else among
        stops = Stops.of(self.groups[0].states[0].card, self.layout, controls.of_card(ports[0] if ports else None, 0))
        if ports is not None and any(own.keys() != stops.ports.keys() for own in ports):
            raise PunchcardError("the ports of a batch stand at the same patterns for every card")
        before = [group.compiled_model.compile_seconds for group in self.groups]
        for group in self.groups:
            rows = [row for number in numbers if number in self.places for of, row in [self.places[number]] if of is group]
            group.begin(rows, loops, (*stops.until, *stops.ports))
        own_stops = [replace(stops, ports=own) for own in ports or ()]
        batch_run = BatchRun(self.groups, ThreadPool(self.threads), loops, own_stops, stops)
        batch_run.run(controls)
        more = sum(group.compiled_model.compile_seconds - was for group, was in zip(self.groups, before, strict=True))
        self.compile_seconds += more
        return [self._ended(number, loops, batch_run.ends.get(number), more) for number in numbers]

    def _ended(self, number: int, loops: int, end: CardEnd | None, compiled: float) -> Run:
        """The run of a card."""
        if number in self.refused:
            card, why = self.refused[number]
            return Run(card, 0, "declined", self.engine, notes=(why,), made={self.engine: 0})
        group, row = self.places[number]
        state, made = group.states[row], loops - int(group.left[row])
        held = state.show().copy() if state.unpacked is None else state.unpacked
        state.check_last()
        end = end or CardEnd("loops")
        return Run(held, made, end.reason, self.engine, end.matched, (end.note,) if end.note else (), compiled,
                   {self.engine: made})


Members = list[tuple[int, PackedCard]]
"""Cards and their numbers in the batch."""


def group_by_code(weights: Weights, layout: Layout, cards: Sequence[Card], known: list[CompiledModel],
                ) -> tuple[list[tuple[CompiledModel, Members]], dict[int, tuple[Card, str]]]:
    """The cards of each compiled model; and those for which there is no code, by their numbers, and why."""
    found: dict[int, tuple[CompiledModel, Members]] = {}
    refused: dict[int, tuple[Card, str]] = {}
    for number, card in enumerate(cards):
        try:
            packed = packed_card(weights, layout, card)
            compiled_model = find_or_compile(weights, layout, packed, known)
        except LoweringError as why:
            refused[number] = card, str(why)
        else:
            found.setdefault(id(compiled_model), (compiled_model, []))[1].append((number, packed))
    if not found:
        raise LoweringError(refused[0][1])
    return list(found.values()), refused
