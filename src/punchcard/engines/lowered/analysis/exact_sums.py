"""Sums that no order of summation rounds: only such sums of bits and constants are folded into the graph of a loop.

The equation adds up in the number format, in an order of its own; this engine adds up in other orders, and constants in
float64 while a loop is analysed. All of them agree where sums are exact (`transformer.summation`). Real numbers are as
good as rounding leaves them: for their sums nothing is asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from punchcard.card.formats import FORMATS, NumberFormat
from punchcard.card.layout import Layout
from punchcard.engines.lowered.graph.builder import Graph
from punchcard.engines.lowered.graph.grids import product_of_grids
from punchcard.engines.lowered.graph.nodes import Array, Linear
from punchcard.errors import LoweringError
from punchcard.transformer.grids import Flags, grid_of_number
from punchcard.transformer.sparse import SparseMatrix
from punchcard.transformer.summation import are_exact
from punchcard.transformer.sums import Bounds
from punchcard.transformer.weights import Weights

FOLDED_BITS = FORMATS["float64"].significand - 1
"""One bit is left for halves: rules split a ReLU in two."""
Indices = npt.NDArray[np.int64]
Sparse = list[tuple[int, float]]
"""Places and coefficients of a row of a matrix that are not 0."""
Rows = dict[int, Linear]
"""The rows of a group of columns that are not 0, by number."""


@dataclass(frozen=True)
class ExactSums:
    """Which sums are exact in a number format, and in this analysis. `numbers`: the rows that may hold real numbers."""

    limits: NumberFormat
    numbers: Flags

    @classmethod
    def of(cls, weights: Weights, layout: Layout) -> ExactSums:
        """Of a layout without real numbers between loops, no row holds any within one."""
        numbers = np.zeros(layout.width, dtype=bool)
        if any("real" in block.holds.values() for block in layout.blocks):
            for block in layout.blocks:
                held = set(block.holds.values())
                numbers[layout.rows(block.name)] = block.within != "bits" and not (held and held <= {"bits", "one"})
        return cls(weights.format, numbers)

    @cached_property
    def bits(self) -> int:
        return min(self.limits.significand, FOLDED_BITS)

    def are_rounded(self, totals: Array, grids: Array) -> Flags:
        """Whether sums with these absolute totals may be rounded. Real numbers have the grid 0, and may always be."""
        return (grids > 0) & ~(are_exact(totals, grids, self.bits) & (grids >= self.limits.least))

    def check(self, where: str, totals: Array, grids: Array) -> None:
        """Refuse sums of bits and constants that may be rounded. `where` has a place for the number of the sum."""
        found = np.flatnonzero(self.are_rounded(totals, grids))
        if len(found):
            at, least = int(found[0]), self.limits.least
            why = (f"its terms may be below the smallest positive number, {least:.3g}" if grids[at] < least
                   else f"{self.bits} significand bits do not hold it")
            raise LoweringError(f"{where.format(at)}: a sum of up to {totals[at]:.3g} in steps of {grids[at]:.3g} may be "
                                f"rounded: {why}")

    def combine(self, where: str, entries: Sparse, rows: Mapping[int, Linear], into: int | None = None) -> Linear:
        """The sum of coefficients times rows: a number, if it goes into such a row; by itself, if it has one."""
        places = [row for row, _ in entries] if into is None else [into]
        if not self.numbers[places].any():
            self._check_parts(where, [(rows[row], c) for row, c in entries if row in rows])
        return combine(entries, rows)

    def add(self, where: str, rows: Rows, taken: Iterable[Rows]) -> Rows:
        """Rows and what heads bring to them: x + sum_h V_h x."""
        result = dict(rows)
        parts: dict[int, list[tuple[Linear, float]]] = {}
        for brought in taken:
            for row, linear in brought.items():
                if row not in parts:
                    parts[row] = [(rows[row], 1.0)] if row in rows else []
                    result[row] = rows[row].copy() if row in rows else Linear()
                parts[row].append((linear, 1.0))
                result[row].add(linear)
        for row, several in parts.items():
            if not self.numbers[row]:
                self._check_parts(f"{where}, row {row}", several)
        return result

    def mix(self, graph: Graph, where: str, linear: Linear, matrix: Array, into: int) -> Linear:
        """What columns take from several others, by constant weights: entry i is the sum of matrix[i, j] times entry j."""
        if not self.numbers[into]:
            sizes, grids = (np.broadcast_to(of, matrix.shape[1:]) for of in (linear.sizes, linear.grids))
            weights = SparseMatrix(matrix)
            totals = weights.totals(sizes[:, None])[:, 0]
            self.check(f"{where}, row {into}", totals, known_grids(*weights.grids(grids, grids == 0)))
        return graph.mix(linear, matrix)

    def halves(self, where: str, one: Rows, other: Rows) -> Rows:
        """Half of each."""
        return self.add(where, {}, [{row: linear.times(0.5) for row, linear in rows.items()} for rows in (one, other)])

    def _check_parts(self, where: str, parts: list[tuple[Linear, float]]) -> None:
        """Refuse to add multiples of forms where that may be rounded."""
        numbers = [linear.bound_numbers for linear, _ in parts]
        if None not in numbers:
            total, grid = 0.0, math.inf
            for (_, c), bounds in zip(parts, numbers, strict=True):
                assert bounds is not None
                total += abs(c) * bounds[2]
                grid = min(grid, product_of_grids(grid_of_number(c), bounds[3]))
            self.check(where, np.array([total]), np.array([grid]))
            return
        totals, grids = np.zeros(1), np.full(1, np.inf)
        for linear, c in parts:
            totals = totals + abs(c) * linear.sizes
            grids = np.minimum(grids, [product_of_grids(grid_of_number(c), grid) for grid in linear.grids.tolist()])
        self.check(where, totals, grids + 0.0 * totals)


class Dimensions(NamedTuple):
    """How large each dimension of K x or Q x may be, and a power of two of which it is a multiple; 0 where none is known."""

    largest: Array
    grid: Array


def ranges_of(rows: Rows, width: int) -> Bounds:
    """The columns of a group, or one where all are alike, with the terms and the grid of each row and column."""
    found = {row: linear.bound_numbers for row, linear in rows.items()}
    numbers = {row: each for row, each in found.items() if each is not None}
    several = {row: rows[row].bounds for row, each in found.items() if each is None}
    ranges = np.zeros((4, width, max((table.shape[1] for table in several.values()), default=1)))
    ranges[3] = np.inf
    if numbers:  # several layers ask for a thousand rows: this is the quickest way to an array
        flat = np.fromiter(chain.from_iterable(numbers.values()), np.float64)
        ranges[:, list(numbers)] = flat.reshape(-1, len(ranges), 1).swapaxes(0, 1)
    if several:
        ranges[:, list(several)] = np.array(list(several.values())).swapaxes(0, 1)
    return Bounds(ranges[0], ranges[1], ranges[3], ranges[3] == 0, terms=ranges[2])


def columns_of(ranges: Bounds, sums: ExactSums) -> Iterator[Bounds]:
    """Column by column. Numbers that are rounded already have no grid."""
    grids = np.where(sums.numbers[:, None] & sums.are_rounded(ranges.size, ranges.grid), 0.0, ranges.grid)
    for at, grid in enumerate(grids.T):
        low, high, terms = (values[:, at : at + 1] for values in (ranges.low, ranges.high, ranges.size))
        yield Bounds(low, high, grid, grid == 0, terms=terms)


def known_grids(grids: Array, real: Flags) -> Array:
    """0 for the grids of real numbers, and for no others: see `product_of_grids`."""
    return np.where(real, 0.0, np.maximum(grids, np.finfo(np.float64).smallest_subnormal))


def combine(entries: Sparse, rows: Mapping[int, Linear]) -> Linear:
    """The sum of coefficients times rows."""
    result = Linear()
    for row, coefficient in entries:
        if row in rows:
            result.add(rows[row], coefficient)
    return result
