"""A function of a vector as a constant plus a sum of sigmoids (section 6.1 of the paper, after Barron).

    f(x)  ~  c_0 + sum_k c_k sigmoid(a_k . x + b_k),         low <= every entry of x <= high

Two ways. `fit_vector` draws the directions a_k at random and solves for the c_k by least squares: for any function. The
error falls at least like 1 / sqrt(m) where the function has a finite Fourier moment. `ridges` adds up functions of single
directions, each fitted by itself: where f is a sum of those, it is as accurate as `fit` in one dimension.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from threadpoolctl import threadpool_limits

from punchcard.arguments import checked
from punchcard.errors import FitError
from punchcard.machines.fleq.blocks.fit import ROUNDING, best_solution, check_range, solutions_of
from punchcard.machines.fleq.blocks.sigmoids import SigmoidSum, VectorSum
from punchcard.machines.fleq.functions import Array, sigmoid

STEEPNESS = (1.0, 2.0, 0.5, 4.0)
"""How often a sigmoid of a random direction rises from 0 to 1 over the cube, about: tried in this order."""
MOST_CORNERS = 10
"""Up to so many dimensions all corners of the cube are looked at."""


@checked
def fit_vector(
    function: Callable[..., object], entries: int, low: float, high: float, terms: int = 256, *, seed: int = 0,
    rounding: float = ROUNDING,
) -> VectorSum:
    """A sum of `terms` sigmoids for a function of vectors with `entries` entries from low to high.

    `function` takes a matrix with a point in each row and gives their values. `rounding` is as for `fit`.
    """
    if entries < 1:
        raise FitError(f"{entries} entries: a vector has at least 1")
    check_range(low, high, terms)
    rng = np.random.default_rng(seed)
    samples, checks, fresh = (cube(rng, entries, low, high, count) for count in (8 * terms, 4 * terms, 4096))
    values, wanted = _values(function, samples), _values(function, checks)
    best, best_score = None, math.inf
    with threadpool_limits(1):
        for steepness in STEEPNESS:
            a, b = random_sigmoids(rng, entries, low, high, terms, steepness)
            matrix = _columns(a, b, samples)
            solutions = solutions_of(matrix, np.linalg.svd(matrix, full_matrices=False), values, passes=1)
            rounded = rounding * np.abs(solutions[1:]).sum(axis=0)
            score, solution = best_solution(solutions, rounded, _columns(a, b, checks), wanted)
            if score < best_score:
                best, best_score = VectorSum(a, b, solution[1:], float(solution[0]), low, high), score
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
        if g.entries != 1:
            raise FitError(f"the function of direction {list(direction)} takes {g.entries} numbers: it must take one")
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
