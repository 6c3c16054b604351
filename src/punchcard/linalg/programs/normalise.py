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

from numpy.typing import ArrayLike

from punchcard.machines.fleq.builder import Builder

AT_ONCE = 3
"""Steps between two counts of a loop: a count costs nearly two instructions, a step five."""
LENGTH = math.sqrt(15 / 8)
"""The norm of u in the end."""


def declare(p: Builder, rows: int, start: ArrayLike | None = None) -> None:
    """The variables of both iterations. `half` is 1/2, measured by the square of the length that u gets."""
    p.vector("u", rows, start)
    p.matrix("ut", shape=(1, rows))
    p.scalar("s")
    p.scalar("three_halves", 1.5)
    p.scalar("half", 0.5 / LENGTH**2)
    p.scalar("shorten", 1 / LENGTH)


def normalise(p: Builder, steps: int) -> None:
    """Steps of the iteration on the vector `u`."""
    for _ in range(steps):
        p.mul("u", "u", into="s")
        p.mul("half", "s", into="s")
        p.sub("three_halves", "s", into="s")
        p.transpose("u", into="ut")
        p.mul("ut", "s", into="u")


def inverse_root_step(p: Builder) -> None:
    """One step of the iteration on the scalar `x`, for 1 / sqrt(2 s)."""
    p.mul("x", "x", into="y")
    p.mul("s", "y", into="y")
    p.sub("three_halves", "y", into="y")
    p.mul("x", "y", into="x")
