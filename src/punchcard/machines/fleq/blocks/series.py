"""The power series of a product by mirrored keys, and bounds of what its heads leave.

With x_k = h c z_k the weights of column j give  sinh(x_j) / x_j / mean_k cosh(x_k)  times the product z_j. In powers of h^2:

    sum_n q_n h^(2 n),     q_n a polynomial in y = x_j^2 and the moments M_i = mean_k x_k^(2 i), at h = 1

Heads with weights w_h add up to  sum_n q_n W_n  with  W_n = sum_h w_h h^(2 n): W_0 is 1, W_1 .. W_(heads - 1) are 0, and
q_heads is the first that is left. All of it is computed with fractions, or rounded upward.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache
from itertools import product as pairs
from math import factorial

import numpy as np

from punchcard.machines.fleq.blocks.product import EXTRAPOLATION
from punchcard.machines.fleq.functions import Array

Polynomial = dict[tuple[int, ...], Fraction]
"""Coefficients by the exponents of y, M_1, M_2, ..."""
HIGHEST = 12
"""Powers beyond this are bounded together."""
ENOUGH = 1.02
"""A bound of q_n is good enough within this of a value that occurs."""


@cache
def coefficient(n: int) -> Polynomial:
    """q_n, from sum_n s_n = (sum_n m_n) (sum_n q_n) with s_n = y^n / (2 n + 1)! and m_n = M_n / (2 n)!."""
    found: Polynomial = {(n,): Fraction(1, factorial(2 * n + 1))}
    for i in range(1, n + 1):
        for exponents, value in coefficient(n - i).items():
            raised = list(exponents) + [0] * (i + 1 - len(exponents))
            raised[i] += 1
            key = tuple(raised)
            found[key] = found.get(key, Fraction(0)) - value / factorial(2 * i)
    return found


@cache
def largest_coefficient(n: int) -> float:
    """An upper bound of |q_n| for |x_k| <= 1: boxes of (y, M_1, ..., M_n) are halved where it may be too large.

    Moments of numbers t_k = x_k^2 from 0 to 1 fall, M_1 >= M_2 >= ..., and M_i^2 <= M_(i - 1) M_(i + 1), with M_0 = 1.
    """
    terms = [(np.array([*key, *[0] * (n + 1 - len(key))]), float(value)) for key, value in coefficient(n).items()]
    low, high = np.zeros((1, n + 1)), np.ones((1, n + 1))
    # all x_k alike, and x_j alike or 0
    corners = np.array([[y, *[m] * n] for y, m in pairs((0.0, 1.0), repeat=2)])
    occurs, bound = float(np.abs(_range(terms, corners, corners)[0]).max()), 0.0
    for _ in range(60):
        below, above = _range(terms, low, high)
        size = np.maximum(np.abs(below), np.abs(above)) * (1 + 1e-12)
        far = size > ENOUGH * occurs
        bound = max(bound, float(size[~far].max(initial=0.0)))
        if not far.any():
            return bound
        low, high = _halved(low[far], high[far])
        kept = _possible(low, high)
        low, high = low[kept], high[kept]
        if len(low) > 400_000:
            return max(bound, float(size.max()))
    return max(bound, float(size.max()))


def _range(terms: list[tuple[Array, float]], low: Array, high: Array) -> tuple[Array, Array]:
    """A polynomial of positive variables on boxes."""
    below, above = np.zeros(len(low)), np.zeros(len(low))
    for exponents, value in terms:
        least, most = np.prod(low**exponents, axis=1) * value, np.prod(high**exponents, axis=1) * value
        below, above = below + np.minimum(least, most), above + np.maximum(least, most)
    return below, above


def _halved(low: Array, high: Array) -> tuple[Array, Array]:
    """Each box in two, along its longest side."""
    rows, side = np.arange(len(low)), np.argmax(high - low, axis=1)
    middle = (low[rows, side] + high[rows, side]) / 2
    left, right = high.copy(), low.copy()
    left[rows, side], right[rows, side] = middle, middle
    return np.concatenate([low, right]), np.concatenate([left, high])


def _possible(low: Array, high: Array) -> Array:
    """Boxes in which moments can lie."""
    kept = np.ones(len(low), dtype=bool)
    for i in range(1, low.shape[1] - 1):
        before = high[:, i - 1] if i > 1 else 1.0
        kept &= (high[:, i] >= low[:, i + 1]) & (low[:, i] ** 2 <= before * high[:, i + 1] * (1 + 1e-12))
    return np.asarray(kept)


def power(heads: int, n: int) -> Fraction:
    """W_n, of the weights as they are in float64."""
    return sum((Fraction(w) * (h + 1) ** (2 * n) for h, w in enumerate(EXTRAPOLATION[heads])), Fraction(0))


def remainder(heads: int) -> float:
    """The factor of (c z)^(2 heads) z in the error of this many heads."""
    return float(abs(power(heads, heads))) * largest_coefficient(heads) * (1 + 2.0**-50)


@lru_cache(maxsize=256)
def tail(heads: int, x: float) -> float:
    """All other powers at |x_k| <= x, as parts of the product: what rounded weights leave of the low ones, and high ones.

    A checked run asks after every product: without the cache that was a quarter of its time.

    |q_n| is at most the sum of the sizes of its coefficients, B_n. By the recursion B_n <= 1 for all n, since
    1 / (2 n + 1)! + sum_i 1 / (2 i)! < 1 / 6 + cosh(1) - 1 < 1 for n >= 1.
    """
    total = float(abs(power(heads, 0) - 1))
    for n in range(1, HIGHEST + 1):
        if n != heads:
            size = sum(abs(value) for value in coefficient(n).values())
            total += float(abs(power(heads, n)) * size) * x ** (2 * n)
    ratio = (heads * x) ** 2
    weights = sum(abs(w) for w in EXTRAPOLATION[heads])
    return (total + weights * ratio ** (HIGHEST + 1) / (1 - ratio)) * (1 + 2.0**-40) if ratio < 1 else float("inf")
