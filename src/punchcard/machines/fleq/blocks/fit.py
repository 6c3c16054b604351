"""A real function on a range as a constant plus a sum of sigmoids, the form that one attention layer can evaluate.

    f(x)  ~  c_0 + sum_k c_k sigmoid(w_k x + b_k),         low <= x <= high

Two methods. "threshold" is the paper's partition: steep sigmoids are thresholds, and the sum is a staircase whose
error falls like 1 / m. "least-squares" overlaps wide sigmoids and solves for the c_k; for a smooth function its error
falls geometrically in m, down to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice, product
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from punchcard.errors import FitError, did_you_mean
from punchcard.machines.fleq.blocks.enclosure import (
    SATURATED,
    Enclosure,
    Number,
    Piece,
    enclose,
    flint,
    most,
    round_up,
    sigmoid_of,
)
from punchcard.machines.fleq.functions import Smooth, sigmoid

Array = npt.NDArray[np.float64]
Layout = tuple[Array, Array]
"""The centres and the widths of the sigmoids: sigmoid((x - centre) / width)."""

METHODS = ("least-squares", "threshold")

ROUNDING = 2.0**-52
"""Each sigmoid is off by about this much in float64, so the sum is off by this times sum |c_k|."""

STEEPNESS = 80.0
"""Slope times gap of a threshold: half a gap away the sigmoid is within exp(-40) < 1e-17 of its step."""

NEAREST = 110
"""How near 0 a function is looked at where its range ends there, in halvings of the range: 2^-55 is the root of 2^-110."""

CUTOFFS = (1e-15, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6)
"""Singular values below these parts of the largest are dropped. A higher cutoff gives smaller coefficients."""


FIT_MARGIN = 1.25
"""A fit's error is the largest on a grid; between two of its points a smooth function's may be a little larger."""


class SigmoidTerms(Protocol):
    """constant + sum_k c_k sigmoid(x . a_k + b_k), of a number or of a vector: what blocks are built from.

    `directions` are the a_k, a row for each term and a column for each entry of x.
    """

    @property
    def directions(self) -> Array: ...
    @property
    def biases(self) -> Array: ...
    @property
    def coefficients(self) -> Array: ...
    @property
    def constant(self) -> float: ...

    @property
    def truncation(self) -> float:
        """How far it is from the function that it stands for, at most."""
        ...

    def rounding(self) -> float:
        """Its largest rounding error in units of roundoff, to first order."""
        ...

    def enclosure(self, smooth: Smooth | None, unit: float) -> Enclosure:
        """Its error as the function that it stands for, whose form on intervals is `smooth`, if there is one."""
        ...


def largest_score(terms: SigmoidTerms, limit: float) -> float:
    """The largest |x . a_k + b_k| for entries of x within ±limit."""
    return float(np.max(np.abs(terms.directions).sum(axis=1) * limit + np.abs(terms.biases)))


@dataclass(frozen=True, eq=False)
class SigmoidSum:
    """constant + sum_k c_k sigmoid(w_k x + b_k), with the range it was fitted on.

    `error` is the largest absolute error on a dense grid of the range. But for the two ends, its points were used
    neither to fit the coefficients nor to choose among fits.
    """

    weights: Array
    biases: Array
    coefficients: Array
    constant: float
    low: float
    high: float
    error: float = math.nan

    def __call__(self, x: npt.ArrayLike) -> Array:
        points = np.asarray(x, dtype=np.float64)
        return np.asarray(self.constant + sigmoid(points[..., None] * self.weights + self.biases) @ self.coefficients)

    @property
    def terms(self) -> int:
        return len(self.coefficients)

    @property
    def directions(self) -> Array:
        return self.weights[:, None]

    @property
    def truncation(self) -> float:
        return FIT_MARGIN * self.error

    def rounding(self) -> float:
        return _rounding(self)

    def enclosure(self, smooth: Smooth | None, unit: float) -> Enclosure:
        """Its error over the whole range; of a function that is not known on intervals, as far as it was measured."""
        return _enclosure(self, smooth, unit)

    @property
    def magnitude(self) -> float:
        """sum |c_k|: times the rounding of one sigmoid, this is the rounding error of the sum."""
        return float(np.abs(self.coefficients).sum())


@cache
def _rounding(total: SigmoidSum) -> float:
    return round_up(most(_units(total), total.low, total.high))


def _units(total: SigmoidSum) -> Piece:
    """The rounding error at a point, in units of roundoff.

    The score w x + b is off by two units of |w x| + |b|, which the sigmoid passes on by its slope s (1 - s). The
    sigmoid and its products are off by seven units of c s at most, and a sum of m terms, in any order, by one for each.
    """
    terms, arb = _numbers(total), flint().arb

    def units(x: Number) -> Number:
        found = arb(abs(total.constant)) * (2 + len(terms))
        for w, b, c in terms:
            s = sigmoid_of(w * x + b)
            found = found + abs(c) * (s * (1 - s) * 2 * (abs(w * x) + abs(b)) + (7 + len(terms)) * s)
        return found

    return lambda a, b: (units, 0.0)


@cache
def _enclosure(total: SigmoidSum, smooth: Smooth | None, unit: float) -> Enclosure:
    if smooth is None:
        return Enclosure(total.truncation, unit * total.rounding(), f"[{total.low:g}, {total.high:g}]", proven=False)
    known, terms, arb = smooth, _numbers(total), flint().arb

    def on_piece(a: float, b: float) -> tuple[Smooth, float]:
        """Sigmoids that are 0 or 1 on the whole piece are constants there, but for e^-80."""
        ends = np.array([[a], [b]]) * total.weights + total.biases
        off = 1e-12 * (np.abs(total.weights) * max(abs(a), abs(b)) + np.abs(total.biases))
        high, low = ends.min(axis=0) - off > SATURATED, ends.max(axis=0) + off < -SATURATED
        constant = sum((terms[k][2] for k in np.flatnonzero(high)), arb(total.constant))
        live = [terms[k] for k in np.flatnonzero(~(high | low))]
        slack = float(np.abs(total.coefficients[high | low]).sum()) * math.exp(1 - SATURATED)

        def difference(x: Number) -> Number:
            found = constant - known(x)
            for w, b, c in live:
                found = found + c * sigmoid_of(w * x + b)
            return found

        return difference, slack

    key = total.weights, total.biases, total.coefficients, np.array([total.constant])
    return enclose(on_piece, _units(total), total.low, total.high, unit, key)


def _numbers(total: SigmoidSum) -> list[tuple[Number, Number, Number]]:
    """The terms as exact numbers."""
    return [(flint().arb(float(w)), flint().arb(float(b)), flint().arb(float(c)))
            for w, b, c in zip(total.weights, total.biases, total.coefficients, strict=True)]


def fit(
    function: Callable[..., object], low: float, high: float, terms: int = 64, method: str = "least-squares", *,
    rounding: float = ROUNDING,
) -> SigmoidSum:
    """The sum of `terms` sigmoids that stands for `function` on [low, high].

    `function` takes an array or a number. `rounding` is the relative rounding of the number format that will evaluate
    the sum; least squares gives up accuracy that would drown in rounding * sum |c_k| there.
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise FitError(f"range [{low}, {high}]: low must be less than high, and both finite")
    if terms < 1:
        raise FitError(f"{terms} terms: a sum of sigmoids needs at least 1")
    if method not in METHODS:
        raise FitError(f"unknown method {method!r}{did_you_mean(method, METHODS)}: use {' or '.join(METHODS)}")
    low, high = float(low), float(high)
    evaluate = checked(function, low, high)
    if method == "threshold":
        result = fit_threshold(evaluate, low, high, terms)
    else:
        # Many small factorisations: more than one thread makes them slower, and tens of times so on a busy machine.
        with threadpool_limits(1):
            result = fit_least_squares(evaluate, low, high, terms, rounding)
    fresh = grid(low, high, 2000, phase=(math.sqrt(5) - 1) / 2)
    return replace(result, error=float(np.abs(result(fresh) - evaluate(fresh)).max()))


def fit_threshold(evaluate: Callable[[Array], Array], low: float, high: float, terms: int) -> SigmoidSum:
    """The paper's partition low = a_0 < a_1 < ... < a_m < high, and f(a_i) on [a_i, a_(i+1)):

        f(a_0) + sum_i (f(a_i) - f(a_(i-1))) 1[x >= a_i]

    which regroups sum_i f(a_i) (1[x >= a_i] - 1[x >= a_(i+1)]), with the threshold 1[x >= a] as sigmoid(w (x - a)).
    The a_i cut the variation V of f into m + 1 equal parts, so no interval is off by more than V / (m + 1): the paper's
    partitions for 1/x and sqrt, without their slack. Between two steps the sum lies between the two values.
    """
    points = grid(low, high, 20_000, phase=0.5)
    variation = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(evaluate(points))))])
    if variation[-1] == 0.0:
        variation = points - low
    levels, first = np.unique(variation, return_index=True)
    step = levels[-1] / (terms + 1)
    targets = step * np.arange(1, terms + 1)
    cuts = np.interp(targets, levels, points[first])
    # where f jumps between two points of the grid, the cut belongs to the second, which has the new value
    after = points[first][np.searchsorted(levels, targets)]
    cuts = np.where(np.abs(evaluate(after) - evaluate(cuts)) > step / 2, after, cuts)
    gaps = np.diff(np.concatenate([[low], cuts, [high]]))
    # several cuts can share a jump: their gap of 0 becomes a few spacings of the numbers there
    narrowest = np.maximum(np.minimum(gaps[:-1], gaps[1:]), 4 * np.spacing(np.maximum(np.abs(cuts), 1e-200)))
    values = evaluate(np.concatenate([[low], cuts]))
    weights = STEEPNESS / narrowest
    return SigmoidSum(weights, -weights * cuts, np.diff(values), float(values[0]), low, high)


def fit_least_squares(
    evaluate: Callable[[Array], Array], low: float, high: float, terms: int, rounding: float
) -> SigmoidSum:
    """The best of several layouts of centres and widths.

    The families of layouts race: each shows its first few, and the leader goes on with the rest. A layout costs about
    m^3, which is why more terms mean fewer tries. A layout that reaches the rounding of f itself ends the search.
    """
    samples, checks = grid(low, high, 100 + terms, phase=0.5), grid(low, high, 200 + terms, phase=0.25)
    problem = Problem(samples, evaluate(samples), checks, evaluate(checks), rounding)
    families = layout_families(low, high, terms)
    budget = min(max(3, 20_000_000 // terms**3), 80)
    opening = min(max(1, budget // (2 * len(families))), 3)
    openings = [problem.best_of(islice(family, opening)) for family in families]
    lead = min(range(len(families)), key=lambda i: openings[i].score)
    best = openings[lead]
    if best.score > problem.enough:
        best = min(best, problem.best_of(islice(families[lead], budget)), key=lambda attempt: attempt.score)
    if not math.isfinite(best.score):
        raise FitError(f"range [{low}, {high}] with {terms} terms: no layout of sigmoids gave finite coefficients")
    return SigmoidSum(*affine(best.layout), best.solution[1:], float(best.solution[0]), low, high)


class Attempt(NamedTuple):
    """A layout, the constant and the c_k found for it, and how bad they are."""

    score: float
    layout: Layout
    solution: Array


@dataclass(frozen=True)
class Problem:
    """Values to fit on one grid, and values to judge by on another."""

    samples: Array
    values: Array
    checks: Array
    wanted: Array
    rounding: float

    @property
    def enough(self) -> float:
        """The rounding of f itself: no fit needs to be better."""
        return 4 * self.rounding * float(np.abs(self.wanted).max())

    def best_of(self, layouts: Iterable[Layout]) -> Attempt:
        best = Attempt(math.inf, (np.ones(0), np.ones(0)), np.ones(0))
        for layout in layouts:
            best = min(best, self.solve(layout), key=lambda attempt: attempt.score)
            if best.score <= self.enough:
                break
        return best

    def solve(self, layout: Layout) -> Attempt:
        """Least squares on the samples; the score is the largest error on the checks plus rounding * sum |c_k|.

        The columns are not scaled: a sigmoid that is tiny on the whole range would get a huge coefficient. R of the QR
        decomposition has the singular values of the whole matrix, and one decomposition of it serves every cutoff. A
        second pass on the residual takes off most of the solver's own rounding.
        """
        matrix = columns(layout, self.samples)
        q, r = np.linalg.qr(matrix)
        u, singular, vt = np.linalg.svd(r)
        kept = singular[:, None] > singular[0] * np.array(CUTOFFS)
        inverse = kept / np.maximum(singular, np.finfo(np.float64).tiny)[:, None]
        basis = q @ u
        solutions = vt.T @ (inverse * (basis.T @ self.values)[:, None])
        residuals = self.values[:, None] - matrix @ solutions
        solutions = solutions + vt.T @ (inverse * (basis.T @ residuals))
        errors = np.abs(columns(layout, self.checks) @ solutions - self.wanted[:, None]).max(axis=0)
        scores = errors + self.rounding * np.abs(solutions[1:]).sum(axis=0)
        scores = np.where(np.isfinite(scores), scores, math.inf)
        least = int(np.argmin(scores))
        return Attempt(float(scores[least]), layout, solutions[:, least])


def columns(layout: Layout, points: Array) -> Array:
    """1, and the sigmoids of the layout, at the points; rounded as SigmoidSum rounds them."""
    weights, biases = affine(layout)
    return np.column_stack([np.ones_like(points), sigmoid(points[:, None] * weights + biases)])


def affine(layout: Layout) -> tuple[Array, Array]:
    """w and b with w x + b = (x - centre) / width. No width is so small that w x and b would cancel to noise."""
    centres, widths = layout
    widths = np.maximum(widths, 64 * np.spacing(np.abs(centres)))
    return 1 / widths, -centres / widths


def layout_families(low: float, high: float, terms: int) -> list[Iterator[Layout]]:
    """What to try, likeliest first: centres spaced evenly in log |x|, in x, or crowded towards one end."""
    steps = (np.arange(terms) + 0.5) / terms
    families = [uniform(low, high, steps), crowded(low, high, steps), mirrored(crowded(low, high, steps), low + high)]
    if low > 0:
        families.insert(0, geometric(low, high, steps))
    elif high < 0:
        families.insert(0, mirrored(geometric(-high, -low, steps), 0.0))
    if low == 0:
        families.insert(0, tapered(high, steps))
    elif high == 0:
        families.insert(0, mirrored(tapered(-low, steps), 0.0))
    return families


def geometric(low: float, high: float, steps: Array) -> Iterator[Layout]:
    """Centres from before * low to after * high with equal ratios, each as wide as a few spacings there."""
    reaches = ((0.3, 3.0), (0.1, 1.0), (0.2, 2.0), (0.3, 10.0), (0.2, 1.0), (0.1, 3.0), (0.1, 0.5), (0.03, 1.0), (0.5, 2.0))
    for (before, after), factor in product(reaches, spans(len(steps))):
        ratio = math.log(after * high / (before * low))
        centres = before * low * np.exp(ratio * steps)
        yield centres, factor * ratio / len(steps) * centres


def uniform(low: float, high: float, steps: Array) -> Iterator[Layout]:
    """Centres spaced evenly over a range `reach` times as wide."""
    for reach, factor in product((1.5, 1.1, 2.0, 3.0, 1.25, 1.0, 4.0), spans(len(steps))):
        size = reach * (high - low)
        centres = (low + high) / 2 + size * (steps - 0.5)
        yield centres, np.full_like(centres, factor * size / len(steps))


def crowded(low: float, high: float, steps: Array) -> Iterator[Layout]:
    """Centres low + size * t^power, for a function like sqrt whose slope is infinite at the low end."""
    for power, reach, factor in product((12, 8, 16, 24, 5, 3), (2.0, 1.0, 10.0), spans(len(steps))):
        size = reach * (high - low)
        yield low + size * steps**power, factor * size * power * steps ** (power - 1) / len(steps)


def tapered(high: float, steps: Array) -> Iterator[Layout]:
    """Centres that thin out towards 0 like e^(-sigma (sqrt m - sqrt k)), each some times as wide as it is far from 0.

    So cluster the poles of the best rational functions near the branch point of a root. For sqrt x from 0 to 16, 64 terms
    are off by 5.4e-10, and 96 by 3.3e-12; centres crowded by a power by 2.3e-8 and 1.0e-8.
    """
    count = len(steps)
    places = np.sqrt(count) - np.sqrt(np.arange(1, count + 1))
    deepest = NEAREST * math.log(2.0) / max(float(places[0]), 1.0)
    for sigma, reach, width in product((6.25, 6.0), (0.5, 0.3), (9.0, 6.0)):
        centres = reach * high * np.exp(-min(sigma, deepest) * places)
        yield centres, width * centres


def spans(terms: int) -> tuple[float, ...]:
    """Widths in units of the spacing. Many terms can be wider, and their matrix still has the rank it needs."""
    return (4.0, 2.0, 8.0) if terms > 128 else (2.0, 4.0, 2.8, 1.4, 1.0)


def mirrored(layouts: Iterator[Layout], total: float) -> Iterator[Layout]:
    """The same layouts with x replaced by total - x."""
    return ((total - centres, widths) for centres, widths in layouts)


def grid(low: float, high: float, count: int, phase: float) -> Array:
    """Points of [low, high]: dense near the ends, crowded into them, even in log |x| where 0 is outside; and the ends.

    An end at 0 has points even in log |x| down to where a root is below the rounding.
    Two grids with different counts and phases share the ends and no other point but by accident.
    """
    t = (np.arange(count) + phase) / count
    bent = (1 - np.cos(np.pi * t)) / 2
    size = high - low
    parts = [low + size * bent, low + size * t**12, high - size * t**12, np.array([low, high])]
    if low > 0:
        parts.append(low * (high / low) ** bent)
    elif high < 0:
        parts.append(high * (low / high) ** bent)
    elif low == 0 or high == 0:
        parts.append((low + high) * 2.0 ** (-NEAREST * t))
    return np.unique(np.clip(np.concatenate(parts), low, high))


def checked(function: Callable[..., object], low: float, high: float) -> Callable[[Array], Array]:
    """`function` on arrays of float64, refusing values that are not real and finite."""

    def evaluate(points: Array) -> Array:
        with np.errstate(all="ignore"):
            values = on_array(function, points)
        bad = points[~np.isfinite(values)]
        if len(bad):
            raise FitError(f"range [{low}, {high}]: the function must be finite there, and is not at x = {bad[0]:g}")
        return values

    if low < 0 < high:
        evaluate(np.array([0.0]))  # where a pole most often is, and no grid need meet it
    return evaluate


def on_array(function: Callable[..., object], points: Array) -> Array:
    """The values of a function of arrays, or of numbers: what fails on the array is asked point by point."""
    try:
        values = np.asarray(function(points))
        if values.shape == points.shape and values.dtype.kind in "fiub":
            return values.astype(np.float64)
    except (TypeError, ValueError):
        pass
    return np.array([at_point(function, float(x)) for x in points], dtype=np.float64)


def at_point(function: Callable[..., object], x: float) -> float:
    """The value at one point; nan where the function has none."""
    try:
        return float(function(x))  # type: ignore[arg-type]
    except (ArithmeticError, ValueError, TypeError):
        return math.nan
