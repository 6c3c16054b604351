"""The bits of a sum, by flat steps in one feed-forward layer.

Bit i of an integer s changes at the multiples of 2^i: it becomes 1 at the odd ones and 0 at the even ones. So where s is
known to lie in low .. high, the bit is the one of `low`, and a step, two units, for each multiple above low up to high:

    s               2^i ..    2 2^i ..    3 2^i ..
    bit i              1           0           1          [s >= 2^i] - [s >= 2 2^i] + [s >= 3 2^i]    for 0 <= s < 4 2^i

Bit i of a sum of numbers depends on their lowest i + 1 bits alone, so that a few steps are enough.
"""

from __future__ import annotations

from collections.abc import Iterable

from punchcard.primitives.add import number
from punchcard.primitives.step import step
from punchcard.transformer.expression import Expression, stack


def bit_of(form: Expression, i: int, low: int, high: int, one: Expression) -> Expression:
    """Bit i, as 0 or 1, of an integer form from low to high; a form below `low` counts as low. 0 where `one` is 0."""
    power = 1 << i
    bit: Expression = (low // power % 2) * one
    for multiple in range(low // power + 1, high // power + 1):
        bit = bit + (1 if multiple % 2 else -1) * step(form - multiple * power * one, one)
    return bit


def bits_of(forms: Iterable[tuple[Expression, int, int]], one: Expression) -> Expression:
    """The ±1 bits of a number: for bit i an integer form whose bit i it is, and the form's least and largest value."""
    return stack(*(2 * bit_of(form, i, low, high, one) - one for i, (form, low, high) in enumerate(forms)))


def successor_bits(bits: Expression, one: Expression) -> Expression:
    """The ±1 bits of b + 1 modulo 2^d. Four units a bit."""
    return bits_of(((number(bits[: i + 1], one) + one, 0, 2 << i) for i in range(bits.size)), one)


def offset_bits(bits: Expression, offset: int, one: Expression) -> Expression:
    """The ±1 bits of b + offset modulo 2^d. Four units a bit, two for the lowest where the offset is odd, or fewer."""
    forms = []
    for i in range(bits.size):
        low = offset % (2 << i)
        forms.append((number(bits[: i + 1], one) + low * one, low, low + (2 << i) - 1))
    return bits_of(forms, one)


def difference_bits(s: Expression, one: Expression) -> Expression:
    """The ±1 bits of b - a modulo 2^N, from S = b - a bit by bit: entries -2, 0, 2. Six units a bit."""
    return bits_of(((low_difference(s, i), -2 << i, (2 << i) - 1) for i in range(s.size)), one)


def low_difference(s: Expression, i: int) -> Expression:
    """The difference of the lowest i + 1 bits, from S = b - a bit by bit: an integer below 2^(i+1) in size."""
    return s[: i + 1].total([2.0**k / 2 for k in range(i + 1)])


def at_least(bits: Expression, threshold: int, one: Expression) -> Expression:
    """1 where the unsigned number of the ±1 bits is `threshold` or more, else 0; 0 where `one` is 0. Two units."""
    if threshold >= 1 << bits.size:
        return 0.0 * one
    return step(number(bits, one) - threshold * one, one)
