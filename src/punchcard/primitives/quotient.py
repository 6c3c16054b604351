"""Long division with digits of several bits, and the negative of a word.

A digit of a quotient, from the rest r so far, the next digit n of the dividend and the divisor d, in base b:

    q  =  how many of d, 2 d, ..., (b - 1) d are not more than b r + n       one layer: a step for each
    r' =  b r + n - q d                                                      the layer after

Bit j of q is a sum of the same steps: with the sign + where it becomes 1 as q grows, and - where it becomes 0. In the layer
after, q is known by its bits, and q d is the sum of 2^j d over those that are 1: one unit a bit,

    relu(d - D [bit j is 0])        bit j = 1: d        bit j = 0: 0, since d <= D

Where d = 0 all steps hold: each digit is b - 1, and the rest is the dividend. That is what RISC-V says of a division by 0.
A number becomes bits in the same way, digit after digit, with the divisor b^m: one layer a digit, since what is left is
linear in the bits that are known.

The negative of a word, bit i, from the number w of its bits up to i: 1 where 1 <= w <= 2^i.

    w               0    1 .. 2^i    2^i + 1 .. 2^(i+1) - 1
    2^(i+1) - w          2^i ..      1 .. 2^i - 1
    bit i of -w     0    1           0
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from punchcard.primitives.bits import number
from punchcard.primitives.literals import as_numbers, step_where
from punchcard.transformer.expression import Expression, relu, stack


def digit_where(form: Expression, unit: Expression, size: int, most: int, missing: Expression,
                one: Expression) -> Expression:
    """How often a unit is in a form, where nothing is absent, else 0: the bits, 0 or 1, of a digit of `size` bits.

    The form is an integer, `most` at most, and 0 or more where nothing is absent.
    """
    values = np.arange(1 << size)
    steps = step_where(form.repeat(len(values) - 1) - unit.through(values[1:, None].astype(np.float64)), missing, one, most)
    changes = np.diff(values[None] >> np.arange(size)[:, None] & 1, axis=1)
    return steps.through(changes.astype(np.float64))


class DigitPlace(NamedTuple):
    """A digit of a number: the bits from `low` to `high`; the digits above it are known."""

    low: int
    high: int

    @property
    def slice(self) -> slice:
        return slice(self.low, self.high)

    def where(self, form: Expression, known: Expression, most: int, missing: Expression, one: Expression) -> Expression:
        """The bits, 0 or 1, of this digit of a form, where nothing is absent, else 0. `known` has the bits above it."""
        lower = form
        if self.high < known.size:
            lower = form - 2.0**self.high * number(known[self.high :], one)
        return digit_where(lower, 2.0**self.low * one, self.high - self.low, most, missing, one)


def digit_of(bits: int, size: int, place: int) -> DigitPlace:
    """A digit of a number of so many bits; place 0 is the highest."""
    return DigitPlace(bits - size * (place + 1), bits - size * place)


def times(bits: Expression, factor: Expression, most: int, one: Expression) -> Expression:
    """The product of ±1 bits, as a number, and a number from 0 to `most`. One unit a bit."""
    powers = [2.0**j for j in range(bits.size)]
    return relu(factor.repeat(bits.size) - most * (one - as_numbers(bits, one))).total(powers)


def negative_where(bits: Expression, missing: Expression, one: Expression) -> Expression:
    """The bits, 0 or 1, of the negative of a word modulo 2^n where nothing is absent, else 0. Four units a bit."""
    found = []
    for i in range(bits.size):
        low, most = number(bits[: i + 1], one), (2 << i) - 1
        found.append(step_where(low - one, missing, one, most) - step_where(low - ((1 << i) + 1) * one, missing, one, most))
    return stack(*found)


def size_where(bits: Expression, negative: Expression, missing: Expression, one: Expression) -> Expression:
    """The number of a word, or 2^n less it where `negative` is 1, where nothing is absent, else 0. Two units."""
    size = 1 << bits.size
    value = number(bits, one)
    return relu(value - size * (missing + negative)) + relu(size * one - value - size * (missing + one - negative))
