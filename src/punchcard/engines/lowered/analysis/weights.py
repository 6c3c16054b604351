"""A layer's weights as lists of what is not 0, and its feed-forward as a rule on symbolic rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from punchcard.card.layout import Layout
from punchcard.engines.lowered.analysis.exact_sums import (
    Dimensions,
    ExactSums,
    Indices,
    RowRanges,
    Rows,
    Sparse,
    combine,
    least_product,
)
from punchcard.engines.lowered.graph.builder import Graph
from punchcard.engines.lowered.graph.nodes import Array, Linear
from punchcard.errors import LoweringError
from punchcard.transformer.exactness import rows_of_numbers
from punchcard.transformer.grids import powers_of_two
from punchcard.transformer.softmax import Scores, hard_lead, score_roundings
from punchcard.transformer.weights import Weights, sparse_rows

ROUNDING = 2.0**-40
"""More than sums of ranges may be off, in proportion."""


@dataclass(frozen=True)
class HeadLists:
    """K and Q by dimension, V by the row it writes, and what is known of the rounding of scores, but for their size."""

    key: list[Sparse]
    query: list[Sparse]
    value: dict[int, Sparse]
    temperature: float
    dtype: str
    scores: Scores
    where: str
    sums: ExactSums

    def scores_of(self, queries: Dimensions, keys: Dimensions) -> Scores:
        """What is known of the scores of such queries and keys."""
        used = (queries.largest > 0) & (keys.largest > 0)
        grid = least_product(np.zeros(int(used.sum()), dtype=np.int64), queries.grid[used], keys.grid[used], 1)
        return replace(self.scores, largest=float(queries.largest[used] @ keys.largest[used]), grid=float(grid[0]))

    def lead(self, scores: Scores) -> float:
        """How far below the best a score has a weight of exactly 0."""
        return hard_lead(self.dtype, self.temperature, scores)

    def are_exact(self, scores: Scores) -> bool:
        """Whether scores are computed without rounding, so that equal ones come out equal; of numbers, that is not asked."""
        return not scores.error(self.sums.eps) or bool(self.sums.numbers[list(self.value)].all())

    def apply(self, side: list[Sparse], rows: Mapping[int, Linear]) -> list[Linear]:
        """K x or Q x."""
        return [self.sums.combine(f"{self.where}, dimension {dim}", entries, rows) for dim, entries in enumerate(side)]

    def moved(self, rows: Mapping[int, Linear]) -> Rows:
        """V x."""
        found = {into: self.sums.combine(f"{self.where}, row {into}", entries, rows, into)
                 for into, entries in self.value.items()}
        return {into: linear for into, linear in found.items() if not linear.is_zero}


@dataclass(frozen=True)
class LayerLists:
    """One layer."""

    where: str
    sums: ExactSums
    heads: list[HeadLists]
    w1: Array
    b1: Array
    w2: Array
    b2: Array

    @cached_property
    def inputs(self) -> list[Sparse]:
        """W1 by unit."""
        return sparse_rows(self.w1, float)

    @cached_property
    def outputs(self) -> list[Sparse]:
        """W2 by unit."""
        return sparse_rows(self.w2.T, float)

    @cached_property
    def entries(self) -> tuple[Indices, Indices, Array]:
        """What is not 0 in W1: units, in order, rows and coefficients."""
        units, rows = np.nonzero(self.w1)
        return units, rows, self.w1[units, rows]

    @cached_property
    def results(self) -> tuple[Indices, Indices, Array]:
        """What is not 0 in W2: rows, units and coefficients."""
        rows, units = np.nonzero(self.w2)
        return rows, units, self.w2[rows, units]

    @cached_property
    def only_numbers(self) -> npt.NDArray[np.bool_]:
        """Units that write to no row but those of real numbers."""
        return np.logical_not(self.w2[~self.sums.numbers].any(axis=0))

    @cached_property
    def grids(self) -> list[Array]:
        """The grids of the entries of W1, of b1, of those of W2, and of b2."""
        return [powers_of_two(values) for values in (self.entries[2], self.b1, self.results[2], self.b2)]

    @cached_property
    def written(self) -> set[int]:
        """Rows that the layer may change."""
        rows = {row for head in self.heads for row in head.value} | set(np.flatnonzero(self.b2).tolist())
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
        units, places, _ = self.entries
        bound = set(units[np.isin(places, list(rows))].tolist())
        taken = {row for unit in bound for row, _ in self.outputs[unit]}
        return {row for entries in self.outputs for row, _ in entries} - taken

    def spread(self, rows: set[int]) -> set[int]:
        """Rows that may differ between two columns after the layer, where before it they differ in these rows only."""
        found = set(rows)
        for head in self.heads:
            if any(row in rows for entries in head.query for row, _ in entries):
                found |= set(head.value)
        units, places, _ = self.entries
        moved = set(units[np.isin(places, list(found))].tolist())
        return found | {row for unit in moved for row, _ in self.outputs[unit]}

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

        for row in filter(wanted, np.flatnonzero(self.b2).tolist()):
            change(row, Linear({}, self.b2[row : row + 1]), 1.0)
        for unit in self._open(rows, wanted):
            if not any(wanted(row) for row, _ in self.outputs[unit]):
                continue
            inner = combine(self.inputs[unit], rows)
            if self.b1[unit]:
                inner.constant = inner.constant + self.b1[unit]
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

    def _open(self, rows: Rows, wanted: Callable[[int], bool]) -> Indices:
        """The units that some values in the rows' ranges may open, in one of the columns.

        Their sums must be exact, and those of the wanted rows. A closed unit may round: it stays closed in any order.
        """
        found = np.zeros(len(self.b1), dtype=bool)
        for ranges in RowRanges.of(rows, self.sums):
            found |= self._open_in(ranges, wanted)
        return np.flatnonzero(found)

    def _open_in(self, ranges: RowRanges, wanted: Callable[[int], bool]) -> npt.NDArray[np.bool_]:
        """Which units may open in one column."""
        (units, places, weights), count = self.entries, len(self.b1)
        low, high = weights * ranges.low[places], weights * ranges.high[places]
        greatest = np.bincount(units, np.maximum(low, high), count) + self.b1
        totals = np.bincount(units, np.abs(weights) * ranges.size[places], count).astype(np.float64) + np.abs(self.b1)
        grids = np.minimum(least_product(units, self.grids[0], ranges.grid[places], count), self.grids[1])
        roundings = np.bincount(units, minlength=count) + 1
        slack = np.where(self.sums.are_rounded(totals, grids), roundings * self.sums.eps + ROUNDING, ROUNDING)
        opens: npt.NDArray[np.bool_] = greatest + slack * totals > 0
        grids = np.where(opens, grids, np.inf)
        self.sums.check(f"{self.where}, hidden unit {{}}", totals, np.where(self.only_numbers, 0.0, grids))
        self._check_results(ranges, wanted, np.where(opens, np.maximum(greatest, 0), 0.0), grids)
        return opens

    def _check_results(self, ranges: RowRanges, wanted: Callable[[int], bool], units: Array, grids: Array) -> None:
        """Refuse to round the wanted rows of x + W2 h + b2, for units h up to these sizes, on these grids."""
        rows, places, weights = self.results
        changed = (self.b2 != 0) | np.isin(np.arange(len(self.b2)), rows[np.isfinite(grids[places])])
        changed[[row for row in np.flatnonzero(changed).tolist() if self.sums.numbers[row] or not wanted(row)]] = False
        totals = ranges.size + np.bincount(rows, np.abs(weights) * units[places], len(changed)) + np.abs(self.b2)
        products = least_product(rows, self.grids[2], grids[places], len(changed))
        least = np.minimum(np.minimum(ranges.grid, self.grids[3]), products)
        self.sums.check(f"{self.where}, row {{}}", totals, np.where(changed, least, np.inf))


def layer_lists(weights: Weights, layout: Layout) -> list[LayerLists]:
    """The layers of a model."""
    numbers, sums, found = rows_of_numbers(layout), ExactSums.of(weights.format, layout), []
    for number, layer in enumerate(weights.layers, start=1):
        key, query, value, w1, b1, w2, b2 = (
            array.astype(np.float64)
            for array in (layer.key, layer.query, layer.value, layer.w1, layer.b1, layer.w2, layer.b2)
        )
        heads = []
        for head, temperature in enumerate(layer.temperature.tolist()):
            if not temperature > 0:
                raise LoweringError(f"head {head + 1} has the temperature {temperature:g}: the largest score wins only "
                                    "above 0")
            values = {row: entries for row, entries in enumerate(sparse_rows(value[head], float)) if entries}
            heads.append(HeadLists(sparse_rows(key[head], float), sparse_rows(query[head], float), values, temperature,
                                   weights.dtype, score_roundings(key[head], query[head], numbers),
                                   f"layer {number}, head {head + 1}", sums))
        found.append(LayerLists(f"layer {number}", sums, heads, w1, b1[:, 0], w2, b2[:, 0]))
    return found
