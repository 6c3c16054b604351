"""How far real numbers are rounded on their way through a loop, by the weights that move and add them.

Each sum is off by what its terms are off by, and for every term by some units of the sum of their sizes: at its worst, and
in any order. A single term times a power of two is exact. Sums of bits are exact, which is a claim of its own (`rounding`).
What a soft head makes of real numbers is not followed.
"""

from __future__ import annotations

import numpy as np

from punchcard.proof.attention import LayerHead
from punchcard.proof.column import Column
from punchcard.proof.rounding import GATE, BitSums
from punchcard.transformer.expression import Array
from punchcard.transformer.grids import Flags, are_powers_of_two
from punchcard.transformer.summation import rounding_error

SPARE = 1.5
"""So many terms count for one: errors are computed with roundings themselves."""


class RealRounding:
    """The largest rounding errors of the rows of columns."""

    def __init__(self, sums: BitSums) -> None:
        self._sums, self._loop, self._eps = sums, sums.loop, sums.limits.eps
        self._kept: dict[tuple[Column, int, bool], Array] = {}

    def largest(self, columns: list[Column], layer: int, rows: slice) -> float:
        """The largest rounding error in some rows of some columns after so many layers; infinite where it is not known."""
        return max(float(self._errors(column, layer)[rows].max()) for column in columns)

    def _errors(self, column: Column, layer: int, *, heads: bool = False) -> Array:
        """Of each row after so many layers; with `heads`, and after the heads of the next."""
        key = column, layer, heads
        if key not in self._kept:
            if heads:
                found = self._after_heads(column, layer)
            else:
                found = self._after_units(column, layer - 1) if layer else np.zeros(self._loop.layout.width)
            found[~self._sums.entries(column, layer, heads=heads).real] = 0.0
            self._kept[key] = found
        return self._kept[key]

    def _carried(self, weights: Array, sizes: Array, errors: Array) -> Array:
        """The errors of `weights @ x` that x has brought."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where((weights != 0) & (sizes > 0), np.abs(weights) * errors, 0.0).sum(axis=1))

    def _summed(self, weights: Array, sizes: Array, errors: Array, constants: Array) -> Array:
        """The errors of `weights @ x + constants`."""
        weights, constants = np.abs(weights), np.abs(constants)
        used = (weights != 0) & (sizes > 0)
        terms = used.sum(axis=1) + (constants != 0)
        plain = (terms == 1) & (~used | are_powers_of_two(weights)).all(axis=1)
        carried = self._carried(weights, sizes, errors)
        rounded = rounding_error(carried + weights @ sizes + constants, SPARE * terms, self._eps)
        return np.asarray(carried + np.where(plain | (terms == 0), 0.0, rounded))

    def _after_heads(self, column: Column, number: int) -> Array:
        """What was there, and what the heads bring: each the mean of the columns that may win."""
        found, sizes = self._errors(column, number).copy(), self._sums.entries(column, number).size
        terms = (sizes > 0).astype(np.float64)
        for head, weights in enumerate(self._loop.layers[number].heads):
            value = np.asarray(self._sums.layers[number].value[head], dtype=np.float64)
            if value.any():
                columns = self._loop.heads.winners(LayerHead(number, head, weights), column)
                error, size = self._brought(value, number, columns)
                found, sizes, terms = found + error, sizes + size, terms + (size > 0)
        return np.asarray(found + np.where(terms > 1, rounding_error(sizes + found, SPARE * terms, self._eps), 0.0))

    def _brought(self, value: Array, number: int, columns: list[tuple[Column, ...]] | None) -> tuple[Array, Array]:
        """The errors and sizes of what a head brings; errors are infinite where it is not known who wins."""
        nothing = np.zeros(len(value))
        if columns is None:
            return np.where(value.any(axis=1), np.inf, 0.0), nothing
        error, size = nothing, nothing
        for group in columns:
            for each in group:
                rows = self._sums.entries(each, number)
                given = np.abs(value) @ rows.size
                own = self._summed(value, rows.size, self._errors(each, number), nothing)
                shared = rounding_error(given, SPARE * len(group), self._eps) if len(group) > 1 else nothing
                error, size = np.maximum(error, own + shared), np.maximum(size, given)
        return error, size

    def _after_units(self, column: Column, number: int) -> Array:
        rows, layer = self._sums.entries(column, number, heads=True), self._sums.layers[number]
        errors = self._errors(column, number, heads=True)
        w1, w2, b1, b2 = (np.asarray(matrix, dtype=np.float64) for matrix in (layer.w1, layer.w2, layer.b1, layer.b2))
        reach = self._sums.reach(layer, rows, column, number)
        # where a unit is open, its gates are 0
        gates: Flags = (np.abs(w1) >= GATE) & rows.used
        units = self._summed(np.where(gates, 0.0, w1), rows.size, errors, b1.ravel())
        units = np.where(reach >= GATE, np.inf, units)
        # one that is closed may be opened by the errors of its rows, and no further
        units[reach == 0] = self._carried(np.where(gates, 0.0, w1), rows.size, errors)[reach == 0]
        sizes = np.concatenate([rows.size, reach + np.where(np.isfinite(units), units, 0.0)])
        return self._summed(np.hstack([np.eye(len(w2)), w2]), sizes, np.concatenate([errors, units]), b2.ravel())
