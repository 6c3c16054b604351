"""min ||A x - b|| by Newton's iteration for the pseudo-inverse, x = A^+ b.

With Z = X^T in place of X the iteration is Z = Z (2 I - A^T Z) from Z = eps A: for a square matrix that of the inverse,
for a tall one of full rank it converges to the transpose of A^+. Of the two orders, X (2 I - A X) and (2 I - X A) X, only
the second is stable for a tall A: there X A becomes I, while A X is a projection, and what rounding puts outside its range
would double in every round.

It is written in Python, as `inverse` is: by hand it had 16 lines in place of 6.
"""

from __future__ import annotations

import numpy as np

from punchcard.machines.fleq.isa import Array


def pseudo_inverse(A: Array, E: Array, b: Array, rounds: int) -> tuple[Array, Array]:
    """x and Z after some rounds; E is eps I."""
    Z = A @ E
    for _ in range(rounds):
        Z = Z @ (2 * np.eye(A.shape[1]) - A.T @ Z)
    return b @ Z, Z
