"""Engines apply a model to a card again and again. They see weights and the card, never instructions."""

from __future__ import annotations

from torch import Tensor

from punchcard.card.layout import Layout
from punchcard.engines import auto
from punchcard.engines.base import Engine, Glance, Port, Run, Runner, Watch
from punchcard.engines.dense import Dense
from punchcard.engines.lowered import Lowered
from punchcard.engines.prepared import Prepared
from punchcard.engines.scratchpad import Scratchpad
from punchcard.errors import PunchcardError, did_you_mean
from punchcard.transformer.model import LoopedTransformer

ENGINES: dict[str, Engine] = {
    "dense": Dense, "scratchpad": Scratchpad, "lowered": Lowered, "auto": auto.prepare}

__all__ = ["ENGINES", "Engine", "Glance", "Port", "Prepared", "Run", "Runner", "Watch", "check_engine", "prepare"]


def prepare(name: str, model: LoopedTransformer, layout: Layout | None, card: Tensor, *, loops: int | None = None,
            fall_back: bool = False, kept: Prepared | None = None) -> Runner:
    """A runner of the named engine for a card, or a batch of cards.

    `loops` is how many are expected, None for many. An engine that does not apply raises a `LoweringError`, and one that
    declines a loop ends the run; with `fall_back` a slower engine takes its place, and a note says so. `kept` is where
    prepared code is looked for and kept, beyond what is on disk.
    """
    check_engine(name)
    engine = auto.lowered_or_slower if fall_back and name == "lowered" else ENGINES[name]
    runner: Runner = engine(model, layout, card, loops=loops, kept=kept)
    return runner


def check_engine(name: str) -> None:
    """Refuse a name that is not an engine's."""
    if name not in ENGINES:
        raise PunchcardError(f"unknown engine {name!r}{did_you_mean(name, ENGINES)}: there are {', '.join(ENGINES)}")
