"""What an engine is: a model, a card and a number of loops in; the last card, and why it stopped, out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from torch import Tensor

from punchcard.card.layout import Layout, Pattern
from punchcard.transformer.model import LoopedTransformer

Watch: TypeAlias = Callable[[int, Tensor], None]
"""Called after every loop with the number of loops made and the card, which it must not change."""


@dataclass(frozen=True)
class Run:
    """The card after the last loop, how many loops were made, and why no more."""

    card: Tensor
    loops: int
    reason: Literal["matched", "loops", "interrupted"]


class Engine(Protocol):
    """Applies a model to a card, or a batch of cards, up to `loops` times.

    `facts` is the card's layout. `until` is a pattern on its named rows, looked for after every loop; the run stops once
    every card of the batch shows it. `watch` sees the card after every loop; `interrupted` is asked between loops.
    """

    def __call__(
        self,
        model: LoopedTransformer,
        card: Tensor,
        loops: int,
        *,
        facts: Layout | None = None,
        until: Pattern | None = None,
        watch: Watch | None = None,
        interrupted: Callable[[], bool] | None = None,
    ) -> Run: ...
