"""The gate: closing a formula in the columns and rows where it must not act.

A gate is a form that is exactly 0 where the formula acts and at least 1 where it does not. Most often it is a row. It is
never computed as C e - C inside a sum with data, which would lose the data's last bits: the row itself is 0, so a gate of
any size costs no precision. A condition that is 1 where the formula acts, beside bits, closes by 1 - condition.
"""

from __future__ import annotations

import numpy as np

from punchcard.transformer.expression import Expression, relu


def gated(value: Expression, closed: Expression, gate: float) -> Expression:
    """`value` where `closed` is 0; 0 where it is 1 or more, as long as the value's parts stay below `gate`.

    The affine part f becomes relu(f - gate closed) - relu(-f - gate closed), and each relu(g) becomes relu(g - gate
    closed).
    """
    closed = closed.repeat(value.size)
    affine = Expression(value.linear, value.constant, np.zeros((value.size, 0)), value.inner[:0], value.bias[:0])
    result = relu(affine - gate * closed) - relu(-affine - gate * closed)
    entries, units = np.nonzero(value.outer)
    if len(units) == 0:
        return result
    inner = Expression(value.inner[units], value.bias[units], np.zeros((len(units), 0)), value.inner[:0], value.bias[:0])
    shut = Expression(closed.linear[entries], closed.constant[entries], np.zeros((len(units), 0)), value.inner[:0],
                      value.bias[:0])
    opened = relu(inner - gate * shut)
    outer = np.zeros((value.size, len(units)))
    outer[entries, np.arange(len(units))] = value.outer[entries, units]
    return result + Expression(np.zeros_like(value.linear), np.zeros(value.size), outer, opened.inner, opened.bias)
