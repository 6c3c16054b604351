"""The sums of a layer: how large they may get, and how small their terms. The one rule on overflow and underflow.

A layer computes K x, Q x, scores and their products with the temperature, V x, x + V x, W1 x + b1 and
x + W2 relu(W1 x + b1) + b2. Of each sum two things follow from the weights and from what is known of x (`Bounds`):

    total    the sum of the absolute values of its terms: no partial sum is larger, in whatever order a library adds
    grid     a power of two that all terms are multiples of

So nothing overflows where every total is at most the largest number of the format, and nothing underflows where every grid
is at least the smallest positive one. Designs, proofs, the lowered and the scratchpad engine all ask here.

A real number has no grid. Here eps takes its place: beside 1, smaller parts are lost anyway. So a real number times a weight
w counts as an underflow where |w| is below the smallest normal number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from punchcard.card.formats import NumberFormat
from punchcard.transformer.expression import Array
from punchcard.transformer.grids import Flags, grids_of
from punchcard.transformer.sparse import SparseMatrix
from punchcard.transformer.summation import rounding_error
from punchcard.transformer.weights import LayerArrays

GROWTH = 4
"""Totals grow by so many rounding errors: they are computed with roundings themselves, from others that have some."""
Summed: TypeAlias = tuple[Array, Array]
"""Totals and grids."""
ENTRIES = tuple(2.0**exponent for exponent in (64, 32, 16, 8, 4, 2, 1, 0))
"""Sizes of entries that `largest_entry` tries, largest first."""


@dataclass(frozen=True)
class Bounds:
    """What is known of columns of one or more kinds.

    low, high   least and greatest entry of every row: rows by kinds of columns, or rows of one column
    grid        for each row a power of two that its entries are multiples of; in sums, eps for real numbers
    real        the rows of real numbers
    eps         the relative error of an addition or product; 0 where all are known to be exact
    terms       the absolute totals of the terms of every entry, where a sum adds those up; default: it adds entries
    """

    low: Array
    high: Array
    grid: Array
    real: Flags
    eps: float = 0.0
    terms: Array | None = None

    @classmethod
    def of_size(cls, size: float, rows: int, eps: float) -> Bounds:
        """Real numbers up to a size, in all rows."""
        high = np.full((rows, 1), size)
        return cls(-high, high, np.full(rows, eps), np.ones(rows, np.bool_), eps)

    @classmethod
    def together(cls, kinds: Sequence[Bounds], eps: float) -> Bounds:
        """For sums: each kind is one column, or several with a grid each. What has no grid counts as a real number."""
        shape = len(kinds[0].low), -1
        low = np.stack([each.low.reshape(shape).min(axis=1) for each in kinds], axis=1)
        high = np.stack([each.high.reshape(shape).max(axis=1) for each in kinds], axis=1)
        grid = np.stack([np.where(each.real, 0.0, each.grid).reshape(shape).min(axis=1) for each in kinds], axis=1)
        real = grid == 0
        return cls(low, high, np.where(real, eps, grid).min(axis=1), np.any(real, axis=1), eps)

    @property
    def used(self) -> Flags:
        """Where an entry may be other than 0."""
        found: Flags = (self.low != 0) | (self.high != 0)
        return found

    @property
    def size(self) -> Array:
        """How much each row adds to a total, for each kind."""
        return np.maximum(np.abs(self.low), np.abs(self.high)) if self.terms is None else self.terms


@dataclass(frozen=True)
class Sums:
    """Sums of one kind in one place, such as all hidden units of a layer: the total and the grid of each."""

    where: str
    totals: Array
    grids: Array

    def violation(self, limits: NumberFormat) -> str | None:
        """The first sum that may overflow or underflow, in words; None where none does."""
        for place in np.flatnonzero(~(self.totals <= limits.max)).tolist():
            return f"{self._name(place)} may reach {self.totals[place]:.3g}, {limits.name} holds {limits.max:.3g}"
        for place in np.flatnonzero((self.totals > 0) & (self.grids < limits.least)).tolist():
            return (f"{self._name(place)} has terms as small as {self.grids[place]:.3g}, the smallest positive number of "
                    f"{limits.name} is {limits.least:.3g}")
        return None

    def _name(self, place: int) -> str:
        return self.where.format(place)


def violation(sums: Iterable[Sums], limits: NumberFormat) -> str | None:
    """The first of several sums that may overflow or underflow, in words."""
    return next((found for each in sums if (found := each.violation(limits)) is not None), None)


@dataclass(frozen=True)
class HeadMatrices:
    """K, Q and V of a head, its temperature, and how many columns may share its best score."""

    key: SparseMatrix
    query: SparseMatrix
    value: SparseMatrix
    temperature: float
    winners: float

    @property
    def roundings(self) -> int:
        """How many roundings a score has, one after the other: in a key, in a query, and in their product."""
        return int(self.key.terms.max(initial=0) + self.query.terms.max(initial=0) + self.key.height)

    def largest_score(self, sizes: Array) -> float:
        """The largest total of a score, for entries up to these sizes."""
        keys, queries = (matrix.totals(sizes[:, None])[:, 0] for matrix in (self.key, self.query))
        return float(keys @ queries)

    def matched(self, card: Bounds) -> tuple[Summed, Summed, Summed]:
        """The totals and grids of keys, queries and scores. Key and query may come from columns of two kinds."""
        keys, queries = _summed(self.key, card), _summed(self.query, card)
        total = _rounded(np.array([keys[0] @ queries[0]]), len(keys[0]), card.eps)
        return keys, queries, (total, np.array([keys[1].min(initial=np.inf) * queries[1].min(initial=np.inf)]))


@dataclass(frozen=True)
class HiddenUnits:
    """W1 x + b1 of each unit: its greatest value, by kinds of columns; its total and grid; whether it is a real number."""

    high: Array
    totals: Array
    grids: Array
    real: Flags


class LayerSums:
    """The sums of one layer. `number` counts from 1; `winners`: how many columns may share a best score, in each head."""

    def __init__(self, layer: LayerArrays, number: int = 1, winners: Sequence[float] | None = None) -> None:
        self.where = f"layer {number}"
        shares = [1.0] * layer.heads if winners is None else winners
        self.heads = [HeadMatrices(SparseMatrix(key), SparseMatrix(query), SparseMatrix(value), float(temperature), share)
                      for key, query, value, temperature, share
                      in zip(layer.key, layer.query, layer.value, layer.temperature, shares, strict=True)]
        self.w1, self.w2 = SparseMatrix(layer.w1), SparseMatrix(layer.w2)
        self.b1, self.b2 = (bias.ravel().astype(np.float64) for bias in (layer.b1, layer.b2))

    @property
    def written(self) -> Flags:
        """The rows that the layer may change."""
        found: Flags = self.b2 != 0
        for matrix in (self.w2, *(head.value for head in self.heads)):
            found[matrix.used] = True
        return found

    def all(self, card: Bounds) -> Iterator[Sums]:
        """All sums of the layer, of a card that comes in. Heads may bring the values of any column to any other."""
        yield from self.attention(card)
        yield from self.feed_forward(self.attended(card))

    def attention(self, card: Bounds) -> Iterator[Sums]:
        """Keys, queries, scores, values and the result of the residual connection."""
        total = card.size.max(axis=1)
        for number, head in enumerate(self.heads, start=1):
            where = f"{self.where}, head {number}"
            with np.errstate(over="ignore", invalid="ignore"):
                keys, queries, score = head.matched(card)
                values = _summed(head.value, card)
                product = score[0] * max(1.0, abs(head.temperature)) * (1 + card.eps)
                total = _rounded(total + values[0], 1, card.eps)
            yield Sums(f"{where}, key {{}}", *keys)
            yield Sums(f"{where}, query {{}}", *queries)
            yield Sums(f"{where}, a score", *score)
            yield Sums(f"{where}, a score times the temperature", product, np.array([np.inf]))
            yield Sums(f"{where}, row {{}} of a value", values[0], values[1] / head.winners)
        yield Sums(f"{self.where}, row {{}} after the attention", total, self._attended_grid(card)[0])

    def _attended_grid(self, card: Bounds) -> tuple[Array, Flags]:
        grid, real = card.grid, card.real
        for head in self.heads:
            moved, is_real = head.value.grids(card.grid, card.real)
            grid, real = np.minimum(grid, moved / head.winners), real | is_real
        return grid, real

    def attended(self, card: Bounds) -> Bounds:
        """What is known of the columns after the attention."""
        low, high = card.low, card.high
        with np.errstate(over="ignore", invalid="ignore"):
            for head in self.heads:
                least, most = head.value.ends(card.low, card.high)
                low, high = low + least.min(axis=1, keepdims=True), high + most.max(axis=1, keepdims=True)
        return Bounds(low, high, *self._attended_grid(card), card.eps)

    def units(self, attended: Bounds) -> HiddenUnits:
        with np.errstate(over="ignore", invalid="ignore"):
            totals = self.w1.totals(attended.size).max(axis=1) + np.abs(self.b1)
            high = self.w1.ends(attended.low, attended.high)[1] + self.b1[:, None]
        grids, real = self.w1.grids(attended.grid, attended.real)
        return HiddenUnits(high, _rounded(totals, self.w1.terms + 1, attended.eps),
                           np.minimum(grids, self._bias_grids[0]), real)

    def outputs(self, attended: Bounds, units: HiddenUnits) -> tuple[Array, Array, Flags]:
        """The totals and grids of the rows after the layer, and which of them are real numbers."""
        with np.errstate(over="ignore", invalid="ignore"):
            noise = GROWTH * rounding_error(units.totals, self.w1.terms + 1, attended.eps)
            active = np.maximum(units.high + noise[:, None], 0)
            totals = (self.w2.totals(active) + attended.size).max(axis=1) + np.abs(self.b2)
        grids, real = self.w2.grids(units.grids, units.real)
        return (_rounded(totals, self.w2.terms + 2, attended.eps),
                np.minimum(np.minimum(grids, attended.grid), self._bias_grids[1]), real | attended.real)

    @cached_property
    def _bias_grids(self) -> tuple[Array, Array]:
        return grids_of(self.b1), grids_of(self.b2)

    def feed_forward(self, attended: Bounds) -> Iterator[Sums]:
        """Hidden units and outputs."""
        units = self.units(attended)
        yield Sums(f"{self.where}, hidden unit {{}}", units.totals, units.grids)
        yield Sums(f"{self.where}, row {{}} of the output", *self.outputs(attended, units)[:2])


def _summed(matrix: SparseMatrix, card: Bounds) -> Summed:
    """The totals and grids of `matrix @ x`, for columns of any kind."""
    totals = matrix.totals(card.size).max(axis=1)
    return _rounded(totals, matrix.terms, card.eps), matrix.grids(card.grid, card.real)[0]


def _rounded(totals: Array, terms: Array | int, eps: float) -> Array:
    """Totals of so many terms, with what roundings may add."""
    return totals + GROWTH * rounding_error(totals, terms, eps) if eps else totals


def largest_entry(layers: Sequence[LayerSums], width: int, limits: NumberFormat) -> float:
    """Entries up to here, of any card, keep all sums of all layers within the format; -inf where none does."""
    for size in ENTRIES:
        card = Bounds.of_size(size, width, limits.eps)
        if all(violation(layer.all(card), limits) is None for layer in layers):
            return size
    return -np.inf
