"""Engines apply a model to a card again and again. They see weights and the card, never instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from punchcard.card.layout import Card, Layout, as_tensor
from punchcard.card.packed import PackedCard
from punchcard.engines import auto
from punchcard.engines.base import Engine, EngineCache, Run, Runner, taking_packed
from punchcard.engines.batch import BatchRunner, SequentialBatchRunner
from punchcard.engines.controls import NO_CONTROLS, Controls, NoCopyWatch, Port, Skip, Watch
from punchcard.errors import PunchcardError, WeightsError, did_you_mean
from punchcard.lazy import call_name
from punchcard.transformer.torch_settings import small_numbers_kept
from punchcard.transformer.weights import Model, Weights, as_module

ENGINES: dict[str, Engine] = {
    "dense": partial(call_name, "punchcard.engines.dense:Dense"),
    "scratchpad": partial(call_name, "punchcard.engines.scratchpad:Scratchpad"),
    "lowered": taking_packed(partial(call_name, "punchcard.engines.lowered:Lowered")),
    "auto": auto.prepare,
}
OBSERVED = "dense"
"""The engine that passes through the model's layers, where `observe` listens: "auto" is this one meanwhile."""
BATCH_ENGINES: dict[str, Callable[..., BatchRunner]] = {
    "lowered": partial(call_name, "punchcard.engines.lowered.batch_runner:LoweredBatchRunner"),
    "auto": auto.batch,
}
"""Engines with a way of their own to run many cards; others run them one after the other."""
DEVICES = ("cpu", "cuda")
GPU_BATCH_ENGINES: dict[str, Callable[..., BatchRunner]] = {
    "lowered": partial(call_name, "punchcard.engines.lowered.gpu.batch:GpuBatchRunner"),
    "auto": auto.gpu_batch,
}
"""The same with `device="cuda"`."""

__all__ = ["ENGINES", "NO_CONTROLS", "OBSERVED", "BatchRunner", "Controls", "Engine", "EngineCache", "NoCopyWatch", "Port",
           "Run", "Runner", "Skip", "Watch", "check_engine", "check_finite", "prepare", "prepare_batch", "takes_packed"]


def prepare(name: str, model: Model, layout: Layout | None, card: Card, *, loops: int | None = None,
            fall_back: bool = False, cache: EngineCache | None = None) -> Runner:
    """A runner of the named engine for a card, or a batch of cards.

    `loops` is how many are expected, None for many. An engine that does not apply raises a `LoweringError`, and one that
    declines a loop ends the run; with `fall_back` a slower engine takes its place, and a note says so. `cache` is where
    prepared code is looked for and kept, beyond what is on disk. Weights that are not finite are refused for every engine;
    `model(card)` is still the equation.
    """
    if check_finite(model).is_observed and name == "auto":
        name = OBSERVED
    if not takes_packed(name):
        if isinstance(card, PackedCard):
            card.layout.check_room()
        model, card = as_module(model), as_tensor(card)
    engine = auto.lowered_or_slower if fall_back and name == "lowered" else ENGINES[name]
    with small_numbers_kept():
        return engine(model, layout, card, loops=loops, cache=cache)


def prepare_batch(name: str, model: Model, layout: Layout | None, cards: Sequence[Card], *, loops: int | None = None,
                  cache: EngineCache | None = None, threads: int | None = None, device: str | None = None) -> BatchRunner:
    """A batch runner of the named engine: cards that stop one by one. `threads`: default one for each core.

    `device` is "cpu" or "cuda", by default where the cards are; packed cards are on the CPU. On a GPU the engine "lowered"
    runs one thread for each card, and "auto" leaves to the CPU what that declines.

    A card that the lowered engine does not take has a run of no loops, which is declined; if it takes none of them, a
    `LoweringError` says why. "auto" gives such cards to a slower engine.
    """
    check_engine(name)
    if check_finite(model).is_observed and name == "auto":
        name = OBSERVED
    if not cards:
        raise PunchcardError("the batch is empty: give one card or more")
    if threads is not None and threads < 1:
        raise PunchcardError(f"threads={threads}: it must be 1 or more")
    where = device or str(getattr(cards[0], "device", "cpu")).split(":")[0]
    if where not in DEVICES:
        raise PunchcardError(f"unknown device {where!r}{did_you_mean(where, DEVICES)}: there are {', '.join(DEVICES)}")
    batches = BATCH_ENGINES if where == "cpu" else GPU_BATCH_ENGINES
    if device == "cuda" and name not in batches:
        raise PunchcardError(f"the engine {name!r} has no batches for device='cuda': use {' or '.join(map(repr, batches))}")
    if name in batches:
        with small_numbers_kept():
            return batches[name](model, layout, cards, loops=loops, cache=cache, threads=threads)
    return SequentialBatchRunner(
        [as_tensor(card) for card in cards], lambda card: prepare(name, model, layout, card, loops=loops, cache=cache))


def check_finite(model: Model) -> Weights:
    """The weights of a model. Refuses NaN and infinity: a card of such a model means nothing."""
    weights = Weights.of(model)
    found = weights.flaw()
    if found is not None:
        raise WeightsError(f"{found}: a run needs finite weights, in the model's number format")
    return weights


def takes_packed(name: str) -> bool:
    """Whether the named engine can run a packed card; otherwise the card is converted to a tensor."""
    check_engine(name)
    return bool(getattr(ENGINES[name], "takes_packed", False))


def check_engine(name: str) -> None:
    """Raise an error for an unknown engine."""
    if name not in ENGINES:
        raise PunchcardError(f"unknown engine {name!r}{did_you_mean(name, ENGINES)}: there are {', '.join(ENGINES)}")
