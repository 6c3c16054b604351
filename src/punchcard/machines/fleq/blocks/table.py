"""A real function as a weighted mean of a table's values, the form that one softmax over constant keys evaluates.

    f(x)  ~  sum_j v_j e^(s_j) / sum_j e^(s_j),     s_j = w_j x + b_j,         low <= x <= high

The scores are tangents of a convex curve: the one that touches it near x is the largest, so that the softmax gives weight to
the values of a few neighbours and none to the rest. With curvature 1 / (k h)^2 at centres that are h apart, the weights
are bells of the width k h. The v_j are found by least squares. The error falls geometrically in the number of values, down
to rounding. A sum of sigmoids needs a softmax for each of its terms; here one does for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
from threadpoolctl import threadpool_limits

from punchcard.machines.fleq.blocks.enclosure import SATURATED, Enclosure, Number, enclose, flint
from punchcard.machines.fleq.blocks.fit import ROUNDING, best_solution, check_range, checked, solutions_of
from punchcard.machines.fleq.functions import Array, Smooth

SIZES = (48, 64, 96, 128, 192, 256)
"""How many values are tried, until the table is near enough."""
NEAR_ENOUGH = 4096.0
"""A table that is off by so many units of rounding of the largest value needs no more values."""
WIDTHS = (2.0, 1.75, 2.5, 1.5, 3.0)
BEYOND = (12, 8, 16, 4)
"""Centres beyond each end: near an end a bell needs neighbours on both sides."""
CROWDED = 2.0**-80
"""Where a domain begins at 0, centres crowd there as if it began at this part of its end."""


@dataclass(frozen=True, eq=False)
class Table:
    """Slopes w_j, offsets b_j and values v_j; `error` is the largest on a grid that the values were not fitted to."""

    slopes: Array
    offsets: Array
    values: Array
    low: float
    high: float
    error: float = math.nan

    def weights(self, x: Array) -> Array:
        """The softmax, a row for each x."""
        scores = x[:, None] * self.slopes + self.offsets
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(e / e.sum(axis=1, keepdims=True))

    def __call__(self, x: Array) -> Array:
        return np.asarray(self.weights(x) @ self.values)

    def rounding(self, x: Array) -> float:
        """The largest rounding error at the points x in units of roundoff, to first order.

        A score is off by some units of |w x| + |b|, and so is its weight, relatively. A weight that is off by a part
        moves the mean by that part of its value's distance from the mean. The sum is off by some units of the values.
        """
        p = self.weights(x)
        mean = p @ self.values
        score = np.abs(x[:, None] * self.slopes) + np.abs(self.offsets) + 2
        moved = np.sum(p * np.abs(self.values - mean[:, None]) * score, axis=1)
        return float(np.max(4 * moved + 8 * p @ np.abs(self.values)))

    def enclosure(self, smooth: Smooth, unit: float) -> Enclosure:
        """Its error as a function over the whole domain."""
        return _enclosure(self, smooth, unit)


@cache
def _enclosure(table: Table, smooth: Smooth, unit: float) -> Enclosure:
    arb = flint().arb
    columns = (table.slopes, table.offsets, table.values)
    keys = [(arb(float(w)), arb(float(b)), arb(float(v))) for w, b, v in zip(*columns, strict=True)]
    largest, count = float(np.abs(table.values).max()), len(keys)
    steepest = np.abs(table.slopes) * max(abs(table.low), abs(table.high)) + np.abs(table.offsets)

    def live(a: float, b: float) -> tuple[list[tuple[Number, Number, Number]], Number]:
        """The keys that have weight on a piece, and a constant that all scores lose: it cancels, and keeps powers small."""
        ends = np.array([[a], [b]]) * table.slopes + table.offsets
        best = int(np.argmax(ends.mean(axis=0)))
        behind = (ends - ends[:, best : best + 1]).max(axis=0) + 1e-12 * (steepest + steepest[best])
        return [keys[k] for k in np.flatnonzero(behind > -SATURATED)], arb(float(ends[:, best].mean()))

    def difference(a: float, b: float) -> tuple[Smooth, float]:
        near, top = live(a, b)

        def function(x: Number) -> Number:
            e = [(w * x + b - top).exp() for w, b, _ in near]
            taken = [p * v for p, (_, _, v) in zip(e, near, strict=True)]
            return sum(taken[1:], taken[0]) / sum(e[1:], e[0]) - smooth(x)

        return function, 4 * count * largest * math.exp(-SATURATED)

    def units(a: float, b: float) -> tuple[Smooth, float]:
        """At its worst: a score is off by two units, a weight by four, and the sum, in any order, by all terms."""
        near, top = live(a, b)

        def function(x: Number) -> Number:
            e = [(w * x + b - top).exp() for w, b, _ in near]
            whole = sum(e[1:], e[0])
            mean = sum((p * v for p, (_, _, v) in zip(e, near, strict=True)), arb(0)) / whole
            total = arb(0)
            for p, (w, b, v) in zip(e, near, strict=True):
                moved = abs(v - mean) * (2 * (abs(w * x) + abs(b)) + 4)
                total = total + p / whole * (moved + (count + 3) * abs(v))
            return total

        return function, 8 * count * largest * (float(steepest.max()) + count) * math.exp(-SATURATED)

    return enclose(difference, units, table.low, table.high, unit, columns)


def tabulate(function: Callable[..., object], low: float, high: float, *, rounding: float = ROUNDING) -> Table:
    """A table for `function` on [low, high], of as few values as are near enough."""
    check_range(low, high)
    evaluate = checked(function, low, high)
    fresh = np.concatenate([spread.points(2000, phase=(math.sqrt(5) - 1) / 2) for spread in _spreads(low, high)])
    wanted = evaluate(fresh)
    enough = NEAR_ENOUGH * rounding * float(np.abs(wanted).max())
    nothing = np.zeros(1)
    best, best_score = Table(nothing, nothing, nothing, low, high), math.inf
    with threadpool_limits(1):
        for size, spread in product(SIZES, _spreads(low, high)):
            for width, beyond in product(WIDTHS, BEYOND):
                if best_score > enough and 2 * beyond + 2 <= size:
                    score, table = _fitted(evaluate, spread, *spread.tangents(size, width, beyond), rounding)
                    best, best_score = min((best, best_score), (table, score), key=lambda pair: pair[1])
    return replace(best, error=float(np.abs(best(fresh) - wanted).max()))


@dataclass(frozen=True)
class _Spread:
    """Centres evenly in x, or with a shift evenly in log(x + shift)."""

    low: float
    high: float
    shift: float | None

    @property
    def ends(self) -> tuple[float, float]:
        if self.shift is None:
            return self.low, self.high
        return math.log(self.low + self.shift), math.log(self.high + self.shift)

    def points(self, count: int, phase: float) -> Array:
        """Points of the domain as even as the centres, and dense near its ends."""
        t = (np.arange(count) + phase) / count
        place = self.ends[0] + (self.ends[1] - self.ends[0]) * np.concatenate([t, (1 - np.cos(np.pi * t)) / 2, [0.0, 1.0]])
        x = place if self.shift is None else np.exp(place) - self.shift
        return np.unique(np.clip(x, self.low, self.high))

    def tangents(self, size: int, width: float, beyond: int) -> tuple[Array, Array]:
        """Slopes and offsets of the tangents of k x^2 / 2, or of -k log(x + shift), where k is the curvature."""
        step = (self.ends[1] - self.ends[0]) / (size - 1 - 2 * beyond)
        centres = self.ends[0] + step * (np.arange(size) - beyond)
        curvature = 1 / (width * step) ** 2
        if self.shift is None:
            return np.asarray(curvature * centres), np.asarray(-curvature * centres**2 / 2)
        slopes = np.asarray(-curvature * np.exp(-centres))
        # the least of the curve is at its end: there it is 0, so that a column that is kept out is far below
        return slopes, np.asarray(curvature * (1 - centres) + slopes * self.shift + curvature * centres[-1])


def _spreads(low: float, high: float) -> list[_Spread]:
    if low < 0.0:
        return [_Spread(low, high, None)]
    return [_Spread(low, high, CROWDED * high if low == 0.0 else 0.0), _Spread(low, high, None)]


def _fitted(
    evaluate: Callable[[Array], Array], spread: _Spread, slopes: Array, offsets: Array, rounding: float
) -> tuple[float, Table]:
    """Least squares on one grid, and the cutoff of singular values that is best on another, rounding included."""
    table = Table(slopes, offsets, np.zeros_like(slopes), spread.low, spread.high)
    samples, checks = (spread.points(n * len(slopes), phase) for n, phase in ((2, 0.5), (1, 0.25)))
    matrix, wanted = table.weights(samples), evaluate(samples)
    values = solutions_of(matrix, np.linalg.svd(matrix, full_matrices=False), wanted)
    # half of the bound of rounding: it is seldom reached
    rounded = np.array([rounding / 2 * replace(table, values=each).rounding(checks) for each in values.T])
    score, chosen = best_solution(values, rounded, table.weights(checks), evaluate(checks))
    return score, replace(table, values=chosen)
