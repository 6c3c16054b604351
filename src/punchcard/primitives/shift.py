"""Shifts by an amount that is itself data: for every amount s one conjunction of a bit and the literals of s.

    left          bit i  =  sum over s <= i of           [amount = s] and x_(i - s)
    right         bit i  =  sum over s < n - i of        [amount = s] and x_(i + s)
    arithmetic    the same, and the highest bit of x where the amount is n - i or more

No two amounts hold at once, so the sums are 0 or 1. n (n + 1) / 2 units a direction for words of n = 2^k bits and amounts of
k bits; the arithmetic shift has n - 1 more, one for each amount.
"""

from __future__ import annotations

import numpy as np

from punchcard.primitives.literals import absent, bits_where
from punchcard.transformer.expression import Expression, stack


def left_where(x: Expression, amount: Expression, missing: Expression, one: Expression) -> Expression:
    """The bits, 0 or 1, of x shifted to the left where nothing is absent, else 0."""
    return _shifted(x, amount, missing, one, -1)


def right_where(x: Expression, amount: Expression, missing: Expression, one: Expression) -> Expression:
    """The same to the right, with zeros coming in."""
    return _shifted(x, amount, missing, one, 1)


def _shifted(x: Expression, amount: Expression, missing: Expression, one: Expression, direction: int) -> Expression:
    n = x.size
    units: list[Expression] = []
    into: list[int] = []
    for s in range(n):
        bits = range(s, n) if direction < 0 else range(n - s)
        here = missing + absent(amount, {j: s >> j & 1 for j in range(amount.size)}, one)
        source = x[: n - s] if direction < 0 else x[s:]
        units.append(bits_where(source, here.repeat(len(bits)), one))
        into += bits
    placed = np.zeros((n, len(into)))
    placed[into, np.arange(len(into))] = 1.0
    return stack(*units).through(placed)


def sign_where(x: Expression, amount: Expression, missing: Expression, one: Expression) -> Expression:
    """What comes in from above in an arithmetic shift to the right, where nothing is absent: the bits, 0 or 1."""
    n = x.size
    units = [bits_where(x[n - 1], missing + absent(amount, {j: s >> j & 1 for j in range(amount.size)}, one), one)
             for s in range(1, n)]
    comes = np.array([[float(i + s >= n) for s in range(1, n)] for i in range(n)])
    return stack(*units).through(comes)
