"""Functions as sums of sigmoids, also with kinks: how good each method is, on points that no fit has seen."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from punchcard.errors import FitError, PunchcardError
from punchcard.machines.fleq.blocks.fit import METHODS, fit, fit_with_kinks
from punchcard.machines.fleq.blocks.sigmoids import SigmoidSum
from punchcard.machines.fleq.functions import Array, sigmoid
from tests.cases import soaked


@dataclass(frozen=True)
class Case:
    """A function, its range, its total variation there, and the largest error allowed with 16 and with 64 terms."""

    name: str
    function: Callable[[Array], Array]
    low: float
    high: float
    variation: float
    with_16: float
    with_64: float


CASES = [
    Case("1/x", np.reciprocal, 0.1, 10, 9.9, 2e-6, 1e-12),
    Case("1/x below 0", np.reciprocal, -10, -0.1, 9.9, 2e-6, 1e-12),
    Case("sqrt", np.sqrt, 0.01, 16, 3.9, 1e-5, 1e-12),
    Case("sqrt from 0", np.sqrt, 0, 16, 4, 1e-3, 1e-7),
    Case("sqrt up to 1", lambda x: np.sqrt(1 - x), -3, 1, 2, 1e-3, 1e-7),
    Case("exp", np.exp, -3, 3, math.exp(3) - math.exp(-3), 1e-8, 1e-12),
    Case("log", np.log, 0.1, 10, math.log(100), 1e-6, 1e-12),
    Case("sin", np.sin, -math.pi, math.pi, 4, 1e-10, 1e-13),
    Case("cos", np.cos, -math.pi, math.pi, 4, 1e-10, 1e-13),
    Case("tanh", np.tanh, -5, 5, 2 * math.tanh(5), 3e-3, 1e-10),
    Case("square", np.square, -4, 4, 32, 1e-10, 1e-12),
    Case("sin beside 0", np.sin, 1, 7, 2 + math.sin(7) - math.sin(1) + 2, 1e-7, 1e-13),
]
cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def largest_error(fitted: SigmoidSum, case: Case, seed: int) -> float:
    """The largest error on random points: even, crowded to each end, and the ends."""
    random = np.random.default_rng(seed)
    crowd = (case.high - case.low) * random.random(5000) ** 8
    points = np.concatenate([
        random.uniform(case.low, case.high, 20_000), case.low + crowd, case.high - crowd, [case.low, case.high],
    ]).clip(case.low, case.high)
    return float(np.abs(fitted(points) - case.function(points)).max())


@cache
def fitted_to(case: Case, terms: int) -> SigmoidSum:
    return fit(case.function, case.low, case.high, terms)


@pytest.mark.parametrize("terms", [16, 64])
@cases
def test_least_squares_is_as_good_as_promised(case: Case, terms: int) -> None:
    fitted = fitted_to(case, terms)
    bound = case.with_16 if terms == 16 else case.with_64
    assert fitted.terms == terms
    assert fitted.error <= bound
    seed = secrets.randbits(32)
    found = largest_error(fitted, case, seed)
    assert found <= bound, f"seed {seed}: {found}"
    # the reported error is that of any fine grid, but for rounding
    assert found <= 1.5 * fitted.error + 1e-13, f"seed {seed}: {found}, reported {fitted.error}"
    assert fitted.magnitude == np.abs(fitted.coefficients).sum()
    assert terms == 16 or fitted.magnitude <= 1e3


@cases
def test_least_squares_improves_with_terms(case: Case) -> None:
    """Down to rounding: below 1e-12 the errors are noise."""
    errors = [fitted_to(case, terms).error for terms in (2, 4, 8, 16, 32, 64)]
    for fewer, more in pairwise(errors):
        assert more < fewer or more < 1e-12, errors


def test_many_terms_stay_at_rounding() -> None:
    for case in (CASES[0], CASES[2], CASES[6], CASES[9]):
        fitted = fit(case.function, case.low, case.high, 256)
        assert fitted.error <= 1e-12, case.name
        assert fitted.magnitude <= 1e3, case.name


def test_a_coarser_number_format_gets_smaller_coefficients() -> None:
    """With 16 terms exp wants large coefficients that cancel: a good fit in float64, a bad one in float32."""
    def error_in_float32(fitted: SigmoidSum) -> float:
        x = np.linspace(-3, 3, 1001)
        terms = sigmoid(x[:, None] * fitted.weights + fitted.biases).astype(np.float32)
        total = terms @ fitted.coefficients.astype(np.float32) + np.float32(fitted.constant)
        return float(np.abs(total - np.exp(x)).max())

    fine, coarse = fit(np.exp, -3, 3, 16), fit(np.exp, -3, 3, 16, rounding=2.0**-23)
    assert coarse.magnitude < fine.magnitude / 100
    assert fine.error < coarse.error < 1e-4
    assert error_in_float32(coarse) < 1e-4 < error_in_float32(fine)


@pytest.mark.parametrize("terms", [1, 16, 64, soaked(256)])
@cases
def test_threshold_is_off_by_one_step(case: Case, terms: int) -> None:
    """m thresholds make m + 1 flat pieces: each is right at its left end, and a whole step off at its right end."""
    fitted = fit(case.function, case.low, case.high, terms, "threshold")
    step = case.variation / (terms + 1)
    monotone = case.name not in ("sin", "cos", "square", "sin beside 0")
    assert fitted.terms == terms
    assert fitted.constant == case.function(np.array([case.low], dtype=np.float64))[0]
    assert fitted.error <= step * 1.001
    if monotone:
        assert fitted.error >= step * 0.95
        assert fitted.magnitude == pytest.approx(step * terms, rel=1e-3), "every step is equal"
    seed = secrets.randbits(32)
    found = largest_error(fitted, case, seed)
    assert found <= step * 1.001, f"seed {seed}: {found}"


def test_threshold_takes_the_value_at_the_left_of_each_piece() -> None:
    """With the figures of the paper's partition; and of a function with jumps."""
    assert fit(np.reciprocal, 0.1, 10, 64, "threshold").error <= 0.165
    assert fit(np.sqrt, 0, 16, 64, "threshold").error <= 0.063
    fitted = fit(np.sqrt, 0, 16, 3, "threshold")
    assert fitted([0.5, 2.5, 6.5, 12.5]) == pytest.approx([0, 1, 2, 3], abs=1e-3)
    assert -fitted.biases / fitted.weights == pytest.approx([1, 4, 9], rel=1e-4)
    fitted = fit(np.floor, 0.5, 3.5, 6, "threshold")
    assert fitted([0.6, 0.9, 1.1, 1.9, 2.1, 2.9, 3.1]) == pytest.approx([0, 0, 1, 1, 2, 2, 3], abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_constant(method: str) -> None:
    fitted = fit(lambda x: 2.5, 1, 3, 4, method)
    assert fitted.error < 1e-14
    assert fitted(np.linspace(1, 3, 7)) == pytest.approx(2.5)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_input_gives_the_same_bits(method: str) -> None:
    first, second = (fit(np.tanh, -5, 5, 24, method) for _ in range(2))
    for one, other in ((first.weights, second.weights), (first.biases, second.biases),
                       (first.coefficients, second.coefficients)):
        assert one.dtype == np.float64
        assert one.tobytes() == other.tobytes()
    assert (first.constant, first.error) == (second.constant, second.error)


def test_a_function_of_numbers_is_asked_point_by_point() -> None:
    def scalar(x: float) -> float:
        return math.sqrt(x) if x > 1 else (x + 1) / 2

    def array(x: Array) -> Array:
        return np.where(x > 1, np.sqrt(x), (x + 1) / 2)

    assert fit(scalar, 0.5, 4, 8).coefficients.tobytes() == fit(array, 0.5, 4, 8).coefficients.tobytes()
    assert fit(math.log, 1, 2, 8).error < 1e-6


def test_calling_keeps_the_shape_and_never_overflows() -> None:
    fitted = fit(np.tanh, -5, 5, 32)
    assert fitted(0.5).shape == ()
    assert fitted(np.zeros((2, 3))).shape == (2, 3)
    with np.errstate(over="raise", invalid="raise"):
        assert np.isfinite(fitted([-1e300, 1e300])).all()
        assert sigmoid(np.array([-1e4, 0.0, 1e4])).tolist() == [0, 0.5, 1]


@pytest.mark.parametrize(("low", "high", "terms", "method", "message"), [
    *((low, high, 8, "threshold", f"range [{low}, {high}]: low must be less than high, and both finite")
      for low, high in ((2, 1), (1, 1), (0, math.inf), (math.nan, 1))),
    *((1, 2, terms, "threshold", f"{terms} terms: a sum of sigmoids needs at least 1") for terms in (0, -3)),
    (1, 2, 8, "treshold", "unknown method 'treshold' (did you mean 'threshold'?): use least-squares or threshold")])
def test_refusals(low: float, high: float, terms: int, method: str, message: str) -> None:
    with pytest.raises(FitError) as caught:
        fit(np.sqrt, low, high, terms, method)
    assert str(caught.value) == message
    assert isinstance(caught.value, PunchcardError)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("function", "low", "high", "where"), [
    (np.sqrt, -1, 4, "-1"),
    (math.sqrt, -1, 4, "-1"),
    (np.reciprocal, -1, 2, "0"),
    (lambda x: 1 / x, 0, 2, "0"),
    (lambda x: (x + 0j) ** 0.5, 1, 4, "1"),
    (lambda x: None, 1, 4, "1"),
])
def test_values_must_be_finite(
    function: Callable[..., object], low: float, high: float, where: str, method: str
) -> None:
    with pytest.raises(FitError) as caught:
        fit(function, low, high, 8, method)
    rule = "the function must be finite there, and is not at x ="
    text = str(caught.value)
    assert text.startswith(f"range [{float(low)}, {float(high)}]: {rule} ")
    assert float(text.rsplit(" ", 1)[1]) in (float(where), 0.0)


# Functions with kinks, beside plain least squares


def clip(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(x, -1.0, 1.0))


def near_kinks(low: float, high: float, *kinks: float) -> np.ndarray:
    """Points everywhere, and at every scale on both sides of the kinks."""
    scales = np.geomspace(1e-14, high - low, 4001)
    parts = [np.linspace(low, high, 20001)] + [k + sign * scales for k in kinks for sign in (-1, 1)]
    return np.clip(np.concatenate(parts), low, high)


@pytest.mark.parametrize(("high", "terms", "limit"), [
    (pytest.param if terms <= 64 or (high, terms) == (4.0, 128) else soaked)(high, terms, limit)
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


def test_kinks_that_are_refused() -> None:
    with pytest.raises(FitError, match=r"has no kink of 5\.0: use `fit`"):
        fit_with_kinks(clip, -1.0, 1.0, (5.0,))
    with pytest.raises(FitError, match="3 terms for 2 kinks: each needs at least 2"):
        fit_with_kinks(clip, -4.0, 4.0, (-1.0, 1.0), 3)
    with pytest.raises(FitError, match="must be finite there"):
        fit_with_kinks(np.log, -1.0, 1.0, (0.5,), 8)
