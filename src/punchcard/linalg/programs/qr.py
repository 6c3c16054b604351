"""QR decomposition by Gram-Schmidt: A = Q R, Q with orthonormal columns, R upper triangular.

The paper names it and has no code. One instruction walks through the columns of A, another through those of Q.
"""

from __future__ import annotations

from punchcard.linalg.programs.orthogonal import declare, newton_counter, orthogonal_round
from punchcard.machines.fleq.builder import Builder
from punchcard.machines.fleq.counter import Counter
from punchcard.machines.fleq.isa import Array, FleqProgram

RANGE = 2.0


def qr_program(matrix: Array, steps: int) -> FleqProgram:
    """`Q` and `R`, for a matrix with at least as many rows as columns and columns no longer than 1.

    `steps` of Newton's iteration normalise each column: a vector as short as 1.5^-n takes n and about 6 more.
    """
    rows, columns = matrix.shape
    p = Builder()
    a, zeros = p.matrix("A", matrix), p.vector("zeros", rows)
    declare(p, rows, columns)
    r = p.matrix("R", shape=(columns, columns))
    each, newton = Counter(p, "t", columns), newton_counter(p, steps)
    with each.repeat("load"):
        p.add(a[0], zeros, into="u")  # the next column of A
        p.incr_pointer("load", "a")
        orthogonal_round(p, newton)
    p.mul("Q", a, into=r)  # Q^T A
    return p.program(RANGE)
