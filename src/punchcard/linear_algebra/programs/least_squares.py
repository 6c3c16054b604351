"""min ||A x - b|| by Newton's iteration for the pseudo-inverse, x = A^+ b.

With Z = X^T in place of X the iteration is Z = Z (2 I - A^T Z) from Z = eps A: for a square matrix that of the inverse,
for a tall one of full rank it converges to the transpose of A^+. Of the two orders, X (2 I - A X) and (2 I - X A) X, only
the second is stable for a tall A: there X A becomes I, while A X is a projection, and what rounding puts outside its range
would double in every round.
"""

from __future__ import annotations

import numpy as np

from punchcard.linear_algebra.programs.inverse import safe_step
from punchcard.machines.fleq.builder import Builder
from punchcard.machines.fleq.counter import Counter
from punchcard.machines.fleq.dry_run import UNBOUNDED
from punchcard.machines.fleq.isa import Array, FleqProgram


def least_squares_program(matrix: Array, right: Array, iterations: int, limit: float = UNBOUNDED) -> FleqProgram:
    """`x`, and `Z`, the transposed pseudo-inverse, for at least as many rows as columns; W becomes I."""
    rows, columns = matrix.shape
    p, eye = Builder(), np.eye(columns)
    a, z, xt = p.matrix("A", matrix), p.matrix("Z", shape=(rows, columns)), p.matrix("X", shape=(columns, rows))
    w, two = p.matrix("W", safe_step(matrix) * eye), p.matrix("P", 2 * eye)
    b, x = p.vector("b", rows, right), p.vector("x", columns)
    rounds = Counter(p, "t", iterations)
    p.transpose(a, into=xt)
    p.mul(xt, w, into=z)  # eps A
    with rounds.repeat("loop"):
        p.mul(a, z, into=w)  # A^T Z
        p.sub(two, w, into=w)
        p.transpose(z, into=xt)
        p.mul(xt, w, into=z)  # Z (2 I - A^T Z)
    p.mul(z, b, into=x)
    return p.program(limit)
