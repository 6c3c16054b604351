"""The dense engine: the equation, literally. X <- TF(W; X), T times (algorithm "Looped Transformer")."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from punchcard.card.layout import Layout, Pattern
from punchcard.engines.interface import Run, Watch
from punchcard.errors import LayoutError, PunchcardError
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
    until: Pattern | None = None,
    watch: Watch | None = None,
    interrupted: Callable[[], bool] | None = None,
) -> Run:
    """See `Engine`."""
    if until is not None and facts is None:
        raise LayoutError("`until` names rows of the card: it needs `facts`, the card's layout")
    needed = 3 * card.shape[-1] * card.numel() // card.shape[-2] * card.element_size()
    if needed > MOST_BYTES:
        raise PunchcardError(f"the dense engine needs {needed / 2**30:.0f} GiB for attention over {card.shape[-1]} columns: "
                             f"the most is {MOST_BYTES // 2**30} GiB")
    with torch.no_grad(), _threads(1 if card.shape[-1] <= FEW_COLUMNS else torch.get_num_threads()):
        for loop in range(1, loops + 1):
            card = model(card)
            if watch is not None:
                watch(loop, card)
            if until is not None and facts is not None and bool(facts.matches(card, until).all()):
                return Run(card, loop, "matched")
            if interrupted is not None and interrupted():
                return Run(card, loop, "interrupted")
    return Run(card, loops, "loops")


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
