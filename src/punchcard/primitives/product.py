"""The product of two words: how many bits stand in each column of the long multiplication, then the bits of their sum.

With x = sum of 2^i x_i and y = sum of 2^j y_j,

    x y  =  sum of 2^c t_c,     t_c  =  how many of x_i and y_(c - i) are both 1,     0 <= t_c <= n

One layer has a unit for each pair, and adds them up to the counts t_c. Bit i of a sum of counts depends on the columns up to
i alone, s = t_0 + 2 t_1 + ... + 2^i t_i < 2^(i+1) (i + 1), and changes at the multiples of 2^i: two units for each of them.
What is beyond n columns, s / 2^n rounded down, is one number, and is added to the columns above in the layer after.

    n = 2       x = 3, y = 3     t = 1, 2, 1      1 + 2 2 + 4 1 = 9 = 1001
    bit 0       s = 1            odd
    bit 1       s = 5            5 / 2 is 2, even
    beyond      5 / 4 is 1       bits 2 and 3 are those of t_2 + 1 = 2

A word in two's complement is its unsigned number less 2^n where its highest bit is 1. So from the product of a signed x with
y the word y is taken away, n columns up, where that bit is 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from punchcard.primitives.carry import bit_where
from punchcard.primitives.literals import step_where
from punchcard.primitives.logic import and_where
from punchcard.transformer.expression import Expression, stack

Span = tuple[int, int]
"""The least and the greatest value of a count."""


def counts_where(x: Expression, y: Expression, missing: Expression, one: Expression) -> Expression:
    """The counts of all 2 n columns where nothing is absent, else 0. n^2 units."""
    n = x.size
    pairs = stack(*(and_where(x[i].repeat(n), y, missing, one) for i in range(n)))
    place = np.zeros((2 * n, n * n))
    for i in range(n):
        place[i + np.arange(n), i * n + np.arange(n)] = 1.0
    return pairs.through(place)


def count_spans(n: int) -> list[Span]:
    """What the counts may be."""
    return [(0, max(0, min(c + 1, 2 * n - 1 - c))) for c in range(2 * n)]


def counted_where(
    counts: Expression, spans: Sequence[Span], more: Expression, most: int, missing: Expression, one: Expression,
) -> Expression:
    """The bits, 0 or 1, of a sum of columns and of a number from 0 to `most`, where nothing is absent, else 0."""
    bits, form, low, high = [], more, 0, most
    for i, (least, greatest) in enumerate(spans):
        form, low, high = form + 2.0**i * counts[i], low + (least << i), high + (greatest << i)
        bits.append(bit_where(form, i, low, high, missing, one))
    return stack(*bits)


def beyond_where(counts: Expression, spans: Sequence[Span], missing: Expression, one: Expression) -> Expression:
    """What a sum of columns has beyond them: s / 2^n rounded down, where nothing is absent, else 0."""
    n, form, total = counts.size, counts.total([2.0**i for i in range(counts.size)]), 0.0 * one
    high = sum(greatest << i for i, (_, greatest) in enumerate(spans))
    for multiple in range(1, beyond_most(spans) + 1):
        total = total + step_where(form - (multiple << n) * one, missing, one, high)
    return total


def beyond_most(spans: Sequence[Span]) -> int:
    """The greatest value of `beyond_where`."""
    return sum(greatest << i for i, (_, greatest) in enumerate(spans)) >> len(spans)
