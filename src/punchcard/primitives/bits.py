"""Formulas on ±1 bits in one feed-forward layer: the paper's sums, flags and selections, and those by flat steps.

Lemma (addition of pointers): the bits of a sum from one hidden layer with 8 d units, modulo 2^d.

Bit i of a + b depends only on s = a[0..i] + b[0..i], the sum of the low parts, with 0 <= s < 2^(i+2). It is 1 when
s lies in [2^i, 2^(i+1) - 1] or in [3 2^i, 2^(i+2) - 1]:

    c_i = (relu(s - 2^i + 1) - relu(s - 2^i)) + (relu(2^(i+1) - s) - relu(2^(i+1) - s - 1)) - 1
        + (relu(s - 3 2^i + 1) - relu(s - 3 2^i))

    s                 0 .. 2^i - 1    2^i .. 2^(i+1) - 1    2^(i+1) .. 3 2^i - 1    3 2^i ..
    first bracket          0                  1                      1                  1
    second                 1                  1                      0                  0
    third                  0                  0                      0                  1
    c_i                    0                  1                      0                  1

Six units a bit, and two more take the old value out of the residual: 8 d. The paper counts bits from 1 and calls the
least significant "i-th most significant"; here they count from 0. In columns where `one` is 0 all terms are 0.

The bits of a sum by *flat steps* take fewer units. Bit i of an integer s changes at the multiples of 2^i: it becomes 1 at
the odd ones and 0 at the even ones. So where s is known to lie in low .. high, the bit is the one of `low`, and a step, two
units, for each multiple above low up to high:

    s               2^i ..    2 2^i ..    3 2^i ..
    bit i              1           0           1          [s >= 2^i] - [s >= 2 2^i] + [s >= 3 2^i]    for 0 <= s < 4 2^i

Bit i of a sum of numbers depends on their lowest i + 1 bits alone, so that a few steps are enough.

A *branch* on a difference takes one layer, where the paper takes several: flip, add one, add, flag, select. Let
S = b - a bit by bit, entries -2, 0, 2, and D the difference that they make, |D| < 2^N. Wrapped to N bits it is at most 0
when D lies in -2^(N-1) .. 0 or is at least 2^(N-1): [D >= -2^(N-1)] - [D >= 1] + [D >= 2^(N-1)].
"""

from __future__ import annotations

from collections.abc import Iterable

from punchcard.transformer.expression import Expression, relu, stack


def number(bits: Expression, one: Expression | float) -> Expression:
    """The unsigned integer of ±1 bits: the sum of 2^k (b_k + 1) / 2."""
    powers = [2.0**k for k in range(bits.size)]
    return (0.5 * (bits + one)).total(powers)


def sum_bits(a: Expression, b: Expression, one: Expression | float) -> Expression:
    """The ±1 bits of a + b modulo 2^d."""
    return _bits_of((number(a[: i + 1], one) + number(b[: i + 1], one) for i in range(a.size)), one)


def increment_bits(a: Expression, one: Expression | float) -> Expression:
    """The ±1 bits of a + 1 modulo 2^d: the lemma with the second number fixed to 1."""
    return _bits_of((number(a[: i + 1], one) + one for i in range(a.size)), one)


def flip_bits(a: Expression) -> Expression:
    """The complement, a - 2 a. (The print's 2 relu(-b) - 1 would write -1 into columns that hold 0.)"""
    return a - 2 * a


def _bits_of(sums: Iterable[Expression], one: Expression | float) -> Expression:
    """Bit i, as ±1, of the i-th of these numbers, 0 <= s < 2^(i+2)."""
    bits = []
    for i, s in enumerate(sums):
        power = 2.0**i
        above_first = relu(s - (power - 1) * one) - relu(s - power * one)
        below_second = relu(2 * power * one - s) - relu((2 * power - 1) * one - s)
        above_third = relu(s - (3 * power - 1) * one) - relu(s - 3 * power * one)
        bits.append(2 * (above_first + below_second + above_third) - 3 * one)
    return stack(*bits)


def integer_flag(value: Expression, one: Expression | float) -> Expression:
    """Equation (compute_flag), for an integer: 1 - relu(v) + relu(v - 1).

    v <= 0: 1 - 0 + 0 = 1.    v >= 1: 1 - v + (v - 1) = 0.
    """
    return one - relu(value) + relu(value - one)


def word_flag(bits: Expression, one: Expression | float) -> Expression:
    """Equation (compute_flag_oisc), for N bits in two's complement: relu(b_N) + relu(1 - N - sum b).

    negative: b_N = 1 and sum b >= 2 - N, so 1 + 0.    zero: all bits are -1, so 0 + relu(1 - N + N) = 1.
    positive: b_N = -1 and sum b >= 2 - N, so 0 + 0.
    The print has 1 + N in place of 1 - N, which is wrong for every word of 4 bits.
    """
    return relu(bits[-1]) + relu((1 - bits.size) * one - bits.total())


def select(flag: Expression, yes: Expression, no: Expression, one: Expression | float) -> Expression:
    """`yes` where flag = 1, `no` where flag = 0: 2 relu(no - flag) + 2 relu(yes - (1 - flag)) - 1.

    flag = 1: relu(no - 1) = 0, and 2 relu(yes) - 1 = yes.    flag = 0: 2 relu(no) - 1 = no, and relu(yes - 1) = 0.
    """
    return 2 * relu(no - flag) + 2 * relu(yes - (one - flag)) - one


TOLERANCE = 0.25
"""The noise that is removed. A power of two keeps 1 / (1 - 2 tolerance) exact."""


def correct(bits: Expression) -> Expression:
    """(relu(b + 1 - e) - relu(b + e) + relu(b - e) - relu(b - 1 + e)) / (1 - 2 e) - 1, for noise up to e.

    b near    -1    0    1
    first      0    1    1     (relu(b + 1 - e) - relu(b + e)) / (1 - 2 e)
    second     0    0    1     (relu(b - e) - relu(b - 1 + e)) / (1 - 2 e)
    Flat around each of the three, so that noise does not pass. Four units a row, and two for the residual.
    """
    e = TOLERANCE
    first = relu(bits + (1 - e)) - relu(bits + e)
    second = relu(bits - e) - relu(bits - (1 - e))
    return (1 / (1 - 2 * e)) * (first + second) - 1


def step(form: Expression, one: Expression | float) -> Expression:
    """1 where form >= 0, 0 where form <= -1: relu(2 F + 3/2) - relu(2 F + 1/2).

    F >= -1/4: (2 F + 3/2) - (2 F + 1/2) = 1.    F <= -3/4: 0 - 0.
    Where `one` is 0 the two terms are the same, and the step is 0 whatever F is.
    """
    return relu(2 * form + 1.5 * one) - relu(2 * form + 0.5 * one)


def step_and(form: Expression, bit: Expression, one: Expression, bound: float) -> Expression:
    """[F >= 0] and bit: where the ±1 bit is -1, F is pushed below -1. `bound` is at least (max F + 1) / 2."""
    return step(form + bound * (bit - one), one)


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
