"""The scratchpad engine: only the scratchpad needs attention, so a loop costs O(n d) and not O(n^2 d).

The paper remarks that only the columns of the scratchpad attend to all the others. Here that is made exact. The *busy*
columns are those whose keys or queries a loop may change, by the layout's facts: a region is busy if one of the rows that
a head matches by changes there. The weights and the facts decide, no name does. How the rest is computed, and why
it comes out as the equation has it, is in `incremental`; this file chooses the columns and makes the run.

Heads whose softmax leaves a tail, and cards without facts, are computed in full; the notes say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from punchcard.card.layout import Layout, Pattern
from punchcard.engines.base import Port, Run, Stops, Watch
from punchcard.engines.dense import threads
from punchcard.engines.scratchpad.incremental import Incremental, TooLarge
from punchcard.transformer.model import LoopedTransformer, TransformerLayer

FEW_COLUMNS = 1 << 14
"""Up to here one thread is faster: a loop is many small steps."""
SCORES_AT_ONCE = 1 << 24


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
    with torch.no_grad(), threads(1 if card.numel() // card.shape[-2] <= FEW_COLUMNS else torch.get_num_threads()):
        state = State(model, card, facts)
        stops = replace(stops, ports={pattern: state.serving(port) for pattern, port in stops.ports.items()})
        for loop in range(1, loops + 1):
            state.loop()
            if watch is not None:
                watch(loop, state.copy())
            matched = stops.matched(state.card)
            if matched is not None:
                return Run(state.copy(), loop, "matched", "scratchpad", matched, state.notes)
            stopped = stops.serve(loop, state.card)
            if stopped is not None:
                return Run(state.copy(), loop, "stopped", "scratchpad", stopped, state.notes)
            if progress is not None:
                progress(loop)
            if interrupted is not None and interrupted():
                return Run(state.copy(), loop, "interrupted", "scratchpad", notes=state.notes)
        return Run(state.copy(), loops, "loops", "scratchpad", notes=state.notes)


class State:
    """A card in the middle of a run: computed incrementally as long as that is exact, else in full."""

    def __init__(self, model: LoopedTransformer, card: Tensor, facts: Layout | None) -> None:
        self.model, self.whole, self.loops = model, card, 0
        self.incremental: Incremental | None = None
        self.in_full = ""
        busy = None if facts is None else busy_columns(model, facts).to(card.device)
        if busy is None:
            self.in_full = "no facts about the card: full softmax in all heads"
        elif len(busy) == card.shape[-1]:
            self.in_full = "every column is busy: full softmax in all heads"
        else:
            self.incremental = Incremental(model, card, busy)

    def loop(self) -> None:
        """X <- TF(W; X)."""
        self.loops += 1
        if self.incremental is not None:
            try:
                self.incremental.loop()
                return
            except TooLarge:
                self.in_full = (f"from loop {self.loops} on: entries beyond {self.incremental.limit:.3g}, or no numbers; "
                                      "full softmax in all heads")
                self.whole, self.incremental = self.copy(), None
        self.whole = whole_loop(self.model, self.whole)

    @property
    def card(self) -> Tensor:
        """The card, which must not be changed."""
        return self.whole if self.incremental is None else self.incremental.card

    def copy(self) -> Tensor:
        """The card, for others to keep."""
        return self.card.clone(memory_format=torch.contiguous_format)

    def serving(self, port: Port) -> Port:
        """The port on a copy of the card, which then takes the card's place."""
        def serve(loop: int, _: Tensor) -> bool:
            card = self.copy()
            goes_on = port(loop, card)
            if self.incremental is not None:
                self.incremental.replace(card)
            else:
                self.whole = card
            return goes_on

        return serve

    @property
    def notes(self) -> tuple[str, ...]:
        """What kept the run from the fast way."""
        return (self.in_full,) if self.incremental is None else self.incremental.notes


def busy_columns(model: LoopedTransformer, facts: Layout) -> Tensor:
    """The columns of the regions in which a row that some head matches by may change."""
    matched = torch.zeros(facts.width, dtype=torch.bool)
    for layer in model.layers:
        if isinstance(layer, TransformerLayer):
            matched |= (layer.key.any(0).any(0) | layer.query.any(0).any(0)).cpu()
    busy = torch.zeros(facts.columns, dtype=torch.bool)
    for block in facts.blocks:
        if bool(matched[facts.rows(block.name)].any()):
            for region in block.changes:
                busy[facts.region(region)] = True
    return busy.nonzero().squeeze(1)


def whole_loop(model: LoopedTransformer, card: Tensor) -> Tensor:
    """The equation for all columns, a few columns at a time where all would need too much memory."""
    step = max(1, SCORES_AT_ONCE // max(1, card.numel() // card.shape[-2]))
    if step >= card.shape[-1]:
        found: Tensor = model(card)
        return found
    for layer in model.layers:
        if isinstance(layer, TransformerLayer):
            keys, values = ([w @ card for w in weights] for weights in (layer.key, layer.value))
            parts = []
            for part in torch.split(card, step, -1):
                attended = part
                for head in range(layer.shape.heads):
                    scores = keys[head].transpose(-1, -2) @ (layer.query[head] @ part)
                    attended = attended + values[head] @ torch.softmax(layer.temperature[head] * scores, dim=-2)
                parts.append(layer.feed_forward(attended))
            card = torch.cat(parts, -1)
    return card
