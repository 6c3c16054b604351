"""Subtraction in one feed-forward layer, where the paper takes three: flip, add one, add.

Let S = b - a bit by bit, entries -2, 0, 2. The difference of the low parts is D_i = sum over k <= i of 2^k S_k / 2, an
integer with |D_i| < 2^(i+1), and bit i of b - a is bit i of D_i modulo 2^(i+1):

    D_i              < -2^i    -2^i .. -1    0 .. 2^i - 1    >= 2^i
    [D_i >= -2^i]       0           1              1            1
    [D_i >= 0]          0           0              1            1
    [D_i >= 2^i]        0           0              0            1
    bit i               0           1              0            1       first - second + third

With D = D_(N-1), the wrapped difference is at most 0 when D lies in -2^(N-1) .. 0 or is at least 2^(N-1):
[D >= -2^(N-1)] - [D >= 1] + [D >= 2^(N-1)].
"""

from __future__ import annotations

from punchcard.primitives.step import step, step_and
from punchcard.transformer.expression import Expression, stack


def low_difference(s: Expression, i: int) -> Expression:
    """D_i, from S = b - a bit by bit."""
    return s[: i + 1].total([2.0**k / 2 for k in range(i + 1)])


def difference_bits(s: Expression, one: Expression) -> Expression:
    """The ±1 bits of b - a modulo 2^N, from S. Six units a bit."""
    bits = []
    for i in range(s.size):
        d = low_difference(s, i)
        power = 2.0**i
        bits.append(2 * (step(d + power * one, one) - step(d, one) + step(d - power * one, one)) - one)
    return stack(*bits)


def branch(s: Expression, yes: Expression, no: Expression, one: Expression) -> Expression:
    """`yes` where b - a (wrapped) is at most 0, else `no`: no + 2 [leq and yes] - 2 [leq and no], as ±1 bits.

    leq and yes: yes = 1, no = -1 gives -1 + 2 = 1; yes = -1, no = 1 gives 1 - 2 = -1; equal bits cancel.
    """
    return no + 2 * _not_positive_and(s, yes, one) - 2 * _not_positive_and(s, no, one)


def _not_positive_and(s: Expression, bits: Expression, one: Expression) -> Expression:
    d = low_difference(s, s.size - 1)
    half = 2.0 ** (s.size - 1)
    bound = 2 * half  # |D| < 2 half, so D + half + 1 <= 3 half <= 2 bound
    return (
        step_and(d + half * one, bits, one, bound)
        - step_and(d - one, bits, one, bound)
        + step_and(d - half * one, bits, one, bound)
    )
