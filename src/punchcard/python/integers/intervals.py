"""Arithmetic of intervals: every result of an operation on numbers of two intervals lies in the one that is given."""

from __future__ import annotations

import ast
from itertools import product

Interval = tuple[int, int]
MOST_POWER = 64


def spread(*values: int) -> Interval:
    return min(values), max(values)


def binary(op: ast.operator, one: Interval, two: Interval, word: Interval) -> Interval | None:
    """The interval of an operation without wrap; None where nothing is known."""
    (a, b), (c, d) = one, two
    if isinstance(op, ast.Add):
        return a + c, b + d
    if isinstance(op, ast.Sub):
        return a - d, b - c
    if isinstance(op, ast.Mult):
        return spread(*(x * y for x, y in product(one, two)))
    if isinstance(op, ast.FloorDiv):
        return _quotient(one, two)
    if isinstance(op, ast.Mod):
        return _remainder(one, two)
    if isinstance(op, ast.LShift) and c >= 0 and d <= MOST_POWER:
        return spread(*(x << y for x, y in product(one, two)))
    if isinstance(op, ast.RShift) and c >= 0:
        d = min(d, word[1].bit_length() + 1)
        return spread(*(x >> min(y, d) for x, y in product(one, two)))
    if isinstance(op, ast.Pow) and c >= 0 and d <= MOST_POWER:
        if a >= 0:
            return a**c if a or c else 0, b**d if b else 1
        return -(max(abs(a), abs(b)) ** d), max(abs(a), abs(b), 1) ** d
    if isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor):
        return _bits(op, one, two)
    return None


def _divisors(two: Interval) -> list[int]:
    """The divisors that are at the ends of what a division can be by; 0 divides nothing."""
    c, d = two
    return [x for x in (c, d, -1 if c <= -1 <= d else 0, 1 if c <= 1 <= d else 0) if x]


def _quotient(one: Interval, two: Interval) -> Interval | None:
    found = [x // y for x, y in product(one, _divisors(two))]
    return spread(*found) if found else None


def _remainder(one: Interval, two: Interval) -> Interval | None:
    (a, b), (c, d) = one, two
    if c > 0 and a >= 0:
        return (a, b) if b < c else (0, min(b, d - 1))
    return min(c + 1, 0) if c < 0 else 0, max(d - 1, 0)


def _bits(op: ast.operator, one: Interval, two: Interval) -> Interval | None:
    (a, b), (c, d) = one, two
    if isinstance(op, ast.BitAnd):
        tops = [high for low, high in (one, two) if low >= 0]
        if tops:
            return 0, min(tops)
    elif a >= 0 and c >= 0:
        return 0, (1 << max(b.bit_length(), d.bit_length())) - 1
    return None
