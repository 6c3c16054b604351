"""What rounding makes of a sum, in any order of summation.

Let the terms of a sum be multiples of a grid g, and no partial sum be larger than its total s, whatever the order: s may be
the sum of the absolute values of the terms. Then the sum is exact where s <= 2^p g, with p the significand bits of the
number format: up to there all multiples of g are numbers of the format.

Any other sum of n terms, numbers or products of two, is off by n eps s at most, as long as n eps <= 1 / 2. With u = eps / 2:
where s is the absolute total, each term is rounded n times at most, and n u / (1 - n u) <= n eps. Where s is less, each of
the n - 1 additions is off by u s, and the products by 2 u s together, but for the squares of u.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np

from punchcard.transformer.expression import Array
from punchcard.transformer.grids import Flags

Totals = TypeVar("Totals", Array, float)
NO_FORMAT = 1 << 20
"""More bits than any number format has."""


def are_exact(totals: Array | float, grids: Array | float, bits: int) -> Flags:
    """Whether sums with these totals and grids are exact with so many significand bits.

    The totals themselves are float64 sums of multiples of the grid, so they are exact below 2^53 grid. One that is 2^53 grid
    may have been more, and was rounded.
    """
    with np.errstate(over="ignore"):
        limits = grids * 2.0**bits
    found: Flags = np.less_equal(totals, limits) if bits < 53 else np.less(totals, limits)
    return found


def bits_for(totals: Array, grids: Array) -> int:
    """The least significand with which all sums with these totals and grids are exact."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        ratio = float(np.max(totals / grids, initial=1.0))
    if not math.isfinite(ratio):  # no grid is known, or it is too small for a number
        return NO_FORMAT
    exponent = math.frexp(ratio)[1]
    return exponent - bool(are_exact(ratio, 1.0, exponent - 1))


def rounding_error(totals: Totals, terms: Totals | float, eps: float) -> Totals:
    """How far computed sums of so many terms may be from the exact ones."""
    return eps * terms * totals
