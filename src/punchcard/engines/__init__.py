"""Engines apply a model to a card again and again. They see weights and the card, never instructions."""

from __future__ import annotations

from punchcard.engines import auto, dense, lowered
from punchcard.engines.base import Engine, Run, Watch
from punchcard.engines.scratchpad import engine as scratchpad
from punchcard.errors import PunchcardError, did_you_mean

ENGINES: dict[str, Engine] = {"dense": dense.run, "scratchpad": scratchpad.run, "lowered": lowered.run}
ENGINES["auto"] = auto.choosing(ENGINES)

__all__ = ["ENGINES", "Engine", "Run", "Watch", "find_engine"]


def find_engine(name: str) -> Engine:
    """The engine of this name."""
    if name not in ENGINES:
        raise PunchcardError(f"unknown engine {name!r}{did_you_mean(name, ENGINES)}: there are {', '.join(ENGINES)}")
    return ENGINES[name]
