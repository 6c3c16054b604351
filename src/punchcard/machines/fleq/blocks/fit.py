"""A real function on a range as a constant plus a sum of sigmoids, the form that one attention layer can evaluate.

    f(x)  ~  c_0 + sum_k c_k sigmoid(w_k x + b_k),         low <= x <= high

Two methods. "threshold" is the paper's partition: steep sigmoids are thresholds, and the sum is a staircase whose error
falls like 1 / m. "least-squares" overlaps wide sigmoids and solves for the c_k; for a smooth function its error falls
geometrically in m, down to rounding. `fit_with_kinks` is for a function whose slope jumps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from punchcard.errors import FitError, did_you_mean
from punchcard.machines.fleq.blocks.sigmoids import SigmoidSum
from punchcard.machines.fleq.functions import Array, sigmoid

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

KINK_POWERS = (6, 8, 12)
KINK_WIDTHS = (1.0, 2.0)
"""Widths of the sigmoids beside a kink, in units of their spacing."""
STRETCHES = (1.0, 3.0)
"""How far centres go beyond an end of the range: not at all for a function that is flat there, else further."""
NARROWEST = 2.0**-36
"""Least width beside a kink, in units of the range: the sum may be off by a quarter of it, and scores stay below 2^37."""
FRESH = 2000, (math.sqrt(5) - 1) / 2
"""Count and phase of the points at which a fit's error is measured."""


def fit(
    function: Callable[..., object], low: float, high: float, terms: int = 64, method: str = "least-squares", *,
    rounding: float = ROUNDING,
) -> SigmoidSum:
    """The sum of `terms` sigmoids that approximates `function` on [low, high].

    `function` takes an array or a number. `rounding` is the relative rounding of the number format that will evaluate
    the sum; least squares gives up accuracy that would drown in rounding * sum |c_k| there.
    """
    check_range(low, high, terms)
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
    fresh = grid(low, high, *FRESH)
    return replace(result, error=float(np.abs(result(fresh) - evaluate(fresh)).max()))


def check_range(low: float, high: float, terms: int = 1) -> None:
    """Refuse a range without an inside, and a sum without a term."""
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise FitError(f"range [{low}, {high}]: low must be less than high, and both finite")
    if terms < 1:
        raise FitError(f"{terms} terms: a sum of sigmoids needs at least 1")


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

    The families of layouts race: each shows its first few, and the leader continues with the rest. A layout costs about
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
    return best.total(low, high, terms)


def fit_with_kinks(
    function: Callable[..., object], low: float, high: float, kinks: Sequence[float], terms: int = 128, *,
    rounding: float = ROUNDING,
) -> SigmoidSum:
    """The same for a function with kinks, where its slope jumps; kinks beyond the range do not count.

    A kink is for sigmoids what an end with an infinite slope is (`crowded`): with centres at distances size * t^power from
    it, on both sides, and narrower there, the error falls geometrically in the square root of their number. Even centres, as
    for a smooth function, would leave an error like 1 / m.
    """
    inside = sorted({float(k) for k in kinks if low < k < high})
    if not inside:
        raise FitError(f"range [{low}, {high}] has no kink of {', '.join(map(str, kinks)) or 'none'}: use `fit`")
    if terms < 2 * len(inside):
        raise FitError(f"{terms} terms for {len(inside)} kinks: each needs at least 2")
    evaluate = checked(function, low, high)
    samples, checks, fresh = (kink_grid(low, high, inside, *count) for count in (
        (100 + terms, 0.5), (200 + terms, 0.25), FRESH))
    problem = Problem(samples, evaluate(samples), checks, evaluate(checks), rounding)
    with threadpool_limits(1):
        result = problem.best_of(beside_kinks(low, high, inside, terms)).total(low, high, terms)
    return replace(result, error=float(np.abs(result(fresh) - evaluate(fresh)).max()))


class Attempt(NamedTuple):
    """A layout, the constant and the c_k found for it, and how bad they are."""

    score: float
    layout: Layout
    solution: Array

    def total(self, low: float, high: float, terms: int) -> SigmoidSum:
        if not math.isfinite(self.score):
            raise FitError(f"range [{low}, {high}] with {terms} terms: no layout of sigmoids gave finite coefficients")
        return SigmoidSum(*affine(self.layout), self.solution[1:], float(self.solution[0]), low, high)


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
        decomposition has the singular values of the whole matrix, and one decomposition of it serves every cutoff.
        """
        matrix = columns(layout, self.samples)
        q, r = np.linalg.qr(matrix)
        u, singular, vt = np.linalg.svd(r)
        solutions = solutions_of(matrix, (q @ u, singular, vt), self.values)
        rounded = self.rounding * np.abs(solutions[1:]).sum(axis=0)
        score, solution = best_solution(solutions, rounded, columns(layout, self.checks), self.wanted)
        return Attempt(score, layout, solution)


def solutions_of(matrix: Array, decomposition: tuple[Array, Array, Array], values: Array, *, passes: int = 2) -> Array:
    """Least squares by singular values, a solution for each cutoff.

    A second pass on the residual takes off most of the solver's own rounding.
    """
    basis, singular, vt = decomposition
    kept = singular[:, None] > singular[0] * np.array(CUTOFFS)
    inverse = kept / np.maximum(singular, np.finfo(np.float64).tiny)[:, None]
    found = vt.T @ (inverse * (basis.T @ values)[:, None])
    if passes == 2:
        found = found + vt.T @ (inverse * (basis.T @ (values[:, None] - matrix @ found)))
    return np.asarray(found)


def best_solution(solutions: Array, rounded: Array, matrix: Array, wanted: Array) -> tuple[float, Array]:
    """The solution whose largest error on points that it was not fitted to, and its rounding, are least together."""
    scores = np.abs(matrix @ solutions - wanted[:, None]).max(axis=0) + rounded
    scores = np.where(np.isfinite(scores), scores, math.inf)
    least = int(np.argmin(scores))
    return float(scores[least]), solutions[:, least]


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


def reaches(low: float, high: float, kinks: list[float]) -> Iterator[tuple[float, float]]:
    """(kink, signed distance) for both sides of each: up to the end, or halfway to the next kink."""
    ends = [low, *kinks, high]
    for i, kink in enumerate(kinks, start=1):
        for sign, neighbour in ((-1, i - 1), (1, i + 1)):
            distance = abs(ends[neighbour] - kink)
            yield kink, sign * (distance if neighbour in (0, len(ends) - 1) else distance / 2)


def beside_kinks(low: float, high: float, kinks: list[float], terms: int) -> Iterator[Layout]:
    sides = list(reaches(low, high, kinks))
    counts = [terms // len(sides) + (i < terms % len(sides)) for i in range(len(sides))]
    for stretch, power, factor in product(STRETCHES, KINK_POWERS, KINK_WIDTHS):
        centres, widths = [], []
        for (kink, reach), count in zip(sides, counts, strict=True):
            steps = (np.arange(count) + 0.5) / count
            size = reach * (stretch if kink + reach in (low, high) else 1.0)
            centres.append(kink + size * steps**power)
            widths.append(factor * abs(size) * power * steps ** (power - 1) / count)
        yield np.concatenate(centres), np.maximum(np.concatenate(widths), NARROWEST * (high - low))


def kink_grid(low: float, high: float, kinks: list[float], count: int, phase: float) -> Array:
    """Points of the range, crowded towards the kinks as the centres are."""
    t = (np.arange(count) + phase) / count
    parts = [grid(low, high, count, phase), np.array(kinks)]
    parts += [kink + reach * t**12 for kink, reach in reaches(low, high, kinks)]
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
