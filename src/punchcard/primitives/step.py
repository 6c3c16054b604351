"""The flat step: [F >= 0] of an integer form, with noise up to 1/4 removed. Two hidden units."""

from __future__ import annotations

from punchcard.primitives.add import number
from punchcard.transformer.expression import Expression, relu, stack


def step(form: Expression, one: Expression | float) -> Expression:
    """1 where form >= 0, 0 where form <= -1: relu(2 F + 3/2) - relu(2 F + 1/2).

    F >= -1/4: (2 F + 3/2) - (2 F + 1/2) = 1.    F <= -3/4: 0 - 0.
    Where `one` is 0 the two terms are the same, and the step is 0 whatever F is.
    """
    return relu(2 * form + 1.5 * one) - relu(2 * form + 0.5 * one)


def step_and(form: Expression, bit: Expression, one: Expression, bound: float) -> Expression:
    """[F >= 0] and bit: where the ±1 bit is -1, F is pushed below -1. `bound` is at least (max F + 1) / 2."""
    return step(form + bound * (bit - one), one)


def successor_bits(bits: Expression, one: Expression) -> Expression:
    """The ±1 bits of b + 1 modulo 2^d by flat steps, four units a bit.

    With s = b[0..i] + 1, the low part plus one, 1 <= s <= 2^(i+1), and bit i is [s >= 2^i] - [s >= 2^(i+1)].
    """
    result = []
    for i in range(bits.size):
        s = number(bits[: i + 1], one) + one
        result.append(2 * (step(s - 2.0**i * one, one) - step(s - 2.0 ** (i + 1) * one, one)) - one)
    return stack(*result)
