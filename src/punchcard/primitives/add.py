"""Lemma (addition of pointers): the bits of a sum from one hidden layer with 8 d units, modulo 2^d.

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
"""

from __future__ import annotations

from punchcard.transformer.expression import Expression, relu, stack


def number(bits: Expression, one: Expression | float) -> Expression:
    """The unsigned integer of ±1 bits: the sum of 2^k (b_k + 1) / 2."""
    powers = [2.0**k for k in range(bits.size)]
    return (0.5 * (bits + one)).total(powers)


def sum_bits(a: Expression, b: Expression, one: Expression | float) -> Expression:
    """The ±1 bits of a + b modulo 2^d."""
    return stack(*(
        _bit_of(number(a[: i + 1], one) + number(b[: i + 1], one), i, one) for i in range(a.size)
    ))


def increment_bits(a: Expression, one: Expression | float) -> Expression:
    """The ±1 bits of a + 1 modulo 2^d: the lemma with the second number fixed to 1."""
    return stack(*(_bit_of(number(a[: i + 1], one) + one, i, one) for i in range(a.size)))


def flip_bits(a: Expression) -> Expression:
    """The complement, a - 2 a. (The print's 2 relu(-b) - 1 would write -1 into columns that hold 0.)"""
    return a - 2 * a


def _bit_of(s: Expression, i: int, one: Expression | float) -> Expression:
    """Bit i, as ±1, of a number 0 <= s < 2^(i+2)."""
    power = 2.0**i
    above_first = relu(s - (power - 1) * one) - relu(s - power * one)
    below_second = relu(2 * power * one - s) - relu((2 * power - 1) * one - s)
    above_third = relu(s - (3 * power - 1) * one) - relu(s - 3 * power * one)
    return 2 * (above_first + below_second + above_third) - 3 * one
