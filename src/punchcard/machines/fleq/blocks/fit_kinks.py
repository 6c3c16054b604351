"""A function with kinks as a sum of sigmoids: their centres crowd towards each kink, and are the narrower there.

A kink, where the slope jumps, is for sigmoids what an end with an infinite slope is (`fit.crowded`): with centres at
distances size * t^power from it, on both sides, the error falls geometrically in the square root of their number. Even
centres, as for a smooth function, would leave an error like 1 / m.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from threadpoolctl import threadpool_limits

from punchcard.errors import FitError
from punchcard.machines.fleq.blocks.fit import ROUNDING, Array, Layout, Problem, SigmoidSum, affine, checked, grid

POWERS = (6, 8, 12)
WIDTHS = (1.0, 2.0)
"""Widths of the sigmoids, in units of their spacing."""
STRETCHES = (1.0, 3.0)
"""How far centres go beyond an end of the range: not at all for a function that is flat there, else further."""
NARROWEST = 2.0**-36
"""Least width, in units of the range: the sum may be off by a quarter of it beside a kink, and scores stay below 2^37."""


def fit_with_kinks(
    function: Callable[..., object], low: float, high: float, kinks: Sequence[float], terms: int = 128, *,
    rounding: float = ROUNDING,
) -> SigmoidSum:
    """The sum of `terms` sigmoids that stands for `function` on [low, high]; kinks beyond the range do not count."""
    inside = sorted({float(k) for k in kinks if low < k < high})
    sides = 2 * len(inside)
    if not inside:
        raise FitError(f"range [{low}, {high}] has no kink of {', '.join(map(str, kinks)) or 'none'}: use `fit`")
    if terms < sides:
        raise FitError(f"{terms} terms for {len(inside)} kinks: each needs at least 2")
    evaluate = checked(function, low, high)
    samples, checks = (_grid(low, high, inside, *count) for count in ((100 + terms, 0.5), (200 + terms, 0.25)))
    problem = Problem(samples, evaluate(samples), checks, evaluate(checks), rounding)
    with threadpool_limits(1):
        best = problem.best_of(_layouts(low, high, inside, terms))
    if not math.isfinite(best.score):
        raise FitError(f"range [{low}, {high}] with {terms} terms: no layout of sigmoids gave finite coefficients")
    result = SigmoidSum(*affine(best.layout), best.solution[1:], float(best.solution[0]), low, high)
    fresh = _grid(low, high, inside, 2000, (math.sqrt(5) - 1) / 2)
    return replace(result, error=float(np.abs(result(fresh) - evaluate(fresh)).max()))


def _reaches(low: float, high: float, kinks: list[float]) -> Iterator[tuple[float, float]]:
    """(kink, signed distance) for both sides of each: up to the end, or halfway to the next kink."""
    ends = [low, *kinks, high]
    for i, kink in enumerate(kinks, start=1):
        for sign, neighbour in ((-1, i - 1), (1, i + 1)):
            distance = abs(ends[neighbour] - kink)
            yield kink, sign * (distance if neighbour in (0, len(ends) - 1) else distance / 2)


def _layouts(low: float, high: float, kinks: list[float], terms: int) -> Iterator[Layout]:
    sides = list(_reaches(low, high, kinks))
    counts = [terms // len(sides) + (i < terms % len(sides)) for i in range(len(sides))]
    for stretch, power, factor in product(STRETCHES, POWERS, WIDTHS):
        centres, widths = [], []
        for (kink, reach), count in zip(sides, counts, strict=True):
            steps = (np.arange(count) + 0.5) / count
            size = reach * (stretch if kink + reach in (low, high) else 1.0)
            centres.append(kink + size * steps**power)
            widths.append(factor * abs(size) * power * steps ** (power - 1) / count)
        yield np.concatenate(centres), np.maximum(np.concatenate(widths), NARROWEST * (high - low))


def _grid(low: float, high: float, kinks: list[float], count: int, phase: float) -> Array:
    """Points of the range, crowded towards the kinks as the centres are."""
    t = (np.arange(count) + phase) / count
    parts = [grid(low, high, count, phase), np.array(kinks)]
    parts += [kink + reach * t**12 for kink, reach in _reaches(low, high, kinks)]
    return np.unique(np.clip(np.concatenate(parts), low, high))
