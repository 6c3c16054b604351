"""Arithmetic of intervals: every result of an operation on numbers of two intervals is in the resulting interval.

Ends are of one type: integers, fractions or floats. Nothing is rounded here.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Generic, TypeVar

N = TypeVar("N", int, Fraction, float)
MOST_POWER = 64
"""The largest exponent, and the largest shift to the left, of which the result is computed."""


@dataclass(frozen=True)
class Interval(Generic[N]):
    """All numbers from low to high, both included."""

    low: N
    high: N

    @classmethod
    def point(cls, value: N) -> Interval[N]:
        return cls(value, value)

    @classmethod
    def around(cls, *values: N) -> Interval[N]:
        """The least interval that contains these numbers."""
        return cls(min(values), max(values))

    @property
    def is_point(self) -> bool:
        return self.low == self.high

    @property
    def magnitude(self) -> N:
        """The largest absolute value."""
        return max(abs(self.low), abs(self.high))

    def __contains__(self, value: object) -> bool:
        """Whether a number, or every number of another interval, is in this one."""
        if isinstance(value, Interval):
            return bool(self.low <= value.low and value.high <= self.high)
        return isinstance(value, int | float | Fraction) and bool(self.low <= value <= self.high)

    def __or__(self, other: Interval[N]) -> Interval[N]:
        """The least interval that contains both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def clipped(self, other: Interval[N]) -> Interval[N]:
        """The same with both ends moved into another interval."""
        return Interval(min(max(self.low, other.low), other.high), max(min(self.high, other.high), other.low))

    def __neg__(self) -> Interval[N]:
        return Interval(-self.high, -self.low)

    def __abs__(self) -> Interval[N]:
        ends = abs(self.low), abs(self.high)
        return Interval(self.low - self.low if 0 in self else min(ends), max(ends))

    def __add__(self, other: Interval[N]) -> Interval[N]:
        return Interval(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Interval[N]) -> Interval[N]:
        return Interval(self.low - other.high, self.high - other.low)

    def __mul__(self, other: Interval[N]) -> Interval[N]:
        return Interval.around(*(x * y for x, y in product((self.low, self.high), (other.low, other.high))))


Integers = Interval[int]


def binary(op: ast.operator, one: Integers, two: Integers, word: Integers) -> Integers | None:
    """The interval of an operation of Python on integers, without wrap, or None if nothing is known.

    `word` bounds a shift to the right: shifting by more bits than a word has changes nothing more.
    """
    if isinstance(op, ast.RShift):
        most = word.high.bit_length() + 1
        two = Interval(min(two.low, most), min(two.high, most))
    operation = _OPERATIONS.get(type(op))
    return operation(one, two) if operation is not None else None


def _quotient(one: Integers, two: Integers) -> Integers | None:
    """The divisors at the ends of what a division can be by; 0 divides nothing."""
    divisors = [y for y in (two.low, two.high, *(y for y in (-1, 1) if y in two)) if y]
    found = [x // y for x, y in product((one.low, one.high), divisors)]
    return Interval.around(*found) if found else None


def _remainder(one: Integers, two: Integers) -> Integers:
    if two.low > 0 and one.low >= 0:
        return one if one.high < two.low else Interval(0, min(one.high, two.high - 1))
    return Interval(min(two.low + 1, 0) if two.low < 0 else 0, max(two.high - 1, 0))


def _left(one: Integers, two: Integers) -> Integers | None:
    if two not in Interval(0, MOST_POWER):
        return None
    return Interval.around(*(x << y for x, y in product((one.low, one.high), (two.low, two.high))))


def _right(one: Integers, two: Integers) -> Integers | None:
    if two.low < 0:
        return None
    return Interval.around(*(x >> y for x, y in product((one.low, one.high), (two.low, two.high))))


def _power(one: Integers, two: Integers) -> Integers | None:
    if two not in Interval(0, MOST_POWER):
        return None
    if one.low >= 0:
        return Interval(one.low**two.low if one.low or two.low else 0, one.high**two.high if one.high else 1)
    return Interval(-(one.magnitude**two.high), max(one.magnitude, 1) ** two.high)


def _both(one: Integers, two: Integers) -> Integers | None:
    tops = [each.high for each in (one, two) if each.low >= 0]
    return Interval(0, min(tops)) if tops else None


def _either(one: Integers, two: Integers) -> Integers | None:
    if one.low < 0 or two.low < 0:
        return None
    return Interval(0, (1 << max(one.high.bit_length(), two.high.bit_length())) - 1)


_OPERATIONS: Mapping[type[ast.operator], Callable[[Integers, Integers], Integers | None]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: _quotient,
    ast.Mod: _remainder, ast.LShift: _left, ast.RShift: _right, ast.Pow: _power, ast.BitAnd: _both, ast.BitOr: _either,
    ast.BitXor: _either}
