"""Overwriting without averaging: attention adds twice the new bits, and a clip makes the old ones irrelevant.

With x the old bit, or 0, and y the new one, x + 2 y has the sign of y and a size of at least 1. A clip of slope 2 that is
flat beyond ±1/2 gives y, and removes noise up to 1/2. A bit that gets nothing, y = 0, keeps its value.
"""

from __future__ import annotations

from punchcard.transformer.build import Part, assign
from punchcard.transformer.expression import Expression, Rows, relu
from punchcard.transformer.gate import gated


def clip(bits: Rows) -> Part:
    """Clip to ±1 in every column: x + relu(-x - 1/2) + relu(x + 1/2) - 2 relu(x - 1/2) - 1/2. Three units a bit.

    x >= 1/2: x + (x + 1/2) - (2 x - 1) - 1/2 = 1.    x <= -1/2: x + (-x - 1/2) - 1/2 = -1.
    """
    return assign(bits, bits + relu(-bits - 0.5) + relu(bits + 0.5) - 2 * relu(bits - 0.5) - 0.5)


def clipped_where(condition: Expression, bits: Expression, gate: float) -> Expression:
    """The bits, clipped to ±1 where `condition` is 1, and 0 where it is 0, for |x| < gate. Two units a bit."""
    above, below = (gated(relu(bits + half), 1 - condition, gate) for half in (0.5, -0.5))
    return 2 * above - 2 * below - condition


def clip_where(condition: Expression, bits: Rows, gate: float) -> Part:
    """Clip to ±1 in the columns where `condition` is 1, and set 0 where it is 0. Four units a bit."""
    return assign(bits, clipped_where(condition, bits, gate))
