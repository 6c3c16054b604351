"""Sums of sigmoids for functions with kinks, on points of the test's own, beside plain least squares."""

from __future__ import annotations

import numpy as np
import pytest

from punchcard.errors import FitError
from punchcard.machines.fleq.blocks.fit import fit, fit_with_kinks
from tests.cases import soaked


def clip(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(x, -1.0, 1.0))


def near_kinks(low: float, high: float, *kinks: float) -> np.ndarray:
    """Points everywhere, and at every scale on both sides of the kinks."""
    scales = np.geomspace(1e-14, high - low, 4001)
    parts = [np.linspace(low, high, 20001)] + [k + sign * scales for k in kinks for sign in (-1, 1)]
    return np.clip(np.concatenate(parts), low, high)


@pytest.mark.parametrize(("high", "terms", "limit"), [
    (pytest.param if high == 4.0 or terms <= 64 else soaked)(high, terms, limit)
    for high in (1.5, 4.0, 16.0) for terms, limit in ((32, 5e-3), (64, 6e-5), (128, 2e-7), (256, 5e-11))])
def test_two_kinks(terms: int, limit: float, high: float) -> None:
    found = fit_with_kinks(clip, -high, high, (-1.0, 1.0), terms)
    x = near_kinks(-high, high, -1.0, 1.0)
    error = np.abs(found(x) - clip(x)).max()
    assert error <= 1.25 * found.error
    assert found.error < limit * max(1.0, high / 8)
    assert found.terms == terms
    assert found.magnitude < 1e3


def test_a_kink_that_is_not_flat_on_either_side() -> None:
    found = fit_with_kinks(np.abs, -2.0, 3.0, (0.0,), 128)
    x = near_kinks(-2.0, 3.0, 0.0)
    assert np.abs(found(x) - np.abs(x)).max() <= 1.25 * found.error < 1e-8


def test_plain_least_squares_is_far_behind() -> None:
    assert fit(clip, -4.0, 4.0, 128).error > 1e4 * fit_with_kinks(clip, -4.0, 4.0, (-1.0, 1.0), 128).error


def test_coarse_rounding() -> None:
    """For float32, the coefficients stay small enough that their rounding does not drown the sum."""
    found = fit_with_kinks(clip, -4.0, 4.0, (-1.0, 1.0), 64, rounding=2.0**-23)
    assert found.error < 3e-5
    assert found.magnitude * 2.0**-23 < 1e-5


def test_refusals() -> None:
    with pytest.raises(FitError, match=r"has no kink of 5\.0: use `fit`"):
        fit_with_kinks(clip, -1.0, 1.0, (5.0,))
    with pytest.raises(FitError, match="3 terms for 2 kinks: each needs at least 2"):
        fit_with_kinks(clip, -4.0, 4.0, (-1.0, 1.0), 3)
    with pytest.raises(FitError, match="must be finite there"):
        fit_with_kinks(np.log, -1.0, 1.0, (0.5,), 8)
