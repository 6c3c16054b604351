"""Gram-Schmidt as a loop over columns: what QR decomposition and the Krylov methods share.

A new vector u is freed of its components along the columns of Q and normalised, and both again: a vector that nearly
depends on the others is short after the first time, so that the error of the product is large beside it. Then it is
stored as the next column. Columns of Q that are not there yet are 0 and change nothing, so every round is the same; only
the pointer of the instruction `store` moves on.
"""

from __future__ import annotations

import math

from punchcard.linear_algebra.programs.normalise import AT_ONCE, STEP, declarations
from punchcard.machines.fleq.common import Counter


def orthogonal_declarations(rows: int, columns: int) -> list[str]:
    """Q and what a round needs."""
    return [f"Q matrix {rows}x{columns}", f"Qt matrix {columns}x{rows}", f"r vector {columns}", f"p vector {rows}",
            *declarations(rows)]


def newton_counter(steps: int) -> Counter:
    """Counts the steps of `normalise`, three at once; their number is rounded up."""
    return Counter("k", math.ceil(steps / AT_ONCE))


def orthogonal_round(newton: Counter) -> list[str]:
    """u, made orthogonal to Q and normalised, becomes the next column of Q."""
    project = ["r = mul(Q, u)", "p = mul(Qt, r)", "u = sub(u, p)"]
    return [
        "Qt = transpose(Q)",
        *project, "normalise:", *STEP * AT_ONCE, *newton.again("normalise"), *newton.restart(),
        *project, *STEP * AT_ONCE,
        "ut = transpose(u)",
        "store: Q[0] = mul(ut, shorten)",
        "incr_pointer(store.c)",
    ]
