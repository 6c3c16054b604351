"""A layer's weights as lists of what is not 0, and its feed-forward as a rule on symbolic rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from punchcard.card.formats import NumberFormat
from punchcard.card.layout import Layout
from punchcard.engines.lowered.graph.builder import Graph
from punchcard.engines.lowered.graph.nodes import ZERO, Array, Linear
from punchcard.errors import LoweringError
from punchcard.transformer.exactness import rows_of_numbers
from punchcard.transformer.grids import power_of_two
from punchcard.transformer.softmax import Scores, hard_lead, score_roundings
from punchcard.transformer.sums import Bounds, LayerSums, Sums, violation
from punchcard.transformer.weights import Weights

ROUNDING = 2.0**-40
"""More than sums of ranges may be off, in proportion."""
Indices = npt.NDArray[np.int64]
Sparse = list[tuple[int, float]]
"""Places and coefficients of a row of a matrix that are not 0."""
Rows = dict[int, Linear]
"""The rows of a group of columns that are not 0, by number."""


@dataclass(frozen=True)
class HeadLists:
    """K and Q by dimension, V by the row it writes, and what is known of the rounding of scores, but for their size."""

    key: list[Sparse]
    query: list[Sparse]
    value: dict[int, Sparse]
    temperature: float
    dtype: str
    scores: Scores

    def lead(self, queries: Array, keys: Array) -> float:
        """How far below the best a score has a weight of exactly 0, for Q x and K x up to these sizes."""
        used = (queries > 0) & (keys > 0)
        return hard_lead(self.dtype, self.temperature, replace(self.scores, largest=float(queries[used] @ keys[used])))

    def apply(self, side: list[Sparse], rows: Mapping[int, Linear]) -> list[Linear]:
        """K x or Q x."""
        return [combine(entries, rows) for entries in side]

    def moved(self, rows: Mapping[int, Linear]) -> Rows:
        """V x."""
        found = {into: combine(entries, rows) for into, entries in self.value.items()}
        return {into: linear for into, linear in found.items() if not linear.is_zero}


@dataclass(frozen=True)
class LayerLists:
    """One layer, and how large its sums may get in the model's number format."""

    heads: list[HeadLists]
    inputs: list[Sparse]
    outputs: list[Sparse]
    b2: Sparse
    sums: LayerSums
    limits: NumberFormat

    @cached_property
    def written(self) -> set[int]:
        """Rows that the layer may change."""
        rows = {row for head in self.heads for row in head.value} | {row for row, _ in self.b2}
        return rows | {row for entries in self.outputs for row, _ in entries}

    @cached_property
    def matched(self) -> set[int]:
        """Rows that heads match by."""
        return {row for head in self.heads for entries in (*head.key, *head.query) for row, _ in entries}

    @cached_property
    def attended(self) -> set[int]:
        """Rows that heads read."""
        return self.matched | {row for head in self.heads for entries in head.value.values() for row, _ in entries}

    def combines(self, rows: set[int]) -> bool:
        """Whether some of the rows matter beside others: in a head, or in a unit that has more than one input."""
        return bool(rows & self.attended) or any(row in rows for e in self.inputs if len(e) > 1 for row, _ in e)

    def free_of(self, rows: set[int]) -> set[int]:
        """The rows that the feed-forward writes, and none of its units that look at certain rows does."""
        bound = self._units_of(rows)
        taken = {row for unit in bound for row, _ in self.outputs[unit]}
        return {row for entries in self.outputs for row, _ in entries} - taken

    def spread(self, rows: set[int]) -> set[int]:
        """Rows that may differ between two columns after the layer, where before it they differ in these rows only."""
        found = set(rows)
        for head in self.heads:
            if any(row in rows for entries in head.query for row, _ in entries):
                found |= set(head.value)
        return found | {row for unit in self._units_of(found) for row, _ in self.outputs[unit]}

    def _units_of(self, rows: set[int]) -> set[int]:
        """The hidden units that look at certain rows."""
        return set(self.sums.w1.rows[np.isin(self.sums.w1.columns, list(rows))].tolist())

    def feed_forward(self, graph: Graph, rows: Rows, known: Rows | None = None, only: set[int] | None = None) -> Rows:
        """x + W2 relu(W1 x + b1) + b2. Rows, which have at most one term, come back as they are where no unit opens.

        What is `known` of the result is taken from there; with `only`, no other rows are worked out.
        """
        changed: Rows = {}
        known = known or {}

        def change(row: int, by: Linear, weight: float) -> None:
            if row not in changed:
                changed[row] = rows[row].copy() if row in rows else Linear()
            changed[row].add(by, weight)

        def wanted(row: int) -> bool:
            return row not in known and (only is None or row in only)

        for row, offset in self.b2:
            if wanted(row):
                change(row, Linear({}, np.array([offset])), 1.0)
        for unit in self._open(rows):
            if not any(wanted(row) for row, _ in self.outputs[unit]):
                continue
            inner = combine(self.inputs[unit], rows)
            if self.sums.b1[unit]:
                inner.constant = inner.constant + self.sums.b1[unit]
            opened = graph.relu(inner)
            if opened.is_zero:
                continue
            for row, weight in self.outputs[unit]:
                if wanted(row):
                    change(row, opened, weight)
        tidied = {row: graph.narrowed(graph.tidy(changed[row])) if row in changed else rows[row]
                  for row in {**rows, **changed} if row not in known}
        tidied.update(known)
        return {row: linear for row, linear in tidied.items() if not linear.is_zero}

    def check_heads(self, kinds: Sequence[Rows]) -> None:
        """Refuse heads whose sums may leave the number format, over columns of several kinds."""
        if self.heads:
            self._check(self.sums.attention(self._bounds(kinds)))

    def _check(self, sums: Iterable[Sums]) -> None:
        found = violation(sums, self.limits)
        if found is not None:
            raise LoweringError(found)

    def _bounds(self, kinds: Sequence[Rows]) -> Bounds:
        """The ranges of rows, of all columns of a kind together."""
        width, eps = self.sums.w1.width, self.limits.eps
        low, high = np.zeros((2, width, len(kinds)))
        grid, real = np.full(width, np.inf), np.zeros(width, np.bool_)
        for kind, rows in enumerate(kinds):
            for row, linear in rows.items():
                least, most = linear.ends
                low[row, kind] = least[0] if len(least) == 1 else least.min()
                high[row, kind] = most[0] if len(most) == 1 else most.max()
                step = _grid(linear)
                if not step:
                    step, real[row] = eps, True
                if step < grid[row]:
                    grid[row] = step
        return Bounds(low, high, grid, real, eps)

    def _open(self, rows: Rows) -> Indices:
        """The units that some values in the rows' ranges, of all columns together, may open.

        Refuses ranges in which a sum of the feed-forward may leave the number format.
        """
        bounds = self._bounds([rows])
        units = self.sums.units(bounds)
        self._check(self.sums.feed_forward(bounds, units))
        return np.flatnonzero(units.high[:, 0] + units.totals * ROUNDING > 0)


def _grid(linear: Linear) -> float:
    """A power of two of which every value is a multiple; 0 where none is known."""
    steps = [node.grid if c == 1.0 else power_of_two(c) * node.grid for node, c in linear.terms.items()]
    if linear.constant is not ZERO:
        steps += map(power_of_two, linear.constant.tolist())
    return min(steps, default=math.inf)


def combine(entries: Sparse, rows: Mapping[int, Linear]) -> Linear:
    """The sum of coefficients times rows."""
    result = Linear()
    for row, coefficient in entries:
        if row in rows:
            result.add(rows[row], coefficient)
    return result


def layer_lists(weights: Weights, layout: Layout) -> list[LayerLists]:
    """The layers of a model."""
    numbers, found = rows_of_numbers(layout), []
    for number, layer in enumerate(weights.layers, start=1):
        heads, sums = [], LayerSums(layer, number)
        for head, matrices in enumerate(sums.heads):
            temperature = matrices.temperature
            if not temperature > 0:
                raise LoweringError(f"head {head + 1} has the temperature {temperature:g}: the largest score wins only "
                                    "above 0")
            key, query = (each[head].astype(np.float64) for each in (layer.key, layer.query))
            values = {row: entries for row, entries in enumerate(matrices.value.by_row(float)) if entries}
            heads.append(HeadLists(matrices.key.by_row(float), matrices.query.by_row(float), values, temperature,
                                   weights.dtype, score_roundings(key, query, numbers)))
        b2 = [(row, float(sums.b2[row])) for row in np.flatnonzero(sums.b2).tolist()]
        found.append(LayerLists(heads, sums.w1.by_row(float), sums.w2.by_column(float), b2, sums, weights.format))
    return found
