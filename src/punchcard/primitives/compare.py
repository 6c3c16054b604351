"""Comparisons of two numbers whose low parts were compared a layer before.

With d = x - y of the high parts, and two bits about the low parts, `carry` = [x_low >= y_low] and `same` = [x_low = y_low]:

    x < y       d + carry <= 0          a step, two units
    x = y       d = 0 and same          a tent, three units

    d           negative    0, carry 0    0, carry 1    positive
    d + carry   <= 0        0             1             >= 1
    x < y       yes         yes           no            no

Two's complement is compared as unsigned numbers are, with both highest bits turned. More literals in the same units choose
between two words by a comparison: a hidden layer cannot select by what it computes itself.
"""

from __future__ import annotations

from punchcard.primitives.add import number
from punchcard.primitives.literals import step_where, zero_where
from punchcard.transformer.expression import Expression


def less_where(x: Expression, y: Expression, carry: Expression, missing: Expression, one: Expression) -> Expression:
    """1 where x < y and nothing is absent, else 0; an entry for each entry of `missing`."""
    return step_where(number(y, one) - number(x, one) - carry, missing, one, (1 << x.size) - 1)


def equal_where(x: Expression, y: Expression, missing: Expression, one: Expression) -> Expression:
    """1 where x = y and nothing is absent, else 0. That the low parts are the same is one of the literals."""
    return zero_where(number(x, one) - number(y, one), missing, one, 1 << x.size)
