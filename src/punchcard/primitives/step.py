"""The flat step: [F >= 0] of an integer form, with noise up to 1/4 removed. Two hidden units."""

from __future__ import annotations

from punchcard.transformer.expression import Expression, relu


def step(form: Expression, one: Expression | float) -> Expression:
    """1 where form >= 0, 0 where form <= -1: relu(2 F + 3/2) - relu(2 F + 1/2).

    F >= -1/4: (2 F + 3/2) - (2 F + 1/2) = 1.    F <= -3/4: 0 - 0.
    Where `one` is 0 the two terms are the same, and the step is 0 whatever F is.
    """
    return relu(2 * form + 1.5 * one) - relu(2 * form + 0.5 * one)


def step_and(form: Expression, bit: Expression, one: Expression, bound: float) -> Expression:
    """[F >= 0] and bit: where the ±1 bit is -1, F is pushed below -1. `bound` is at least (max F + 1) / 2."""
    return step(form + bound * (bit - one), one)
