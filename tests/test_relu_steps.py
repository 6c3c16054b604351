"""Sums of ReLUs as steps, periods of steps, and sparse rows, against every integer and every entry."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from punchcard.transformer.relu_steps import Period, period_of, steps_of
from punchcard.transformer.sparse import SparseMatrix

MOST = 6


@pytest.mark.parametrize("unit", [1, Fraction(1), Fraction(3, 4)])
def test_steps_of_a_piecewise_linear_function(unit: Fraction) -> None:
    """What is found is the function at every integer; None is right: a slope or too many steps."""
    rng, found = random.Random(2), 0
    for _ in range(500):
        low = rng.randint(-20, 5)
        high = low + rng.randint(0, 24)
        units = [(rng.choice((-4, -2, -1, 1, 2, 4)), rng.choice((-2, -1, 1, 2)), rng.randint(-20, 20))
                 for _ in range(rng.randint(1, 4))]
        if rng.random() < 0.6:  # a step for every pair
            units = [(sign * c, f, b - shift) for c, f, b in units for sign, shift in ((1, 0), (-1, abs(f)))]

        def value(at: int, units: list[tuple[int, int, int]] = units) -> Fraction:
            return sum((c * max(unit * (f * at + b), 0 * unit) for c, f, b in units), 0 * unit)

        kinks = [(-b * unit, f * unit) for _, f, b in units]
        values = [value(at) for at in range(low, high + 1)]
        steps, few = steps_of(low, high, kinks, value), steps_of(low, high, kinks, value, MOST)
        if steps is None:
            assert few is None
            changes = {at for at in range(low + 1, high + 1) if values[at - low] != values[at - 1 - low]}
            assert any(at + 1 in changes for at in changes), "it has a slope"
            continue
        found += len(steps) > 1
        assert few == (steps if len(steps) <= MOST + 1 else None)
        assert [next(v for place, v in reversed(steps) if place <= at) for at in range(low, high + 1)] == values
    assert found > 70


def test_periods_of_steps() -> None:
    """What is found is where the second value is, at every integer; what has a period of a power of two is found."""
    rng, found = random.Random(3), 0
    for _ in range(3000):
        first, period = rng.randint(-20, 20), 1 << rng.randint(1, 4)
        length = rng.randint(1, period - 1)
        low, high = first - rng.randint(1, 20), first + rng.randint(2, 40)
        regular = rng.random() < 0.5
        if regular:
            low = max(low, first - period + length)
        inside = [at >= low and (at - first) % period < length for at in range(low, high + 1)]
        places = [low + i for i in range(1, len(inside)) if inside[i] != inside[i - 1]]
        if not regular:
            places = sorted(set(places) | {rng.randint(low + 1, high)})
        second = [sum(place <= at for place in places) % 2 == 1 for at in range(low, high + 1)]
        got = period_of(low, high, places)
        if got is not None:
            assert second == [(at - got.first) % (1 << got.bits) < got.length for at in range(low, high + 1)]
        if regular and len(places) > 2 and not inside[0]:
            assert got == Period(first, length, period.bit_length() - 1)
            found += 1
    assert found > 200
    assert period_of(0, 9, []) is None
    assert period_of(0, 9, [4]) is None
    assert period_of(0, 12, [1, 4, 7, 10]) is None, "it repeats after 6"


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_sparse_rows_are_exact(dtype: str) -> None:
    rng = np.random.default_rng(1)
    matrix = np.where(rng.random((20, 30)) < 0.2, rng.standard_normal((20, 30)), 0).astype(dtype)
    matrix[3] = 0
    sparse = SparseMatrix(matrix)
    for row, floats, fractions in zip(matrix, sparse.by_row(float), sparse.by_row(Fraction), strict=True):
        assert floats == [(place, float(entry)) for place, entry in enumerate(row) if entry]
        assert fractions == [(place, Fraction(entry)) for place, entry in floats]
    assert sparse.by_column(float) == SparseMatrix(matrix.T).by_row(float)
