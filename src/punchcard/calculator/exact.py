"""Exact values for the calculator: intervals of fractions, with roots and transcendental functions to 90 digits.

Sums, products and quotients of fractions are exact, so a divisor that is 0 is seen to be 0. The other functions are
mpmath's; against the roundoff of a machine's number format their own is nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from mpmath import MPContext, mpf

from punchcard.python.intervals import Interval

Exact: TypeAlias = Interval[Fraction]
ROOT_BITS = 256
LONG = 4096
"""Fractions with more bits than this are rounded to ROOT_BITS significant bits."""
_CONTEXT = MPContext()
_CONTEXT.prec = 300


def short(value: Fraction) -> Fraction:
    """The fraction itself, or when it has become very long the nearest one of ROOT_BITS significant bits."""
    top, bottom = value.numerator, value.denominator
    if top.bit_length() + bottom.bit_length() <= LONG:
        return value
    shift = ROOT_BITS - (abs(top).bit_length() - bottom.bit_length())
    scaled = (top << shift) // bottom if shift >= 0 else top // (bottom << -shift)
    return Fraction(scaled, 1 << shift) if shift >= 0 else Fraction(scaled << -shift)


def shortened(interval: Exact) -> Exact:
    """An interval whose ends are not very long."""
    return Interval(short(interval.low), short(interval.high))


def scaled(interval: Exact, factor: Fraction) -> Exact:
    return shortened(interval * Interval.point(factor))


def reciprocal(interval: Exact) -> Exact:
    """1 / x, for an interval without 0."""
    return shortened(Interval.around(1 / interval.low, 1 / interval.high))


def power(interval: Exact, exponent: int) -> Exact:
    """x^n for n > 0; an even power of an interval that contains 0 begins at 0."""
    base = abs(interval) if exponent % 2 == 0 else interval
    return shortened(Interval(base.low**exponent, base.high**exponent))


def image(function: str, interval: Exact) -> Exact:
    """The values of a function of mpmath on an interval: of sin and cos with ±1 at a crest or trough; others rise."""
    ends = [value(function, end) for end in {interval.low, interval.high}]
    if not interval.is_point and function in _FIRST_CREST:
        for side, crest in ((1, _FIRST_CREST[function]), (-1, _FIRST_CREST[function] + 1)):
            turns = math.ceil((interval.low - crest * PI) / (2 * PI))
            if (crest + 2 * turns) * PI <= interval.high:
                ends.append(Fraction(side))
    return Interval.around(*ends)


_FIRST_CREST = {"sin": Fraction(1, 2), "cos": Fraction(0)}
"""Where a wave is 1, in units of pi; it is -1 half a turn later."""


def value(function: str, x: Fraction) -> Fraction:
    """A function of mpmath by its name."""
    return _fraction(getattr(_CONTEXT, function)(_CONTEXT.mpf(x.numerator) / x.denominator))


def sqrt(x: Fraction) -> Fraction:
    """The square root of a fraction that is not negative; exact where it is rational."""
    top, bottom = math.isqrt(x.numerator), math.isqrt(x.denominator)
    rational = top**2 == x.numerator and bottom**2 == x.denominator
    return Fraction(top, bottom) if rational else value("sqrt", x)


def text(interval: Exact) -> str:
    """An interval or a number in six digits; not every fraction is a float."""
    if not interval.is_point:
        return f"{text(Interval.point(interval.low))} to {text(Interval.point(interval.high))}"
    try:
        return f"{float(interval.low):.6g}"
    except OverflowError:
        return f"{Decimal(interval.low.numerator) / Decimal(interval.low.denominator):.5e}"


def _fraction(found: mpf) -> Fraction:
    sign, digits, exponent, _ = found._mpf_
    return Fraction(-int(digits) if sign else int(digits)) * Fraction(2) ** int(exponent)


PI, E = _fraction(+_CONTEXT.pi), value("exp", Fraction(1))
CONSTANTS: Mapping[str, Fraction] = {"pi": PI, "e": E}
