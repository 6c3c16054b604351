"""Grids: the powers of two that numbers are multiples of. Sums of multiples of a grid are exact if they are short enough."""

from __future__ import annotations

import math

import numpy as np

from punchcard.transformer.expression import Array


def powers_of_two(values: Array) -> Array:
    """The largest power of two that divides each value; infinite for 0."""
    grids, used = np.full(values.shape, np.inf), values != 0  # most are 0
    mantissa, exponent = np.frexp(values[used])
    integer = np.abs(mantissa * 2.0**53).astype(np.int64)
    grids[used] = np.ldexp((integer & -integer).astype(np.float64), exponent - 53)
    return grids


def power_of_two(value: float) -> float:
    """The largest power of two that divides a value; infinite for 0."""
    if value == 0:
        return math.inf
    mantissa, exponent = math.frexp(value)
    integer = int(mantissa * 2.0**53)
    return math.ldexp(integer & -integer, exponent - 53)


def grid_of(values: Array) -> float:
    """The largest power of two that divides every value; 1 where all are 0."""
    return float(powers_of_two(values[values != 0]).min(initial=np.inf)) if values.any() else 1.0
