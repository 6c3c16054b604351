"""Grids: the powers of two that numbers are multiples of. Sums of multiples of a grid may be exact (see `summation`).

A grid of 0 says that none is known, as of real numbers. The grid of the number 0 is infinite: 0 is a multiple of all.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from punchcard.transformer.expression import Array

Flags = npt.NDArray[np.bool_]


@lru_cache(1 << 16)
def grid_of_number(value: float | Fraction) -> float:
    """The largest power of two that divides a number, so a power of two is its own grid. A third, which no number format
    has, has the grid 0."""
    if not value:
        return math.inf
    numerator, denominator = value.as_integer_ratio()
    return 0.0 if denominator & denominator - 1 else (numerator & -numerator) / denominator


def grids_of(values: Array) -> Array:
    """The largest power of two that divides each value."""
    grids, used = np.full(values.shape, np.inf), values != 0  # most are 0
    mantissa, exponent = np.frexp(values[used])
    integer = np.abs(mantissa * 2.0**53).astype(np.int64)
    grids[used] = np.ldexp((integer & -integer).astype(np.float64), exponent - 53)
    return grids


def are_powers_of_two(values: Array) -> Flags:
    """Whether a product with each value is exact, unless it is too small or too large. The sign does not count."""
    found: Flags = np.frexp(np.abs(values))[0] == 0.5
    return found
