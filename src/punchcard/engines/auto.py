"""The engine "auto": the fastest one that applies. `Run.engine` says which it was, `Run.notes` why a faster one was not.

The rules look at sizes only, so that the same call always takes the same engine:

    lowered      when it is there, the card is on the CPU, and there are enough loops to be worth compiling for; it
                 refuses what it cannot lower before the first loop, with a `LoweringError`
    dense        for cards so small that the n by n matrices cost less than keeping track of columns
    scratchpad   for all others
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from torch import Tensor

from punchcard.card.layout import Layout, Pattern
from punchcard.engines.base import Engine, Port, Run, Watch
from punchcard.errors import LoweringError
from punchcard.transformer.model import LoopedTransformer

FEW_LOOPS = 64
"""Compiling takes longer than so few loops."""
FEW_SCORES = 1 << 14
"""n^2 for one card of 128 columns; between 96 and 190 the dense and the scratchpad engine are equally fast on one core."""


def choosing(engines: Mapping[str, Engine]) -> Engine:
    """An engine that passes each run on to one of these."""

    def run(
        model: LoopedTransformer,
        card: Tensor,
        loops: int,
        *,
        facts: Layout | None = None,
        until: Pattern | Sequence[Pattern] = (),
        ports: Mapping[Pattern, Port] | None = None,
        watch: Watch | None = None,
        interrupted: Callable[[], bool] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Run:
        """See `Engine`."""
        def make(name: str) -> Run:
            return engines[name](model, card, loops, facts=facts, until=until, ports=ports, watch=watch,
                                 interrupted=interrupted, progress=progress)

        notes: tuple[str, ...] = ()
        if "lowered" in engines:
            if card.device.type != "cpu":
                notes = (f"lowered: the card is on {card.device}, generated code runs on the CPU",)
            elif loops <= FEW_LOOPS:
                notes = (f"lowered: compiling takes longer than {loops} loops",)
            else:
                try:
                    return make("lowered")
                except LoweringError as refusal:
                    notes = (f"lowered: {refusal}",)
        scores = card.shape[-1] * card.numel() // card.shape[-2]
        ran = make("dense" if scores <= FEW_SCORES else "scratchpad")
        return replace(ran, notes=(*notes, *ran.notes))

    return run
