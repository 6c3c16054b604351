"""Engines apply a model to a card again and again. They see weights and the card, never instructions."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import Tensor

from punchcard.card.layout import Layout
from punchcard.engines import auto
from punchcard.engines.base import Engine, Port, Run, Runner, RunOnce, Watch, once
from punchcard.engines.dense import Dense
from punchcard.engines.lowered import Lowered
from punchcard.engines.prepared import Prepared
from punchcard.engines.scratchpad import Scratchpad
from punchcard.errors import PunchcardError, did_you_mean
from punchcard.transformer.model import LoopedTransformer

ENGINES: dict[str, Engine | Any] = {
    "dense": Dense, "scratchpad": Scratchpad, "lowered": Lowered, "auto": auto.prepare}
_BUILT_IN = dict(ENGINES)

__all__ = ["ENGINES", "Engine", "Port", "Prepared", "Run", "Runner", "Watch", "find_engine", "prepare"]


def prepare(name: str, model: LoopedTransformer, layout: Layout | None, card: Tensor, *, loops: int | None = None,
            fall_back: bool = False, kept: Prepared | None = None) -> Runner:
    """A runner of the named engine for a card, or a batch of cards.

    `loops` is how many are expected, None for many. An engine that does not apply raises a `LoweringError`, and one that
    declines a loop ends the run; with `fall_back` a slower engine takes its place, and a note says so. `kept` is where
    prepared code is looked for and kept, beyond what is on disk.
    """
    _check(name)
    engine = auto.lowered_or_slower if fall_back and name == "lowered" else ENGINES[name]
    runner: Runner = engine(model, layout, card, loops=loops, kept=kept)
    return runner


def find_engine(name: str) -> RunOnce:
    """The engine as one function, for callers that do not prepare their runs yet."""
    _check(name)
    own: Any = ENGINES[name]
    if own is not _BUILT_IN.get(name):
        return own  # type: ignore[no-any-return]
    return once(partial(prepare, name, fall_back=True))


def _check(name: str) -> None:
    if name not in ENGINES:
        raise PunchcardError(f"unknown engine {name!r}{did_you_mean(name, ENGINES)}: there are {', '.join(ENGINES)}")
