"""Branch select: one of two ±1 vectors, by a flag that is 0 or 1. One feed-forward layer."""

from __future__ import annotations

from punchcard.transformer.expression import Expression, relu


def select(flag: Expression, yes: Expression, no: Expression, one: Expression | float) -> Expression:
    """`yes` where flag = 1, `no` where flag = 0: 2 relu(no - flag) + 2 relu(yes - (1 - flag)) - 1.

    flag = 1: relu(no - 1) = 0, and 2 relu(yes) - 1 = yes.    flag = 0: 2 relu(no) - 1 = no, and relu(yes - 1) = 0.
    """
    return 2 * relu(no - flag) + 2 * relu(yes - (one - flag)) - one
