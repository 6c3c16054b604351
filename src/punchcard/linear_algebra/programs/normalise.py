"""A vector divided by its norm, by Newton's iteration for the inverse square root.

The paper's x = x (3/2 - S x^2 / 2) with S = v . v, from x = 1, finds 1 / ||v||, for 0 < S < 3. Where v may be short, x
would grow beyond the range. There the factors are applied to the vector at once, v = v (3/2 - v . v / 2), which is the
same iteration with v in place of v x: a step grows a short vector by 3/2, and near the end it converges quadratically.

The machine's error in a product is relative to its range, so a vector is better held large. With a range of 2 its squared
norm can be 15/8, and u = sqrt(15/8) v:

    u = u (3/2 - 4/15 u . u)             u . u becomes 15/8, from anything below 45/8
"""

from __future__ import annotations

import math

STEP = ("s = mul(u, u)", "s = mul(half, s)", "s = sub(three_halves, s)", "ut = transpose(u)", "u = mul(ut, s)")
"""One step of the iteration on the vector `u`; `half` is 1/2, measured by the square of the length that u gets."""
ROOT_STEP = ("y = mul(x, x)", "y = mul(s, y)", "y = sub(three_halves, y)", "x = mul(x, y)")
"""One step of the iteration on the scalar `x`, for 1 / sqrt(2 s)."""
AT_ONCE = 3
"""Steps between two counts of a loop: a count costs nearly two instructions, a step five."""
LENGTH = math.sqrt(15 / 8)
"""The norm of u in the end."""


def declarations(rows: int) -> list[str]:
    """The variables of both iterations."""
    return [f"u vector {rows}", f"ut matrix 1x{rows}", "s scalar", "three_halves scalar 1.5",
            f"half scalar {0.5 / LENGTH**2!r}", f"shorten scalar {1 / LENGTH!r}"]
