"""A batch runner whose cards run on a GPU, one thread for each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from punchcard.card.layout import Card, Layout
from punchcard.card.packed import PackedCard
from punchcard.engines.base import EngineCache, Reason, Run, Stops
from punchcard.engines.batch import Ports
from punchcard.engines.controls import NO_CONTROLS, Controls
from punchcard.engines.lowered.batch_runner import CompiledBatchRunner
from punchcard.engines.lowered.gpu.batch import BatchProgress, GpuBatch
from punchcard.engines.lowered.gpu.cuda import Cuda
from punchcard.engines.lowered.gpu.device import Device
from punchcard.engines.lowered.gpu.kernel import FAILED, GOES_ON, MATCHED
from punchcard.transformer.weights import Model

STOPPED = -2
"""The status of a machine whose port stopped the run."""
DECLINED = "the checks of a loop fail on the GPU"
UNDECLARED = "the card holds something that its layout does not declare, or what never changes had changed"


class GpuBatchRunner(CompiledBatchRunner):
    """See `prepare_batch`. Ports are served by the CPU, for which all cards come back: better many at a time than often."""

    def __init__(self, model: Model, layout: Layout | None, cards: Sequence[Card], *, loops: int | None = None,
                 cache: EngineCache | None = None, threads: int | None = None, device: Device | None = None) -> None:
        started = time.perf_counter()
        self.engine, self.device = "gpu", device or Cuda()
        found = self.group(model, layout, [_on_cpu(card) for card in cards], cache)
        self.batches = [(GpuBatch(compiled_model, [card for _, card in members], self.device),
                         [number for number, _ in members]) for compiled_model, members in found]
        self.places = {number: (which, row) for which, (_, numbers) in enumerate(self.batches)
                       for row, number in enumerate(numbers)}
        self.kernel_seconds = 0.0
        """The time that the GPU itself has worked."""
        self.compile_seconds = time.perf_counter() - started

    def take_packed(self, number: int, card: Card) -> None:
        which, row = self.places[number]
        batch = self.batches[which][0]
        if isinstance(card, PackedCard) and batch.compiled_model.fits(self.layout, card):
            batch.take(row, card)
        else:
            self.refused[number] = card, UNDECLARED

    def run(
        self, loops: int, controls: Controls = NO_CONTROLS, *, ports: Ports | None = None, among: Sequence[int] | None = None
    ) -> list[Run]:
        numbers = range(self.count) if among is None else among
        stops = self.stops(self.batches[0][0].card(0), controls, ports)
        wanted, far, before = set(numbers) - self.refused.keys(), [], 0
        for batch, members in self.batches:
            rows = [row for row, number in enumerate(members) if number in wanted]
            now = BatchProgress.begin(len(members), rows)
            self._run(batch, members, now, loops, stops, ports, controls.of_card(None, before))
            before += int(now.loops.sum())
            self.kernel_seconds += now.seconds
            if now.recovered:
                self.notes = tuple(dict.fromkeys((*self.notes, f"gpu: the CPU made {now.recovered} loops, after which the "
                                                              "code assumed less")))
            far.append(now)
        return [self._ended(number, far, loops, stops) for number in numbers]

    def _run(self, batch: GpuBatch, members: Sequence[int], now: BatchProgress, loops: int, stops: Stops,
             ports: Ports | None, controls: Controls) -> None:
        """One batch to its end; machines that wait at a port are served together."""
        def asked() -> bool:
            controls.report(int(now.loops.sum()))
            return controls.is_interrupted()

        while True:
            batch.run(loops, (*stops.until, *stops.ports), progress=now, interrupted=asked)
            waiting = np.flatnonzero(now.status >= MATCHED + len(stops.until)).tolist()
            for row in waiting:
                card = batch.card(row)
                own = replace(stops, ports=(ports or ())[members[row]])
                now.status[row] = GOES_ON if own.serve(int(now.loops[row]), card) is None else STOPPED
                batch.take(row, card)
            if not waiting or controls.is_interrupted():
                return

    def _ended(self, number: int, far: Sequence[BatchProgress], loops: int, stops: Stops) -> Run:
        """The run of a card."""
        if number in self.refused:
            return self.refused_run(number)
        which, row = self.places[number]
        made, status = int(far[which].loops[row]), int(far[which].status[row])
        reason: Reason = "loops" if made >= loops else "interrupted"
        if status >= MATCHED:
            reason = "matched"
        elif status in (FAILED, STOPPED):
            reason = "declined" if status == FAILED else "stopped"
        matched = stops.until[status - MATCHED] if status >= MATCHED else None
        return Run(self.batches[which][0].card(row), made, reason, self.engine, matched,
                   (DECLINED,) if status == FAILED else (), made={self.engine: made})


def _on_cpu(card: Card) -> Card:
    """A card that lies on a GPU as a tensor is packed on the CPU."""
    found: Card = card if isinstance(card, PackedCard) or not hasattr(card, "cpu") else card.cpu()
    return found
