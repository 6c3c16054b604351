"""Engines apply a model to a card again and again. They see weights and the card, never instructions."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from punchcard.card.layout import Card, Layout, as_tensor
from punchcard.engines.base import Engine, Glance, Port, Run, Runner, Watch
from punchcard.engines.prepared import Prepared
from punchcard.errors import PunchcardError, did_you_mean
from punchcard.transformer.weights import Model, as_module


@dataclass(frozen=True)
class Later:
    """An engine that is imported when it is first used: most of them need torch."""

    module: str
    name: str
    takes_packed: bool = False

    def __call__(self, *given: Any, **how: Any) -> Runner:
        runner: Runner = getattr(import_module(self.module), self.name)(*given, **how)
        return runner


ENGINES: dict[str, Engine] = {
    "dense": Later("punchcard.engines.dense", "Dense"),
    "scratchpad": Later("punchcard.engines.scratchpad", "Scratchpad"),
    "lowered": Later("punchcard.engines.lowered", "Lowered", takes_packed=True),
    "auto": Later("punchcard.engines.auto", "prepare", takes_packed=True),
}
LOWERED_OR_SLOWER = Later("punchcard.engines.auto", "lowered_or_slower", takes_packed=True)

__all__ = ["ENGINES", "Engine", "Glance", "Port", "Prepared", "Run", "Runner", "Watch", "check_engine", "prepare",
           "takes_packed"]


def prepare(name: str, model: Model, layout: Layout | None, card: Card, *, loops: int | None = None,
            fall_back: bool = False, kept: Prepared | None = None) -> Runner:
    """A runner of the named engine for a card, or a batch of cards.

    `loops` is how many are expected, None for many. An engine that does not apply raises a `LoweringError`, and one that
    declines a loop ends the run; with `fall_back` a slower engine takes its place, and a note says so. `kept` is where
    prepared code is looked for and kept, beyond what is on disk.
    """
    check_engine(name)
    engine = LOWERED_OR_SLOWER if fall_back and name == "lowered" else ENGINES[name]
    if not _takes_packed(engine):
        model, card = as_module(model), as_tensor(card)
    runner: Runner = engine(model, layout, card, loops=loops, kept=kept)
    return runner


def takes_packed(name: str) -> bool:
    """Whether the named engine can run a packed card as it is: else it is made a tensor."""
    check_engine(name)
    return _takes_packed(ENGINES[name])


def _takes_packed(engine: Engine) -> bool:
    return bool(getattr(engine, "takes_packed", False))


def check_engine(name: str) -> None:
    """Refuse a name that is not an engine's."""
    if name not in ENGINES:
        raise PunchcardError(f"unknown engine {name!r}{did_you_mean(name, ENGINES)}: there are {', '.join(ENGINES)}")
