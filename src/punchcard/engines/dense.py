"""The dense engine: the equation, literally. X <- TF(W; X), T times (algorithm "Looped Transformer")."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from punchcard.card.layout import Layout, Pattern
from punchcard.engines.base import Port, Run, Stops, Watch
from punchcard.errors import PunchcardError
from punchcard.transformer.model import LoopedTransformer

MOST_BYTES = 16 * 2**30
"""Scores, weights and a copy of them are n by n for each card; beyond this a run could not end."""
FEW_COLUMNS = 512
"""Up to here the matrices are so small that more than one thread makes torch slower, many times so under load."""


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
    stops = Stops.of(card, facts, until, ports)
    needed = 3 * card.shape[-1] * card.numel() // card.shape[-2] * card.element_size()
    if needed > MOST_BYTES:
        raise PunchcardError(f"the dense engine needs {needed / 2**30:.0f} GiB for attention over {card.shape[-1]} columns: "
                             f"the most is {MOST_BYTES // 2**30} GiB; use another engine")
    with torch.no_grad(), threads(1 if card.shape[-1] <= FEW_COLUMNS else torch.get_num_threads()):
        for loop in range(1, loops + 1):
            card = model(card)
            if watch is not None:
                watch(loop, card)
            matched = stops.matched(card)
            if matched is not None:
                return Run(card, loop, "matched", "dense", matched)
            stopped = stops.serve(loop, card)
            if stopped is not None:
                return Run(card, loop, "stopped", "dense", stopped)
            if progress is not None:
                progress(loop)
            if interrupted is not None and interrupted():
                return Run(card, loop, "interrupted", "dense")
    return Run(card, loops, "loops", "dense")


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch use this many threads inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
