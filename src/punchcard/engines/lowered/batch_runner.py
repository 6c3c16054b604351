"""The lowered engine for many cards: one call of the generated code runs some of them, and every core makes calls."""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from punchcard.card.layout import Card, Layout
from punchcard.card.packed import PackedCard
from punchcard.engines.base import EngineCache, Run, Stops
from punchcard.engines.batch import BatchRunner, Ports
from punchcard.engines.controls import NO_CONTROLS, Controls
from punchcard.engines.lowered.batch_run import BatchRun, CardEnd, CardGroup
from punchcard.engines.lowered.compiled_model import CompiledModel
from punchcard.engines.lowered.engine import as_packed, find_or_compile, packed_card
from punchcard.errors import LoweringError, PunchcardError
from punchcard.transformer.weights import Model, Weights

Members: TypeAlias = list[tuple[int, PackedCard]]
"""Cards and their numbers in the batch."""


class CompiledBatchRunner(BatchRunner):
    """What the batch runners of generated code share: cards by their code, and cards for which there is none."""

    def group(self, model: Model, layout: Layout | None, cards: Sequence[Card], cache: EngineCache | None,
              ) -> list[tuple[CompiledModel, Members]]:
        """The cards of each compiled model. Those for which there is no code are `refused`: by number, and why."""
        if layout is None:
            raise LoweringError("it needs the card's layout")
        weights = Weights.of(model)
        known = (cache or EngineCache()).compiled_models(weights.digest())
        self.layout, self.count = layout, len(cards)
        self.refused: dict[int, tuple[Card, str]] = {}
        found: dict[int, tuple[CompiledModel, Members]] = {}
        for number, card in enumerate(cards):
            try:
                packed = packed_card(weights, layout, card)
                compiled_model = find_or_compile(weights, layout, packed, known)
            except LoweringError as why:
                self.refused[number] = card, str(why)
            else:
                found.setdefault(id(compiled_model), (compiled_model, []))[1].append((number, packed))
        if not found:
            raise LoweringError(self.refused[0][1])
        return list(found.values())

    def take(self, number: int, card: Card) -> None:
        if number in self.refused:
            self.refused[number] = card, self.refused[number][1]
        else:
            self.take_packed(number, as_packed(self.layout, card))

    @abstractmethod
    def take_packed(self, number: int, card: Card) -> None:
        """Go on from another card, packed if that can be, in the place of one that is not refused."""

    def stops(self, card: Card, controls: Controls, ports: Ports | None) -> Stops:
        """The patterns of all cards, checked on one of them."""
        stops = Stops.of(card, self.layout, controls.of_card(ports[0] if ports else None, 0))
        if ports is not None and any(own.keys() != stops.ports.keys() for own in ports):
            raise PunchcardError("the ports of a batch must have the same patterns for every card")
        return stops

    def refused_run(self, number: int) -> Run:
        """The run of a card for which there is no code."""
        card, why = self.refused[number]
        return Run(card, 0, "declined", self.engine, notes=(why,), made={self.engine: 0})


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LoweredBatchRunner(CompiledBatchRunner):
    """See `prepare_batch`."""

    def __init__(self, model: Model, layout: Layout | None, cards: Sequence[Card], *, loops: int | None = None,
                 cache: EngineCache | None = None, threads: int | None = None) -> None:
        self.engine, self.threads = "lowered", threads or cores()
        started = time.perf_counter()
        self.groups = [CardGroup(*group) for group in self.group(model, layout, cards, cache)]
        self.places = {number: (group, row) for group in self.groups for row, number in enumerate(group.numbers)}
        self.compile_seconds = time.perf_counter() - started

    def take_packed(self, number: int, card: Card) -> None:
        group, row = self.places[number]
        group.states[row].take(card)

    def run(
        self, loops: int, controls: Controls = NO_CONTROLS, *, ports: Ports | None = None, among: Sequence[int] | None = None
    ) -> list[Run]:
        numbers = range(self.count) if among is None else among
        stops = self.stops(self.groups[0].states[0].card, controls, ports)
        before = [group.compiled_model.compile_seconds for group in self.groups]
        for group in self.groups:
            rows = [row for number in numbers if number in self.places for of, row in [self.places[number]] if of is group]
            group.begin(rows, loops, (*stops.until, *stops.ports))
        own_stops = [replace(stops, ports=own) for own in ports or ()]
        batch_run = BatchRun(self.groups, self.threads, loops, own_stops, stops)
        batch_run.run(controls)
        more = sum(group.compiled_model.compile_seconds - was for group, was in zip(self.groups, before, strict=True))
        self.compile_seconds += more
        return [self._ended(number, loops, batch_run.ends.get(number), more) for number in numbers]

    def _ended(self, number: int, loops: int, end: CardEnd | None, compiled: float) -> Run:
        """The run of a card."""
        if number in self.refused:
            return self.refused_run(number)
        group, row = self.places[number]
        state, made = group.states[row], loops - int(group.left[row])
        held = state.show().copy() if state.unpacked is None else state.unpacked
        state.check_last()
        end = end or CardEnd("loops")
        return Run(held, made, end.reason, self.engine, end.matched, (end.note,) if end.note else (), compiled,
                   {self.engine: made})
