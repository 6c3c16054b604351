"""How many significand bits a model's arithmetic needs so that no sum is ever rounded.

Suppose that the card holds what its layout declares when a loop begins; that every entry is an integer whenever a later
layer begins, of size at most 1 or, in a block that holds numbers within a loop, at most the block's limit; and that every
head is hard (see `precision`). Then a layer computes nothing but sums of multiples of some power of two g, the grid of
the sum. A sum whose terms have absolute total s is exact, in any order of summation, when s <= 2^p g, with p the
significand bits of the number format. `needed_bits` finds the least such p from the weights and the layout, for every sum
of every layer: keys, queries, scores, values, hidden units and outputs.

It follows by induction that the floating-point model and the same model over the real numbers with a hardmax have the
same card after every layer, for any program and any number of loops. The tests check the two suppositions on cards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from punchcard.card.layout import Layout
from punchcard.transformer.build import LayerWeights
from punchcard.transformer.expression import Array
from punchcard.transformer.grids import powers_of_two

NO_FORMAT = 1 << 20
"""More bits than any number format has."""


@dataclass(frozen=True)
class Intervals:
    """Least and greatest value of every row in every region: two matrices, rows by regions."""

    low: Array
    high: Array

    @property
    def size(self) -> Array:
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def __add__(self, other: Intervals) -> Intervals:
        return Intervals(self.low + other.low, self.high + other.high)

    def through(self, matrix: Array) -> Intervals:
        """The intervals of `matrix @ x`."""
        middle, reach = matrix @ (self.low + self.high), np.abs(matrix) @ (self.high - self.low)
        return Intervals((middle - reach) / 2, (middle + reach) / 2)

    def from_any_region(self) -> Intervals:
        """What a column may take from one column of any region, or from several of them by equal shares."""
        return Intervals(self.low.min(axis=1, keepdims=True), self.high.max(axis=1, keepdims=True))


def needed_bits(layers: Sequence[LayerWeights], layout: Layout) -> int:
    """The least significand that makes every sum of every layer exact."""
    begin = _declared(layout)
    written = np.any([layer.w2.any(axis=1) | layer.value.any(axis=(0, 2)) | (layer.b2 != 0) for layer in layers],
                     axis=0)[:, None]
    sizes = entry_sizes(layout)[:, None]
    later = Intervals(np.where(written, -sizes, begin.low), np.where(written, sizes, begin.high))
    return max(_layer_bits(layer, later if number else begin) for number, layer in enumerate(layers))


def entry_sizes(layout: Layout) -> Array:
    """How large an entry of each row may be when a later layer begins: 1, or the limit that a block of numbers declares."""
    sizes = np.ones(layout.width)
    for block in layout.blocks:
        if block.within == "real" and block.limit is not None:
            sizes[layout.rows(block.name)] = block.limit
    return sizes


def rows_of_numbers(layout: Layout) -> npt.NDArray[np.bool_]:
    """The rows that may hold other numbers than -1, 0 and 1, between loops or within one."""
    found = np.zeros(layout.width, dtype=np.bool_)
    for block in layout.blocks:
        if block.real or block.within == "real":
            found[layout.rows(block.name)] = True
    return found


def _declared(layout: Layout) -> Intervals:
    """What the layout says of every row and region when a loop begins."""
    low, high = np.zeros((2, layout.width, len(layout.regions)))
    for block in layout.blocks:
        for number, region in enumerate(layout.regions):
            content = block.holds.get(region.name)
            low[layout.rows(block.name), number] = {"bits": -1.0, "one": 1.0}.get(content or "", 0.0)
            high[layout.rows(block.name), number] = 1.0 if content else 0.0
    return Intervals(low, high)


def _layer_bits(layer: LayerWeights, card: Intervals) -> int:
    rows = len(card.low)
    ones = np.ones(rows)
    bits = [1]
    attended, total, grid = card, card.size, ones.copy()
    for key, query, value, winners in zip(layer.key, layer.query, layer.value, layer.winners, strict=True):
        (keys, key_grid), (queries, query_grid) = (_totals(matrix, card.size, ones) for matrix in (key, query))
        # A key and a query may come from two regions: take the largest of each.
        scores = keys.max(axis=1) @ queries.max(axis=1)
        bits += [_bits(keys, key_grid), _bits(queries, query_grid), _bits(scores, key_grid.min() * query_grid.min())]
        moved, moved_grid = _totals(value, card.size, ones / winners)
        bits.append(_bits(moved, moved_grid))
        taken = card.through(value).from_any_region()
        attended, total = attended + taken, total + taken.size
        grid = np.minimum(grid, moved_grid)
    bits.append(_bits(total, grid))
    hidden, hidden_grid = _totals(layer.w1, attended.size, grid)
    hidden_grid = np.minimum(hidden_grid, powers_of_two(layer.b1))
    bits.append(_bits(hidden + np.abs(layer.b1)[:, None], hidden_grid))
    active = np.maximum(attended.through(layer.w1).high + layer.b1[:, None], 0)
    output, output_grid = _totals(layer.w2, active, hidden_grid)
    output_grid = np.minimum(np.minimum(output_grid, grid), powers_of_two(layer.b2))
    bits.append(_bits(output + attended.size + np.abs(layer.b2)[:, None], output_grid))
    return max(bits)


def _totals(matrix: Array, size: Array, grid: Array) -> tuple[Array, Array]:
    """Absolute totals of `matrix @ x`, for x of the given sizes, and the grid of each entry."""
    return np.abs(matrix) @ size, (powers_of_two(matrix) * grid).min(axis=1, initial=np.inf)


def _bits(totals: Array, grid: Array) -> int:
    """The bits of the largest total in units of its grid, a grid for each row: the least p with total <= 2^p grid.

    The totals themselves are float64 sums of multiples of the grid, so they are exact below 2^53 grid, and may be
    rounded from there on; then one bit more is asked for.
    """
    ratio = float(np.max(np.atleast_2d(totals.T) / grid, initial=1.0))
    if not math.isfinite(ratio):  # grids so small that their product is 0
        return NO_FORMAT
    mantissa, exponent = math.frexp(ratio)
    return exponent - 1 if mantissa == 0.5 and exponent <= 53 else exponent
