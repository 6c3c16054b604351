"""The engine "auto": the fastest one that applies. The runner says which it is, and its notes why a faster one is not used.

The rules look at sizes only, so that the same call always takes the same engine:

    lowered      when the card is on the CPU, and there are enough loops, or columns, to be worth compiling for
    dense        for cards so small that the n by n matrices cost less than keeping track of columns
    scratchpad   for all others

What the lowered engine refuses, and single loops that it declines, are left to one of the others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from punchcard.card.layout import Card, Layout, as_tensor
from punchcard.card.packed import PackedCard
from punchcard.engines.base import EngineCache, Run, Runner, TraceReport, taking_packed
from punchcard.engines.batch import BatchRunner, FallbackBatchRunner, SequentialBatchRunner
from punchcard.engines.controls import NO_CONTROLS, Controls
from punchcard.errors import LoweringError

if TYPE_CHECKING:
    from torch import Tensor

    from punchcard.engines.dense import Stepping
    from punchcard.engines.lowered.gpu.device import Device
    from punchcard.transformer.weights import Model

FEW_LOOPS = 64
"""Compiling takes longer than so few loops."""
FEW_REAL_LOOPS = 256
"""The same for cards of real numbers: to compile takes seconds (8 of CPU for 504 rows), a loop milliseconds."""
FEW_COLUMNS = 1 << 13
"""Beyond this a loop of the scratchpad engine takes so long (0.2 s for 65,571 columns) that compiling pays for few."""
FEW_SCORES = 1 << 14
"""n^2 for one card of 128 columns; between 96 and 190 the dense and the scratchpad engine are equally fast on one core."""
MOST_DECLINED = 16
"""Loops in a row that a slower engine makes one by one. Then it makes more at a time, twice as many at each turn."""


@taking_packed
def prepare(model: Model, layout: Layout | None, card: Card, *, loops: int | None = None,
            cache: EngineCache | None = None) -> Runner:
    """See `Engine`."""
    device = str(getattr(card, "device", "cpu"))
    if not device.startswith("cpu"):
        note = f"lowered: the card is on {device}, generated code runs on the CPU"
    elif loops is not None and loops <= few_loops(layout) and card.shape[-1] <= FEW_COLUMNS:
        note = f"lowered: compiling takes longer than {loops} loop{'s' * (loops != 1)}"
    else:
        return lowered_or_slower(model, layout, card, loops=loops, cache=cache)
    return slower(model, layout, card, note).noting(note)


def few_loops(layout: Layout | None) -> int:
    """How many loops are made without compiling. Real numbers are added in another order there: so it is decided once."""
    real = layout is not None and any("real" in block.holds.values() for block in layout.blocks)
    return FEW_REAL_LOOPS if real else FEW_LOOPS


def slower(model: Model, layout: Layout | None, card: Card, why: str) -> Stepping:
    """The fastest engine for cards of this size that makes any loop; `why` it is needed."""
    if isinstance(card, PackedCard):
        card.layout.check_room(f" ({why})")
    from punchcard.transformer.weights import as_module

    if card.shape[-1] * math.prod(card.shape) // card.shape[-2] <= FEW_SCORES:
        from punchcard.engines.dense import Dense

        return Dense(as_module(model), layout, as_tensor(card))
    from punchcard.engines.scratchpad import Scratchpad

    return Scratchpad(as_module(model), layout, as_tensor(card))


@taking_packed
def lowered_or_slower(model: Model, layout: Layout | None, card: Card, *, loops: int | None = None,
                      cache: EngineCache | None = None) -> Runner:
    """The lowered engine where it applies, and a slower one where it does not."""
    from punchcard.engines.lowered import Lowered

    try:
        fast = Lowered(model, layout, card, loops=loops, cache=cache)
    except LoweringError as why:
        return slower(model, layout, card, str(why)).noting(f"not lowered: {why}")
    return Alternating(fast, lambda now, why: slower(model, layout, now, why))


def batch(model: Model, layout: Layout | None, cards: Sequence[Card], *, loops: int | None = None,
          cache: EngineCache | None = None, threads: int | None = None) -> BatchRunner:
    """The batch runner of the lowered engine; cards that it declines are left to a slower engine."""
    from punchcard.engines.lowered.batch_runner import LoweredBatchRunner

    in_all = None if loops is None else loops * len(cards)
    try:
        if in_all is not None and in_all <= FEW_LOOPS:
            raise LoweringError(f"compiling takes longer than {in_all} loops")
        fast = LoweredBatchRunner(model, layout, cards, cache=cache, threads=threads)
    except LoweringError as why:
        reason = str(why)
        return SequentialBatchRunner([as_tensor(card) for card in cards],
                      lambda card: slower(model, layout, card, reason).noting(f"not lowered: {reason}"))
    return FallbackBatchRunner(fast, lambda card: lowered_or_slower(model, layout, card, cache=cache))


def gpu_batch(model: Model, layout: Layout | None, cards: Sequence[Card], *, loops: int | None = None,
              cache: EngineCache | None = None, threads: int | None = None, device: Device | None = None) -> BatchRunner:
    """The batch runner on a GPU; what it declines, card by card, is left to the CPU."""
    from punchcard.engines.lowered.gpu.batch import GpuBatchRunner

    fast = GpuBatchRunner(model, layout, cards, cache=cache, device=device)
    return FallbackBatchRunner(fast, lambda card: lowered_or_slower(model, layout, card, cache=cache),
                    "gpu: cards whose next loop it declined were finished by the CPU")


class Alternating(Runner):
    """The lowered engine makes the loops; a slower one makes those that it declines, and hands the card back."""

    def __init__(self, fast: Runner, slow: Callable[[Card, str], Stepping]) -> None:
        self.engine, self.compile_seconds = fast.engine, fast.compile_seconds
        self._fast, self._prepare_slow = fast, slow
        self._slow: Stepping | None = None
        self._declined: Counter[str] = Counter()

    @property
    def card(self) -> Tensor:
        return self._fast.card

    @property
    def raw_card(self) -> Card:
        return self._fast.raw_card

    def take(self, card: Card) -> None:
        self._fast.take(card)

    def run(self, loops: int, controls: Controls = NO_CONTROLS) -> Run:
        made, declined = Counter({self.engine: 0}), Counter[str]()
        before, in_a_row, traces = self.compile_seconds, 0, list[TraceReport | None]()

        def part(runner: Runner, count: int) -> Run:
            ran = runner.run(count, controls.after(made.total()))
            made.update(ran.made)
            traces.append(ran.traces)
            return ran

        while (ran := part(self._fast, loops - made.total())).reason == "declined":
            in_a_row = in_a_row + 1 if ran.loops == 0 else 1
            count = 1 if in_a_row <= MOST_DECLINED else 1 << min(in_a_row - MOST_DECLINED + 5, 60)
            why = ran.notes[-1]
            slow = self._slower(ran.raw_card, why)
            ran = part(slow, min(count, loops - made.total()))
            declined[f"loops were made by the {slow.engine} engine: {why}"] += ran.loops
            self._fast.take(ran.raw_card)
            if ran.reason != "loops" or made.total() == loops:
                break
        self.compile_seconds = self._fast.compile_seconds
        self._declined += declined
        self.notes = (*self._fast.notes, *(f"{count} {what}" for what, count in self._declined.items()))
        notes = (*self._fast.notes, *(f"{count} {what}" for what, count in declined.items()))
        return replace(ran, loops=made.total(), engine=made.most_common(1)[0][0], notes=notes, made=made,
                       compile_seconds=self.compile_seconds - before, traces=TraceReport.total(*traces))

    def _slower(self, card: Card, why: str) -> Stepping:
        """The slower engine with this card: what it prepared once, it keeps."""
        if self._slow is None:
            self._slow = self._prepare_slow(card, why)
        else:
            self._slow.take(as_tensor(card))
        return self._slow
