"""What happens inside the loops of a run, computed when it is asked for: the card at each stage, and who attends to whom.

A small card is computed in all columns, as the dense engine computes it: with torch if numbers are real, and with NumPy if
no sum is rounded, so that the order of a sum makes no difference and torch is not imported. Of a large one these are
computed (`column_subset.py`): columns where the computation happens or a named value is, those that the loop changes, those
that were asked for, and all that they need.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from punchcard.card.formats import AnyArray, as_array
from punchcard.card.layout import Card
from punchcard.card.packed import PackedCard
from punchcard.engines import check_finite
from punchcard.errors import PunchcardError
from punchcard.machines.base import Machine
from punchcard.machines.display_values import DisplayValue
from punchcard.machines.running import Mark
from punchcard.transformer import equation
from punchcard.transformer.weights import active_columns
from punchcard.viewer.cache import BoundedCache
from punchcard.viewer.column_subset import ColumnSubset, NeedsAllColumns
from punchcard.viewer.stages import SMALL, Columns, LoopStages, differing_columns, entries_of
from punchcard.viewer.timeline import Timeline

MOST_SHOWN = 192
"""Columns of a large card that are always shown."""
MOST_WANTED = 64
"""Columns that a view may ask for beside them."""
MOST_IN_FULL = 1 << 13
"""Columns of a card that is computed in all of them if some are not enough: it takes seconds."""
MOST_BYTES_IN_FULL = 1 << 30
LOOPS_KEPT = 6


class HeadAttention(NamedTuple):
    """One head in one loop. `weights[i, j]` is how much taking column j takes of column `sources[i]`."""

    sources: Columns
    weights: AnyArray
    scores: AnyArray
    """Of all columns of the card, by taking columns; without the temperature."""


class _GivenLoop(NamedTuple):
    """The cards before and after a loop of a run that the caller makes."""

    card: Card
    after: Card


class LoopInspector:
    """The loops of one run."""

    def __init__(self, machine: Machine[Any, Any], program: object, given: bytes, max_steps: int | None,
                 values: Sequence[DisplayValue]) -> None:
        check_finite(machine.weights)
        self.machine, self.layout, self._display_values = machine, machine.layout, values
        self.exact = (machine.needed_bits > 0 and machine.precision.temperature is None
                      and machine.precision.name in ("float64", "float32")
                      and not machine.weights.has_module)  # whoever has the module may have changed them
        self.small = self.layout.columns <= SMALL
        near = "dense" if self.small and not self.exact else "auto"
        self.timeline = Timeline(machine, program, given, max_steps, near=near)
        self._kept: BoundedCache[LoopStages] = BoundedCache(LOOPS_KEPT)
        self._wanted: set[int] = set()
        self._given: _GivenLoop | None = None

    @cached_property
    def columns_shown(self) -> Columns:
        """The columns that are always shown: of a small card all."""
        if self.small:
            return np.arange(self.layout.columns)
        named = {column for shown in self._display_values for column in range(shown.column, shown.column + shown.columns)}
        named |= {shown.pending.column for shown in self._display_values if shown.pending is not None}
        return np.unique(np.array([*self._active[:MOST_SHOWN], *sorted(named)], np.intp))

    @cached_property
    def _active(self) -> Columns:
        """Where the computation happens: always computed, since any other column may take from there."""
        return active_columns(self.machine.weights, self.layout)

    @cached_property
    def _subset(self) -> ColumnSubset:
        return ColumnSubset(self.machine.weights, self.layout)

    def want(self, columns: Sequence[int]) -> None:
        """Show these columns as well from now on."""
        for column in columns:
            if column not in range(self.layout.columns):
                raise PunchcardError(f"column {column}: the card has {self.layout.columns}, counted from 0")
        new = set(columns) - self._wanted - set(self.columns_shown.tolist())
        if new and not self.small:
            if len(self._wanted) + len(new) > MOST_WANTED:
                self._wanted.clear()
            if len(new) > MOST_WANTED:
                raise PunchcardError(f"{len(new)} columns: at most {MOST_WANTED} can be added to those always shown")
            self._wanted |= new
            self._kept.clear()

    def give(self, card: Card, after: Card) -> None:
        """Look into a loop of a run that the caller makes: the cards before and after it."""
        self._given = _GivenLoop(card, after)
        self._kept.clear()

    def card_at(self, loop: int) -> Card:
        """The card as a loop begins."""
        return self._given.card if self._given is not None else self.timeline.served(loop).card

    def _card_after(self, loop: int) -> Card:
        """The card as the engine leaves it after a loop."""
        return self._given.after if self._given is not None else self.timeline.mark(loop + 1).raw_card

    def has_ended(self, loop: int) -> bool:
        """Whether the run is known to make no loop of this number."""
        return self.timeline.end is not None and loop >= self.timeline.end.loops

    # Cards

    def card(self, loop: int, stage: int) -> tuple[Columns, AnyArray, list[tuple[int, int]]]:
        """Columns, their entries, and (row, column) of what has changed since the stage before."""
        before: tuple[Columns, AnyArray] | None = None
        if stage:
            inside = self.stages(loop)
            columns, entries = inside.columns, inside.stages[stage]
            before = columns, inside.stages[stage - 1]
        else:
            columns = self._columns_at(loop)
            entries = entries_of(self.timeline.served(loop).card, None if self.small else columns)
            if loop and (last := self._stages_if_possible(loop - 1)) is not None:
                before = last.columns, last.stages[-2]
        if before is None:
            return columns, entries, []
        both, here, there = np.intersect1d(columns, before[0], assume_unique=True, return_indices=True)
        rows, places = np.nonzero(differ(entries[:, here], before[1][:, there]))
        return columns, entries, list(zip(rows.tolist(), both[places].tolist(), strict=True))

    def _columns_at(self, loop: int) -> Columns:
        """The columns that are shown between two loops: what the one before changed, and what the next one needs."""
        if self.small:
            return self.columns_shown
        found = [self.columns_shown, np.array(sorted(self._wanted), np.intp)]
        around = [loop - 1] * (loop > 0) + [loop] * (not self.has_ended(loop))
        found += [inside.columns for inside in map(self._stages_if_possible, around) if inside is not None]
        return np.unique(np.concatenate(found))

    # Stages

    def _stages_if_possible(self, loop: int) -> LoopStages | None:
        """A card between two loops can be shown even if the loops cannot."""
        try:
            return self.stages(loop)
        except PunchcardError:
            return None

    def stages(self, loop: int) -> LoopStages:
        """The card at each stage of a loop. The last loops that were computed are kept."""
        found = self._kept.get(loop)
        if found is None:
            found = self._kept[loop] = self._small_loop(loop) if self.small else self._large_loop(loop)
        return found

    def _small_loop(self, loop: int) -> LoopStages:
        """The equation in all columns. If no host takes part, that is the next card, too."""
        found = self._in_full(entries_of(self.card_at(loop)))
        if (self._given is None and self.exact and not self.machine.has_ports and loop + 1 < self.timeline.last
                and loop >= self.timeline.known):
            try:
                card = PackedCard.of(self.layout, found.stages[-1], self.machine.precision.name)
            except PunchcardError:
                return found  # not a card that the layout declares: an engine has to say what comes of it
            ended = any(bool(self.layout.matches(card, pattern)) for pattern in self.machine.halting)
            self.timeline.put(Mark(card, loop + 1, "dense", ended))
        return found

    def _large_loop(self, loop: int) -> LoopStages:
        """Some columns: those that the loop changes, those that are shown, and those that they need."""
        card, after = self.card_at(loop), self._card_after(loop)
        changed = differing_columns(card, after)
        asked = np.array(sorted(self._wanted), np.intp)
        wanted = np.unique(np.concatenate([self.columns_shown, self._active, changed, asked]))
        try:
            found = self._subset.loop(card, wanted)
            if not self._by_host(found) and not np.allclose(
                    found.stages[-1], entries_of(after, found.columns), rtol=1e-6, atol=1e-6):
                raise NeedsAllColumns("the end of the loop is not what the engine has")
        except NeedsAllColumns as why:
            if self.layout.columns > MOST_IN_FULL:
                raise PunchcardError(f"loop {loop} of a card of {self.layout.columns} columns cannot be shown layer by "
                                     f"layer: {why}") from None
            return self._in_full(entries_of(card)).only(wanted)
        return found.only(np.setdiff1d(found.columns, np.setdiff1d(self._subset.witnesses, wanted)))

    def _in_full(self, card: AnyArray) -> LoopStages:
        weights = self.machine.weights
        if card.nbytes > MOST_BYTES_IN_FULL:
            raise PunchcardError(f"a loop of {self.layout.width} rows and {self.layout.columns} columns cannot be shown "
                                 "layer by layer: it would take too much memory")
        if self.exact or not self.small:
            with equation.one_thread():
                found = equation.stages(weights.layers, card)
        else:
            import torch

            from punchcard.engines.dense import threads

            with torch.no_grad(), threads(1):
                found = [as_array(stage) for stage in weights.module.stages(torch.from_numpy(card).to(weights.module.dtype))]
        return LoopStages(np.arange(card.shape[1]), found)

    def _by_host(self, found: LoopStages) -> bool:
        """Whether a host may have changed the card after a loop."""
        if not self.machine.has_ports:
            return False
        for pattern in self.machine.events:
            column = np.searchsorted(found.columns, self.layout.pattern_column(pattern))
            bits = found.stages[-1][self.layout.rows(pattern.rows), column]
            if all(want == 0 or abs(bit - want) < 0.5 for want, bit in zip(pattern.bits, bits.tolist(), strict=True)):
                return True
        return False

    # Attention

    def attention(self, loop: int, layer: int, head: int, part: slice = equation.EVERY_COLUMN) -> HeadAttention:
        """Whom the computed columns, or some of them, attend to."""
        inside = self.stages(loop)
        card = inside.stages[2 * layer]
        if self.small:
            scores, weights = equation.attention(self.machine.weights.layers[layer], head, card, part)
            return HeadAttention(inside.columns, weights, scores)
        self._subset.take(self.card_at(loop))
        with equation.silent():
            return HeadAttention(*self._subset.weights_of(layer, head, card, inside.columns, part))

    def head_outputs(self, loop: int, layer: int, column: int) -> list[AnyArray]:
        """What each head of a layer adds to a column: all rows."""
        inside, weights = self.stages(loop), self.machine.weights.layers[layer]
        place, card, found = int(np.searchsorted(inside.columns, column)), inside.stages[2 * layer], []
        for head in range(weights.heads):
            attention = self.attention(loop, layer, head, slice(place, place + 1))
            taken = card[:, np.searchsorted(inside.columns, attention.sources)] @ attention.weights
            found.append((weights.value[head] @ taken)[:, 0])
        return found


def differ(one: AnyArray, other: AnyArray) -> AnyArray:
    """Which entries are different numbers; NaN is not different from NaN."""
    found: AnyArray = (one != other) & ~(np.isnan(one) & np.isnan(other))
    return found
