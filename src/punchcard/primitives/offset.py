"""Adding a constant to a pointer, and comparing a number with one, by flat steps in one feed-forward layer.

Bit i of b + k depends only on the low parts: with k' = k mod 2^(i+1) and s = b[0..i] + k', it is 1 when s lies in
2^i .. 2^(i+1) - 1 or is at least 3 2^i:

    [s >= 2^i] - [s >= 2^(i+1)] + [s >= 3 2^i]

s takes only the values k' .. k' + 2^(i+1) - 1, so at least one of the three steps never changes and costs nothing.
"""

from __future__ import annotations

from punchcard.primitives.add import number
from punchcard.primitives.step import step
from punchcard.transformer.expression import Expression, stack


def offset_bits(bits: Expression, offset: int, one: Expression) -> Expression:
    """The ±1 bits of b + offset modulo 2^d. Four units a bit, two for the lowest where the offset is odd, or fewer."""
    result = []
    for i in range(bits.size):
        power = 2**i
        low, span = offset % (2 * power), 2 * power
        s = number(bits[: i + 1], one) + low * one
        total = 0.0 * one
        for sign, threshold in ((1, power), (-1, 2 * power), (1, 3 * power)):
            if threshold <= low:
                total = total + sign * one
            elif threshold < low + span:
                total = total + sign * step(s - threshold * one, one)
        result.append(2 * total - one)
    return stack(*result)


def at_least(bits: Expression, threshold: int, one: Expression) -> Expression:
    """1 where the unsigned number of the ±1 bits is `threshold` or more, else 0; 0 where `one` is 0. Two units."""
    if threshold >= 1 << bits.size:
        return 0.0 * one
    return step(number(bits, one) - threshold * one, one)
