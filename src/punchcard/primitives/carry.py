"""Sums of words with a gate: bits of a + b + carry in one feed-forward layer, where nothing is absent.

Bit i depends on s = a[0..i] + b[0..i] + carry alone, 0 <= s < 2^(i+2), and changes at the multiples of 2^i:

    s               0 ..    2^i ..    2 2^i ..    3 2^i ..
    bit i            0         1          0           1         [s >= 2^i] - [s >= 2 2^i] + [s >= 3 2^i]

Six units a bit; the carry out of n bits is [s >= 2^n], two units. x - y is x + not y + 1, and not y is -y. A sum that is too
wide for the number format is made in two layers: the low part and its carry in one, the high part with that carry in the
next. The gate is in the same units (see `literals`).
"""

from __future__ import annotations

from punchcard.primitives.add import number
from punchcard.primitives.literals import conjunction, step_where
from punchcard.transformer.expression import Expression, stack


def sum_where(a: Expression, b: Expression, carry: Expression, missing: Expression, one: Expression) -> Expression:
    """The bits, 0 or 1, of a + b + carry modulo 2^n where nothing is absent, else 0. `carry` is 0 or 1."""
    return stack(*(bit_where(number(a[: i + 1], one) + number(b[: i + 1], one) + carry, i, 0, (4 << i) - 1, missing, one)
                   for i in range(a.size)))


def carry_where(a: Expression, b: Expression, carry: Expression, missing: Expression, one: Expression) -> Expression:
    """1 where a + b + carry has a carry out of its highest bit and nothing is absent, else 0."""
    size = 1 << a.size
    return step_where(number(a, one) + number(b, one) + carry - size * one, missing, one, size - 1)


def from_where(form: Expression, first: int, low: int, high: int, missing: Expression, one: Expression) -> Expression:
    """1 where an integer form from low to high is `first` or more and nothing is absent, else 0. Two or three units.

    It is a step upwards, or 1 less a step downwards: of the two, that with the smaller numbers.
    """
    if first > high:
        return 0.0 * one
    if first <= low:
        return conjunction(missing, one)
    if high - first <= first - 1 - low:
        return step_where(form - first * one, missing, one, high - first)
    return conjunction(missing, one) - step_where((first - 1) * one - form, missing, one, first - 1 - low)


def offset_where(a: Expression, offset: Expression, low: int, high: int, missing: Expression, one: Expression) -> Expression:
    """The bits, 0 or 1, of a + offset modulo 2^n where nothing is absent, else 0, for a form from low to high."""
    return stack(*(bit_where(number(a[: i + 1], one) + offset, i, low, (2 << i) - 1 + high, missing, one)
                   for i in range(a.size)))


def bit_where(form: Expression, i: int, low: int, high: int, missing: Expression, one: Expression) -> Expression:
    """Bit i, 0 or 1, of an integer form from low to high where nothing is absent, else 0.

    All its steps are closed by the same amount, so that they are steps of one form.
    """
    power, most = 1 << i, high - low
    first = low // power
    bit: Expression = 0.0 * one
    if first % 2:  # the bit of `low` itself, from the least value on
        bit = bit + conjunction(missing, one)
    for multiple in range(first + 1, high // power + 1):
        sign = 1 if multiple % 2 else -1
        bit = bit + sign * step_where(form - multiple * power * one, missing, one, most)
    return bit
