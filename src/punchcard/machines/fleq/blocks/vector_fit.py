"""A function of a vector as a constant plus a sum of sigmoids (section 6.1 of the paper, after Barron).

    f(x)  ~  c_0 + sum_k c_k sigmoid(a_k . x + b_k),         low <= every entry of x <= high

Two ways. `fit_vector` draws the directions a_k at random and solves for the c_k by least squares: for any function. The
error falls at least like 1 / sqrt(m) where the function has a finite Fourier moment. `ridges` adds up functions of single
directions, each fitted by itself: where f is a sum of those, it is as accurate as `fit` in one dimension.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from punchcard.arguments import checked
from punchcard.errors import FitError
from punchcard.machines.fleq.blocks.enclosure import Enclosure
from punchcard.machines.fleq.blocks.fit import CUTOFFS, ROUNDING, Array, SigmoidSum
from punchcard.machines.fleq.functions import Smooth, sigmoid

VECTOR_MARGIN = 2.0
"""Random points of a cube miss the worst one by more than a grid of a line does."""
STEEPNESS = (1.0, 2.0, 0.5, 4.0)
"""How often a sigmoid of a random direction rises from 0 to 1 over the cube, about: tried in this order."""
MOST_CORNERS = 10
"""Up to so many dimensions all corners of the cube are looked at."""


@dataclass(frozen=True, eq=False)
class VectorSum:
    """constant + sum_k c_k sigmoid(a_k . x + b_k), and the cube that it was fitted on.

    `error` is the largest absolute error on points that were used neither to fit nor to choose; `margin` is what the worst
    point of all may be larger by.
    """

    directions: Array
    biases: Array
    coefficients: Array
    constant: float
    low: float
    high: float
    error: float = math.nan
    margin: float = VECTOR_MARGIN
    rounded: float | None = None
    """Its rounding error in units of roundoff, where that is known better than term by term."""

    def __call__(self, x: ArrayLike) -> Array:
        """The values at points whose entries are the last axis."""
        points = np.asarray(x, dtype=np.float64)
        return np.asarray(self.constant + sigmoid(points @ self.directions.T + self.biases) @ self.coefficients)

    @property
    def terms(self) -> int:
        return len(self.coefficients)

    @property
    def entries(self) -> int:
        return int(self.directions.shape[1])

    @property
    def truncation(self) -> float:
        return self.margin * self.error

    def rounding(self) -> float:
        """Each term at its own worst point, in units of roundoff: the sum's worst point is no worse than all of these.

        A score is off by d + 1 units of |a| . |x| + |b| (there are d products in it), which the sigmoid passes on by its
        slope. The sigmoid and its products are off by seven units, and a sum of m terms, in any order, by one for each.
        """
        if self.rounded is not None:
            return self.rounded
        largest = max(abs(self.low), abs(self.high))
        spread = np.abs(self.directions).sum(axis=1) * largest
        nearest = np.maximum(0.0, np.abs(self.biases) - spread)  # the least |score| that a term may have
        slope = sigmoid(nearest) * (1 - sigmoid(nearest))
        most = sigmoid(spread + self.biases)
        score = (self.entries + 1) * (spread + np.abs(self.biases))
        terms = len(self.coefficients)
        units = float((slope * score + (7 + terms) * most) @ np.abs(self.coefficients))
        return units + (2 + terms) * abs(self.constant)

    def enclosure(self, smooth: Smooth | None, unit: float) -> Enclosure:
        """As far as it was measured: no function of vectors is known on intervals."""
        over = f"[{self.low:g}, {self.high:g}]^{self.entries}"
        return Enclosure(self.truncation, unit * self.rounding(), over, proven=False)


@checked
def fit_vector(
    function: Callable[..., object], entries: int, low: float, high: float, terms: int = 256, *, seed: int = 0,
    rounding: float = ROUNDING,
) -> VectorSum:
    """A sum of `terms` sigmoids for a function of vectors with `entries` entries from low to high.

    `function` takes a matrix with a point in each row and gives their values. `rounding` is as for `fit`.
    """
    _check_cube(entries, low, high, terms)
    rng = np.random.default_rng(seed)
    samples, checks, fresh = (cube(rng, entries, low, high, count) for count in (8 * terms, 4 * terms, 4096))
    values, wanted = _values(function, samples), _values(function, checks)
    best, best_score = None, math.inf
    with threadpool_limits(1):
        for steepness in STEEPNESS:
            a, b = random_sigmoids(rng, entries, low, high, terms, steepness)
            solutions = _solve(_columns(a, b, samples), values)
            errors = np.abs(_columns(a, b, checks) @ solutions - wanted[:, None]).max(axis=0)
            scores = errors + rounding * np.abs(solutions[1:]).sum(axis=0)
            least = int(np.argmin(np.where(np.isfinite(scores), scores, math.inf)))
            if scores[least] < best_score:
                best = VectorSum(a, b, solutions[1:, least], float(solutions[0, least]), low, high)
                best_score = float(scores[least])
    if best is None:
        raise FitError(f"{terms} terms on [{low}, {high}]^{entries}: no sum of sigmoids with finite coefficients was found")
    return replace(best, error=float(np.abs(best(fresh) - _values(function, fresh)).max()))


@checked
def ridges(parts: Sequence[tuple[Sequence[float], SigmoidSum]], low: float, high: float) -> VectorSum:
    """sum_r g_r(u_r . x) for given directions u_r and fitted functions g_r of one number.

    Each g_r must hold on all that u_r . x can be on the cube. The errors add up.
    """
    if not parts:
        raise FitError("ridges of nothing: give at least one direction and its function")
    largest, found = max(abs(low), abs(high)), []
    for direction, g in parts:
        reach = float(np.abs(np.asarray(direction, dtype=np.float64)).sum()) * largest
        if not g.low <= -reach <= reach <= g.high:
            raise FitError(f"direction {list(direction)} reaches ±{reach:g} on [{low:g}, {high:g}], and its function is "
                           f"fitted on {g.low:g} to {g.high:g}: fit it on that range")
        found.append(np.outer(g.weights, direction))
    if len({a.shape[1] for a in found}) != 1:
        raise FitError(f"directions of {sorted({a.shape[1] for a in found})} entries: all must have as many")
    fits = [g for _, g in parts]
    return VectorSum(
        np.vstack(found), np.concatenate([g.biases for g in fits]), np.concatenate([g.coefficients for g in fits]),
        float(sum(g.constant for g in fits)), low, high, error=float(sum(g.truncation for g in fits)), margin=1.0,
        rounded=(found[0].shape[1] + 1) * sum(g.rounding() for g in fits))


def random_sigmoids(
    rng: np.random.Generator, entries: int, low: float, high: float, terms: int, steepness: float
) -> tuple[Array, Array]:
    """Directions uniform on the sphere, each with a bias that puts its middle at a random point of the cube."""
    directions = rng.standard_normal((terms, entries))
    directions *= 8 * steepness / ((high - low) * np.linalg.norm(directions, axis=1, keepdims=True))
    middles = rng.uniform(low, high, (terms, entries))
    return directions, -np.sum(directions * middles, axis=1)


def cube(rng: np.random.Generator, entries: int, low: float, high: float, count: int) -> Array:
    """Random points of the cube, and its corners and middle, where a fit is most often worst."""
    points = [rng.uniform(low, high, (count, entries)), np.full((1, entries), (low + high) / 2)]
    if entries <= MOST_CORNERS:
        points.append(np.array(list(product((low, high), repeat=entries))))
    return np.vstack(points)


def _solve(matrix: Array, values: Array) -> Array:
    """Least squares, a solution for each cutoff of the singular values."""
    u, singular, vt = np.linalg.svd(matrix, full_matrices=False)
    kept = singular[:, None] > singular[0] * np.array(CUTOFFS)
    inverse = kept / np.maximum(singular, np.finfo(np.float64).tiny)[:, None]
    return np.asarray(vt.T @ (inverse * (u.T @ values)[:, None]))


def _columns(directions: Array, biases: Array, points: Array) -> Array:
    return np.column_stack([np.ones(len(points)), sigmoid(points @ directions.T + biases)])


def _values(function: Callable[..., object], points: Array) -> Array:
    with np.errstate(all="ignore"):
        values = np.asarray(function(points))
    if values.shape != points.shape[:1] or values.dtype.kind not in "fiub":
        raise FitError(f"the function gave an array of shape {values.shape} for {len(points)} points in rows: it must give "
                       "a number for each row")
    bad = points[~np.isfinite(values)]
    if len(bad):
        raise FitError(f"the function must be finite on the cube, and is not at x = {np.round(bad[0], 6).tolist()}")
    return values.astype(np.float64)


def _check_cube(entries: int, low: float, high: float, terms: int) -> None:
    if entries < 1:
        raise FitError(f"{entries} entries: a vector has at least 1")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise FitError(f"range [{low}, {high}]: low must be less than high, and both finite")
    if terms < 1:
        raise FitError(f"{terms} terms: a sum of sigmoids needs at least 1")
