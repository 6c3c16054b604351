"""For the tests of engines: prepare and run in one call, with a slower engine for what the named one leaves."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor

from punchcard.card.encoding import encode_bits
from punchcard.card.layout import Layout
from punchcard.engines import Controls, EngineCache, Run, prepare
from punchcard.engines.lowered import Lowered
from punchcard.engines.lowered.compiled_model import CompiledModel
from punchcard.transformer.model import LoopedTransformer

_kept: WeakKeyDictionary[LoopedTransformer, EngineCache] = WeakKeyDictionary()


def kept_for(model: LoopedTransformer) -> EngineCache:
    """What was prepared for a model, as a machine keeps it."""
    return _kept.setdefault(model, EngineCache())


def card_with(layout: Layout, entries: Mapping[tuple[str, str], int | list[int] | float | Tensor]) -> Tensor:
    """A card that holds these entries, by block and region. Integers are encoded as bits, one for each column."""
    card = layout.blank()
    for (name, region), value in entries.items():
        layout.put(card, name, region, value if isinstance(value, float | Tensor)
                   else encode_bits(value, layout.place(name).size))
    return card


def run_on(name: str, model: LoopedTransformer, card: Tensor, loops: int, *, facts: Layout | None = None,
           **options: Any) -> Run:
    runner = prepare(name, model, facts, card, loops=loops, fall_back=True, cache=kept_for(model))
    return runner.run(loops, Controls(**options))


run_dense = partial(run_on, "dense")
run_scratchpad = partial(run_on, "scratchpad")
run_lowered = partial(run_on, "lowered")


def compiled_model_of(model: LoopedTransformer, card: Tensor, layout: Layout | None) -> CompiledModel:
    """The code for a card, or a `LoweringError`."""
    return Lowered(model, layout, card, cache=kept_for(model)).states[0].compiled_model
