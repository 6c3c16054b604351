"""A layer's weights as lists of what is not 0, and its feed-forward as a rule on symbolic rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from punchcard.card.formats import NumberFormat
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
from punchcard.transformer.sparse import Flags
from punchcard.transformer.sums import Bounds, LayerSums, Sums, violation
from punchcard.transformer.weights import Weights

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
    """One layer, and how large its sums may get in the model's number format."""

    sums: ExactSums
    heads: list[HeadLists]
    layer: LayerSums
    limits: NumberFormat

    @property
    def where(self) -> str:
        return self.layer.where

    @cached_property
    def inputs(self) -> list[Sparse]:
        """W1 by unit."""
        return self.layer.w1.by_row(float)

    @cached_property
    def outputs(self) -> list[Sparse]:
        """W2 by unit."""
        return self.layer.w2.by_column(float)

    @cached_property
    def only_numbers(self) -> Flags:
        """Units that write to no row but those of real numbers."""
        others = np.ones(self.layer.w2.width, dtype=np.bool_)
        others[self.layer.w2.columns[~self.sums.numbers[self.layer.w2.rows]]] = False
        return others

    @cached_property
    def bias_grids(self) -> tuple[Array, Array]:
        """The grids of b1 and of b2."""
        return powers_of_two(self.layer.b1), powers_of_two(self.layer.b2)

    @cached_property
    def written(self) -> set[int]:
        """Rows that the layer may change."""
        return set(np.flatnonzero(self.layer.written).tolist())

    @cached_property
    def matched(self) -> set[int]:
        """Rows that heads match by."""
        return {row for head in self.heads for entries in (*head.key, *head.query) for row, _ in entries}

    @cached_property
    def attended(self) -> set[int]:
        """Rows that heads read."""
        return self.matched | {row for head in self.heads for entries in head.value.values() for row, _ in entries}

    @cached_property
    def looked_at(self) -> set[int]:
        """Rows that heads or hidden units read."""
        return self.attended | set(self.layer.w1.columns.tolist())

    @cached_property
    def combined(self) -> set[int]:
        """Rows that matter beside others: in a head, or in a unit that has more than one input."""
        return self.attended | {row for entries in self.inputs if len(entries) > 1 for row, _ in entries}

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
        return set(self.layer.w1.rows[np.isin(self.layer.w1.columns, list(rows))].tolist())

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

        b1, b2 = self.layer.b1, self.layer.b2
        for row in filter(wanted, np.flatnonzero(b2).tolist()):
            change(row, Linear({}, b2[row : row + 1]), 1.0)
        for unit in self._open(rows, wanted):
            if not any(wanted(row) for row, _ in self.outputs[unit]):
                continue
            inner = combine(self.inputs[unit], rows)
            if b1[unit]:
                inner.constant = inner.constant + b1[unit]
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
            self._check(self.layer.attention(self._bounds(kinds)))

    def _check(self, sums: Iterable[Sums]) -> None:
        found = violation(sums, self.limits)
        if found is not None:
            raise LoweringError(found)

    def _bounds(self, kinds: Sequence[Rows]) -> Bounds:
        """The ranges of rows, of all columns of a kind together."""
        width, eps = self.layer.w1.width, self.limits.eps
        low, high = np.zeros((2, width, len(kinds)))
        grid, real = np.full(width, np.inf), np.zeros(width, np.bool_)
        for kind, rows in enumerate(kinds):
            places = list(rows)
            low[places, kind], high[places, kind], steps = np.array(
                [linear.bounds.outer for linear in rows.values()]).reshape(-1, 3).T
            real[places] |= steps == 0
            grid[places] = np.minimum(grid[places], np.where(steps == 0, eps, steps))
        return Bounds(low, high, grid, real, eps)

    def _open(self, rows: Rows, wanted: Callable[[int], bool]) -> Indices:
        """The units that some values in the rows' ranges may open, in one of the columns.

        No sum may leave the number format. Their sums must be exact, and those of the wanted rows. A closed unit may round:
        it stays closed in any order.
        """
        self._check(self.layer.feed_forward(self._bounds([rows])))
        found = np.zeros(len(self.layer.b1), dtype=bool)
        for ranges in RowRanges.of(rows, self.sums):
            found |= self._open_in(ranges, wanted)
        return np.flatnonzero(found)

    def _open_in(self, ranges: RowRanges, wanted: Callable[[int], bool]) -> Flags:
        """Which units may open in one column."""
        w1, b1 = self.layer.w1, self.layer.b1
        greatest = w1.ends(ranges.low[:, None], ranges.high[:, None])[1][:, 0] + b1
        totals = w1.totals(ranges.size[:, None])[:, 0] + np.abs(b1)
        grids = np.minimum(least_product(w1.rows, w1.powers, ranges.grid[w1.columns], len(b1)), self.bias_grids[0])
        slack = np.where(self.sums.are_rounded(totals, grids), (w1.terms + 1) * self.sums.eps + ROUNDING, ROUNDING)
        opens: Flags = greatest + slack * totals > 0
        grids = np.where(opens, grids, np.inf)
        self.sums.check(f"{self.where}, hidden unit {{}}", totals, np.where(self.only_numbers, 0.0, grids))
        self._check_results(ranges, wanted, np.where(opens, np.maximum(greatest, 0), 0.0), grids)
        return opens

    def _check_results(self, ranges: RowRanges, wanted: Callable[[int], bool], units: Array, grids: Array) -> None:
        """Refuse to round the wanted rows of x + W2 h + b2, for units h up to these sizes, on these grids."""
        w2, b2 = self.layer.w2, self.layer.b2
        changed = b2 != 0
        changed[w2.rows[np.isfinite(grids[w2.columns])]] = True
        changed[[row for row in np.flatnonzero(changed).tolist() if self.sums.numbers[row] or not wanted(row)]] = False
        totals = ranges.size + w2.totals(units[:, None])[:, 0] + np.abs(b2)
        products = least_product(w2.rows, w2.powers, grids[w2.columns], len(b2))
        least = np.minimum(np.minimum(ranges.grid, self.bias_grids[1]), products)
        self.sums.check(f"{self.where}, row {{}}", totals, np.where(changed, least, np.inf))


def layer_lists(weights: Weights, layout: Layout) -> list[LayerLists]:
    """The layers of a model."""
    numbers, exact, found = rows_of_numbers(layout), ExactSums.of(weights.format, layout), []
    for number, arrays in enumerate(weights.layers, start=1):
        heads, layer = [], LayerSums(arrays, number)
        for head, matrices in enumerate(layer.heads):
            temperature = matrices.temperature
            if not temperature > 0:
                raise LoweringError(f"head {head + 1} has the temperature {temperature:g}: the largest score wins only "
                                    "above 0")
            key, query = (each[head].astype(np.float64) for each in (arrays.key, arrays.query))
            values = {row: entries for row, entries in enumerate(matrices.value.by_row(float)) if entries}
            heads.append(HeadLists(matrices.key.by_row(float), matrices.query.by_row(float), values, temperature,
                                   weights.dtype, score_roundings(key, query, numbers),
                                   f"{layer.where}, head {head + 1}", exact))
        found.append(LayerLists(exact, heads, layer, weights.format))
    return found
