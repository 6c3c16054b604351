"""Sums that no order of summation rounds: only such sums of bits and constants are folded into the graph of a loop.

The equation adds up in the number format, in an order of its own; this engine adds up in other orders, and constants in
float64 while a loop is analysed. All of them agree where the terms are multiples of a grid g with an absolute total of at
most 2^p g, p the significand bits. Real numbers are as good as rounding leaves them: for their sums nothing is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from punchcard.card.formats import FORMATS, NumberFormat
from punchcard.card.layout import Layout
from punchcard.engines.lowered.graph.builder import Graph
from punchcard.engines.lowered.graph.nodes import Array, Linear, lowest_bit_of, product_of_grids
from punchcard.errors import LoweringError
from punchcard.transformer.grids import powers_of_two
from punchcard.transformer.sparse import Flags

FOLDED_BITS = FORMATS["float64"].significand - 1
"""One bit is left for halves: rules split a ReLU in two."""
Indices = npt.NDArray[np.int64]
Sparse = list[tuple[int, float]]
"""Places and coefficients of a row of a matrix that are not 0."""
Rows = dict[int, Linear]
"""The rows of a group of columns that are not 0, by number."""


@dataclass(frozen=True)
class ExactSums:
    """Which sums are exact in a number format, and in this analysis.

    eps, least   of the number format: its rounding, and its smallest number
    numbers      the rows that may hold real numbers, between loops or within one
    """

    bits: int
    eps: float
    least: float
    numbers: Flags

    @classmethod
    def of(cls, kind: NumberFormat, layout: Layout) -> ExactSums:
        """Of a layout without real numbers between loops, no row holds any within one."""
        numbers = np.zeros(layout.width, dtype=bool)
        if any("real" in block.holds.values() for block in layout.blocks):
            for block in layout.blocks:
                held = set(block.holds.values())
                numbers[layout.rows(block.name)] = block.within != "bits" and not (held and held <= {"bits", "one"})
        return cls(min(kind.significand, FOLDED_BITS), kind.eps, kind.least, numbers)

    def are_rounded(self, totals: Array, grids: Array) -> Flags:
        """Whether sums with these absolute totals may be rounded. Real numbers have the grid 0, and may always be."""
        with np.errstate(over="ignore"):
            found: Flags = (grids > 0) & ((totals > grids * 2.0**self.bits) | (grids < self.least))
        return found

    def check(self, where: str, totals: Array, grids: Array) -> None:
        """Refuse sums of bits and constants that may be rounded. `where` has a place for the number of the sum."""
        found = np.flatnonzero(self.are_rounded(totals, grids))
        if len(found):
            at = int(found[0])
            why = (f"its terms may be below the smallest positive number, {self.least:.3g}" if grids[at] < self.least
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
            places, lanes = np.nonzero(matrix)
            weights, width = matrix[places, lanes], matrix.shape[1:]
            sizes, grids = (np.broadcast_to(of, width)[lanes] for of in (linear.sizes, linear.grids))
            totals = np.bincount(places, np.abs(weights) * sizes, len(matrix)).astype(np.float64)
            self.check(f"{where}, row {into}", totals, least_product(places, powers_of_two(weights), grids, len(matrix)))
        return graph.mix(linear, matrix)

    def halves(self, where: str, one: Rows, other: Rows) -> Rows:
        """Half of each."""
        return self.add(where, {}, [{row: linear.times(0.5) for row, linear in rows.items()} for rows in (one, other)])

    def _check_parts(self, where: str, parts: list[tuple[Linear, float]]) -> None:
        """Refuse to add multiples of forms where that may be rounded."""
        totals, grids = np.zeros(1), np.full(1, np.inf)
        for linear, c in parts:
            totals = totals + abs(c) * linear.sizes
            grids = np.minimum(grids, [product_of_grids(lowest_bit_of(c), grid) for grid in linear.grids.tolist()])
        self.check(where, totals, grids + 0.0 * totals)


class Dimensions(NamedTuple):
    """How large each dimension of K x or Q x may be, and a power of two of which it is a multiple; 0 where none is known."""

    largest: Array
    grid: Array


@dataclass(frozen=True)
class RowRanges:
    """In one column: least and greatest value of every row, the absolute total of its terms, and its grid."""

    low: Array
    high: Array
    size: Array
    grid: Array

    @classmethod
    def of(cls, rows: Rows, sums: ExactSums) -> list[RowRanges]:
        """Of each column of a group, or of one where all are alike. Numbers that are rounded already have no grid."""
        bounds = [linear.bounds for linear in rows.values()]
        columns, places = max((bound.width for bound in bounds), default=1), list(rows)
        ranges = np.zeros((4, columns, len(sums.numbers)))
        ranges[3] = np.inf
        for number, values in enumerate(ranges if rows else ()):
            parts: list[Array] = [bound[number] for bound in bounds]  # type: ignore[misc]
            values[:, places] = (np.concatenate(parts) if columns == 1 else
                                 np.stack([np.broadcast_to(part, (columns,)) for part in parts], axis=1))
        ranges[3][sums.numbers & sums.are_rounded(ranges[2], ranges[3])] = 0.0
        return [cls(*values) for values in ranges.transpose(1, 0, 2)]


def least_product(places: Indices, one: Array, other: Array, count: int) -> Array:
    """The least product of two grids at each of so many places; infinite where there is none. See `product_of_grids`."""
    found = np.full(count, np.inf)
    known = (one > 0) & (other > 0)
    smallest = np.finfo(np.float64).smallest_subnormal
    np.minimum.at(found, places, np.where(known, np.maximum(np.where(known, one, 1.0) * other, smallest), 0.0))
    return found


def combine(entries: Sparse, rows: Mapping[int, Linear]) -> Linear:
    """The sum of coefficients times rows."""
    result = Linear()
    for row, coefficient in entries:
        if row in rows:
            result.add(rows[row], coefficient)
    return result
