"""A layer's weights as lists of what is not 0, and its feed-forward as a rule on symbolic rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from punchcard.card.layout import Layout
from punchcard.engines.lowered.analysis.exact_sums import (
    Dimensions,
    ExactSums,
    Indices,
    Rows,
    Sparse,
    columns_of,
    combine,
    known_grids,
    ranges_of,
)
from punchcard.engines.lowered.graph.builder import Graph
from punchcard.engines.lowered.graph.grids import product_of_grids
from punchcard.engines.lowered.graph.nodes import Linear, constant
from punchcard.errors import LoweringError
from punchcard.transformer.grids import Flags
from punchcard.transformer.softmax import Scores, hard_lead
from punchcard.transformer.summation import rounding_error
from punchcard.transformer.sums import Bounds, HiddenUnits, LayerSums, Sums, violation
from punchcard.transformer.weights import Weights

ROUNDING = 2.0**-40
"""More than sums of ranges may be off, in proportion."""


@dataclass(frozen=True)
class HeadLists:
    """K and Q by dimension, V by the row it writes, and how many roundings a score has."""

    key: list[Sparse]
    query: list[Sparse]
    value: dict[int, Sparse]
    temperature: float
    dtype: str
    roundings: int
    where: str
    sums: ExactSums

    @cached_property
    def looked_at(self) -> list[int]:
        """The rows that the head reads."""
        return sorted({row for entries in (*self.key, *self.query, *self.value.values()) for row, _ in entries})

    @cached_property
    def asking(self) -> list[int]:
        """The rows that its queries are made of."""
        return sorted({row for entries in self.query for row, _ in entries})

    def scores_of(self, queries: Dimensions, keys: Dimensions) -> Scores:
        """What is known of the scores of such queries and keys."""
        used = (queries.largest > 0) & (keys.largest > 0)
        grid = min(map(product_of_grids, queries.grid[used].tolist(), keys.grid[used].tolist()), default=np.inf)
        return Scores(float(queries.largest[used] @ keys.largest[used]), self.roundings, grid)

    def lead(self, scores: Scores) -> float:
        """How far below the best a score has a weight of exactly 0."""
        return hard_lead(self.dtype, self.temperature, scores)

    def are_exact(self, scores: Scores) -> bool:
        """Whether scores are computed without rounding, so that equal ones come out equal; of numbers, that is not asked."""
        return not scores.error(self.sums.limits) or bool(self.sums.numbers[list(self.value)].all())

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
    """One layer: its heads, and W1 and W2 by unit."""

    sums: ExactSums
    heads: list[HeadLists]
    layer: LayerSums
    inputs: list[Sparse]
    outputs: list[Sparse]

    @property
    def where(self) -> str:
        return self.layer.where

    @cached_property
    def only_numbers(self) -> Flags:
        """Units that write to no row but those of real numbers."""
        others = np.ones(self.layer.w2.width, dtype=np.bool_)
        others[self.layer.w2.columns[~self.sums.numbers[self.layer.w2.rows]]] = False
        return others

    @cached_property
    def biases(self) -> list[float]:
        """b1, as numbers."""
        found: list[float] = self.layer.b1.tolist()
        return found

    @cached_property
    def constants(self) -> dict[int, float]:
        """b2 by row, where it is not 0."""
        return {row: float(self.layer.b2[row]) for row in np.flatnonzero(self.layer.b2).tolist()}

    @cached_property
    def concerned(self) -> Indices:
        """The rows that units read or write. All others are as the layers before have left them, and were checked there."""
        return np.array(sorted({*self.layer.w1.columns.tolist(), *self.written}), dtype=np.int64)

    @cached_property
    def known_open(self) -> dict[bytes, list[int]]:
        """The units that may open, by the ranges of the rows that are concerned."""
        return {}

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

        What is `known_grids` of the result is taken from there; with `only`, no other rows are worked out.
        """
        known = known or {}
        if known or only is not None:
            changed = self._changed(graph, rows, lambda row: row not in known and (only is None or row in only))
        else:
            changed = graph.once((self.where, *map(rows.get, self.concerned.tolist())), self._changed, graph, rows)
        result = {**{row: linear for row, linear in rows.items() if row not in known}, **changed, **known}
        return {row: linear for row, linear in result.items() if linear.terms or not linear.is_zero}

    def _changed(self, graph: Graph, rows: Rows, wanted: Callable[[int], bool] | None = None) -> Rows:
        """The rows that units or b2 change, as far as they are wanted. Units that look at the same forms give the same."""
        parts: dict[int, list[Linear | float]] = {row: [] for row in self.constants if wanted is None or wanted(row)}
        for unit in self._open(rows, wanted):
            looked_at = [rows.get(row) for row, _ in self.inputs[unit]]
            opened = graph.once((self.where, unit, *looked_at), self._unit, graph, rows, unit)
            if opened.is_zero:
                continue
            for row, weight in self.outputs[unit]:
                if wanted is None or wanted(row):
                    parts.setdefault(row, []).extend((opened, weight))
        return {row: graph.once((rows.get(row), self.constants.get(row), *of), self._sum, graph, rows, row, of)
                for row, of in parts.items()}

    def _unit(self, graph: Graph, rows: Rows, unit: int) -> Linear:
        inner = combine(self.inputs[unit], rows)
        if self.biases[unit]:
            inner.constant = inner.constant + self.biases[unit]
        return graph.known_relu(inner)

    def _sum(self, graph: Graph, rows: Rows, row: int, parts: Sequence[Any]) -> Linear:
        """A row, its constant of b2, and opened units by their weights: forms and weights in turn."""
        total = rows[row].copy() if row in rows else Linear()
        if row in self.constants:
            total.add(constant(self.constants[row]))
        for opened, weight in zip(parts[::2], parts[1::2], strict=True):
            total.add(opened, weight)
        return graph.known_sum(total)

    def check_heads(self, graph: Graph, kinds: Sequence[Rows]) -> None:
        """Refuse heads whose sums may leave the number format, over columns of several kinds."""
        if self.heads:
            brought = {row for head in self.heads for row in head.value}
            concerned = sorted(brought.union(*(head.looked_at for head in self.heads)))
            name = (self.where, "heads", *(rows.get(row) for rows in kinds for row in concerned))
            graph.once(name, self._check_heads, kinds)

    def _check_heads(self, kinds: Sequence[Rows]) -> bool:
        ranges = [ranges_of(rows, self.layer.w1.width) for rows in kinds]
        self._check(self.layer.attention(Bounds.together(ranges, self.sums.limits.eps)))
        return True

    def _check(self, sums: Iterable[Sums]) -> None:
        found = violation(sums, self.sums.limits)
        if found is not None:
            raise LoweringError(found)

    def _open(self, rows: Rows, wanted: Callable[[int], bool] | None) -> list[int]:
        """The units that some values in the rows' ranges may open, in one of the columns.

        No sum may leave the number format. Their sums must be exact, and those of the wanted rows. A closed unit may round:
        it stays closed in any order. Where all rows are wanted, many cases ask with the same ranges.
        """
        ranges = ranges_of(rows, self.layer.w1.width)
        if wanted is not None:
            return self._opened(ranges, wanted)
        name = self._name(ranges)
        if name not in self.known_open:
            self.known_open[name] = self._opened(ranges, lambda row: True)
        return self.known_open[name]

    def _name(self, ranges: Bounds) -> bytes:
        """What is looked at of columns: equal for those that are alike in it."""
        return b"".join(values[self.concerned].tobytes() for values in (ranges.low, ranges.high, ranges.grid, ranges.size))

    def _opened(self, ranges: Bounds, wanted: Callable[[int], bool]) -> list[int]:
        self._check(self.layer.feed_forward(Bounds.together([ranges], self.sums.limits.eps)))
        found = np.zeros(len(self.layer.b1), dtype=bool)
        for column in {self._name(column): column for column in columns_of(ranges, self.sums)}.values():
            found |= self._open_in(column, wanted)
        opened: list[int] = np.flatnonzero(found).tolist()
        return opened

    def _open_in(self, column: Bounds, wanted: Callable[[int], bool]) -> Flags:
        """Which units may open in one column."""
        units = self.layer.units(column)
        grids = known_grids(units.grids, units.real)
        error = rounding_error(units.totals, self.layer.w1.terms + 1, self.sums.limits.eps)
        error[~self.sums.are_rounded(units.totals, grids)] = 0.0
        opens: Flags = units.high[:, 0] + error + ROUNDING * units.totals > 0
        grids = np.where(opens, grids, np.inf)
        self.sums.check(f"{self.where}, hidden unit {{}}", units.totals, np.where(self.only_numbers, 0.0, grids))
        high = np.where(opens[:, None], units.high, 0.0)
        self._check_results(column, wanted, replace(units, high=high, grids=grids, real=units.real & opens))
        return opens

    def _check_results(self, column: Bounds, wanted: Callable[[int], bool], units: HiddenUnits) -> None:
        """Refuse to round the wanted rows of x + W2 h + b2. The grids of units that are closed are infinite."""
        w2 = self.layer.w2
        changed = self.layer.b2 != 0
        changed[w2.rows[np.isfinite(units.grids[w2.columns])]] = True
        changed[[row for row in np.flatnonzero(changed).tolist() if self.sums.numbers[row] or not wanted(row)]] = False
        totals, grids, real = self.layer.outputs(column, units)
        self.sums.check(f"{self.where}, row {{}}", totals, np.where(changed, known_grids(grids, real), np.inf))


def layer_lists(weights: Weights, layout: Layout) -> list[LayerLists]:
    """The layers of a model."""
    exact, found = ExactSums.of(weights, layout), []
    for number, arrays in enumerate(weights.layers, start=1):
        heads, layer = [], LayerSums(arrays, number)
        for head, matrices in enumerate(layer.heads):
            temperature = matrices.temperature
            if not temperature > 0:
                raise LoweringError(f"head {head + 1} has the temperature {temperature:g}: the largest score wins only "
                                    "above 0")
            values = {row: entries for row, entries in enumerate(matrices.value.by_row(float)) if entries}
            heads.append(HeadLists(matrices.key.by_row(float), matrices.query.by_row(float), values, temperature,
                                   weights.dtype, matrices.roundings, f"{layer.where}, head {head + 1}", exact))
        found.append(LayerLists(exact, heads, layer, layer.w1.by_row(float), layer.w2.by_column(float)))
    return found
