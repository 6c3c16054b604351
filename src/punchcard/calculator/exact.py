"""Exact values for the calculator: intervals of fractions, and roots and transcendental functions to 60 digits and more.

Sums, products and quotients of fractions are exact, so a divisor that is 0 is seen to be 0. The other functions are
computed by integer roots and by `decimal`; against the roundoff of a machine's number format their own is nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import cache

ROOT_BITS = 256
DIGITS = 80
LONG = 4096
"""Fractions with more bits than this are rounded to ROOT_BITS significant bits."""
_DECIMALS = Context(prec=DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN)


@dataclass(frozen=True)
class Interval:
    """All numbers from low to high."""

    low: Fraction
    high: Fraction

    @classmethod
    def point(cls, value: Fraction | int) -> Interval:
        return cls(Fraction(value), Fraction(value))

    @classmethod
    def around(cls, *values: Fraction) -> Interval:
        return cls(short(min(values)), short(max(values)))

    @property
    def is_point(self) -> bool:
        return self.low == self.high

    @property
    def magnitude(self) -> Fraction:
        """The largest absolute value."""
        return max(abs(self.low), abs(self.high))

    def __contains__(self, value: Fraction | int) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return _shown(self.low) if self.is_point else f"{_shown(self.low)} to {_shown(self.high)}"

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __add__(self, other: Interval) -> Interval:
        return Interval(short(self.low + other.low), short(self.high + other.high))

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def __mul__(self, other: Interval) -> Interval:
        if self.is_point and other.is_point:
            return Interval.around(self.low * other.low)
        return Interval.around(self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high)

    def scaled(self, factor: Fraction) -> Interval:
        return Interval.around(self.low * factor, self.high * factor)

    def inverse(self) -> Interval:
        """1 / x, for an interval without 0."""
        return Interval.around(1 / self.low, 1 / self.high)

    def power(self, exponent: int) -> Interval:
        """x^n for n > 0; an even power of an interval with 0 in it begins at 0."""
        ends = [self.low**exponent, self.high**exponent]
        if exponent % 2 == 0 and 0 in self:
            ends.append(Fraction(0))
        return Interval.around(*ends)

    def rising(self, function: Callable[[Fraction], Fraction]) -> Interval:
        """The values of a function that rises."""
        if self.is_point:
            return Interval.point(function(self.low))
        return Interval.around(function(self.low), function(self.high))

    def sine(self) -> Interval:
        """sin x: the ends, and ±1 where the interval holds a crest or a trough."""
        if self.is_point:
            return Interval.point(sin(self.low))
        ends = [sin(self.low), sin(self.high)]
        for value in (1, -1):
            first = value * pi() / 2
            turns = math.ceil((self.low - first) / (2 * pi()))
            if first + turns * 2 * pi() <= self.high:
                ends.append(Fraction(value))
        return Interval.around(*ends)

    def cosine(self) -> Interval:
        return Interval(self.low + pi() / 2, self.high + pi() / 2).sine()


def short(value: Fraction) -> Fraction:
    """The fraction itself, or when it has become very long the nearest one of ROOT_BITS significant bits."""
    top, bottom = value.numerator, value.denominator
    if top.bit_length() + bottom.bit_length() <= LONG:
        return value
    shift = ROOT_BITS - (abs(top).bit_length() - bottom.bit_length())
    scaled = (top << shift) // bottom if shift >= 0 else top // (bottom << -shift)
    return Fraction(scaled, 1 << shift) if shift >= 0 else Fraction(scaled << -shift)


def sqrt(value: Fraction) -> Fraction:
    """The square root of a fraction that is not negative; exact where it is rational."""
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if top**2 == value.numerator and bottom**2 == value.denominator:
        return Fraction(top, bottom)
    bits = max(0, ROOT_BITS + (value.denominator.bit_length() - value.numerator.bit_length()) // 2)
    return Fraction(math.isqrt((value.numerator << 2 * bits) // value.denominator), 1 << bits)


def exp(value: Fraction) -> Fraction:
    return Fraction(_DECIMALS.exp(_decimal(value)))


def log(value: Fraction) -> Fraction:
    return Fraction(_DECIMALS.ln(_decimal(value)))


def tanh(value: Fraction) -> Fraction:
    grown = exp(2 * value)
    return Fraction(_decimal((grown - 1) / (grown + 1)))


def sin(value: Fraction) -> Fraction:
    """Taylor's series, after whole turns are taken off."""
    x = value - 2 * pi() * round(value / (2 * pi()))
    short_x = _decimal(x)
    minus_square = _DECIMALS.minus(_DECIMALS.multiply(short_x, short_x))
    total, term, n = Decimal(0), short_x, 1
    while abs(term) > Decimal(10) ** (-DIGITS):
        total = _DECIMALS.add(total, term)
        n += 2
        term = _DECIMALS.divide(_DECIMALS.multiply(term, minus_square), Decimal(n * (n - 1)))
    return Fraction(total)


@cache
def e() -> Fraction:
    return exp(Fraction(1))


@cache
def pi() -> Fraction:
    """Machin's formula, 16 arctan(1/5) - 4 arctan(1/239), with integers."""
    unit = 10 ** (DIGITS + 10)

    def arctan_of_inverse(n: int) -> int:
        total, power, k = 0, unit // n, 0
        while power:
            total += (-1) ** k * (power // (2 * k + 1))
            power //= n * n
            k += 1
        return total

    return Fraction(16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239), unit)


def _shown(value: Fraction) -> str:
    """Six digits; not every fraction is a float."""
    try:
        return f"{float(value):.6g}"
    except OverflowError:
        return f"{_decimal(value):.5e}"


def _decimal(value: Fraction) -> Decimal:
    return _DECIMALS.divide(Decimal(value.numerator), Decimal(value.denominator))
