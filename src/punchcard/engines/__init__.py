"""Engines apply a model to a card again and again. They see weights and the card, never instructions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from punchcard.card.layout import Layout, Pattern
from punchcard.engines import auto, dense, lowered, scratchpad
from punchcard.engines.base import Engine, Port, Run, Runner, Watch
from punchcard.errors import PunchcardError, did_you_mean
from punchcard.transformer.model import LoopedTransformer

ENGINES: dict[str, Engine] = {"dense": dense.run, "scratchpad": scratchpad.run, "lowered": lowered.run}
ENGINES["auto"] = auto.choosing(ENGINES)

__all__ = ["ENGINES", "Engine", "Port", "Run", "Runner", "Watch", "find_engine", "prepare"]


def find_engine(name: str) -> Engine:
    """The engine of this name."""
    if name not in ENGINES:
        raise PunchcardError(f"unknown engine {name!r}{did_you_mean(name, ENGINES)}: there are {', '.join(ENGINES)}")
    return ENGINES[name]


def prepare(name: str, model: LoopedTransformer, layout: Layout, card: Tensor, *, loops: int | None = None) -> Runner:
    """A runner of the named engine for a card; `loops` is how many are expected, None for many."""
    return _Adapter(name, find_engine(name), model, layout, card)


class _Adapter(Runner):
    """An engine that is still one function."""

    def __init__(self, name: str, engine: Engine, model: LoopedTransformer, layout: Layout, card: Tensor) -> None:
        self.engine, self.notes, self.compile_seconds = name, (), 0.0
        self._engine, self._model, self._layout, self._card = engine, model, layout, card

    @property
    def card(self) -> Tensor:
        return self._card

    def run(
        self, loops: int, *, until: Pattern | Sequence[Pattern] = (), ports: Mapping[Pattern, Port] | None = None,
        watch: Watch | None = None, interrupted: Callable[[], bool] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Run:
        ran = self._engine(self._model, self._card, loops, facts=self._layout, until=until, ports=ports, watch=watch,
                           interrupted=interrupted, progress=progress)
        self._card, self.engine, self.notes = ran.card, ran.engine, ran.notes
        self.compile_seconds += ran.compile_seconds
        return ran
