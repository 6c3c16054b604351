"""A branch on a difference in one feed-forward layer, where the paper takes several: flip, add one, add, flag, select.

Let S = b - a bit by bit, entries -2, 0, 2, and D the difference that they make, |D| < 2^N. Wrapped to N bits it is at most 0
when D lies in -2^(N-1) .. 0 or is at least 2^(N-1): [D >= -2^(N-1)] - [D >= 1] + [D >= 2^(N-1)].
"""

from __future__ import annotations

from punchcard.primitives.bits import low_difference
from punchcard.primitives.step import step_and
from punchcard.transformer.expression import Expression


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
