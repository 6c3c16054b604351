"""The flag of a conditional branch: 1 when a value is at most 0, else 0. One feed-forward layer."""

from __future__ import annotations

from punchcard.transformer.expression import Expression, relu


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
