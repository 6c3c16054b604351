"""QR decomposition by Gram-Schmidt: A = Q R, Q with orthonormal columns, R upper triangular.

The paper names it and has no code. One instruction walks through the columns of A, another through those of Q.
"""

from __future__ import annotations

from punchcard.linear_algebra.programs.orthogonal import newton_counter, orthogonal_declarations, orthogonal_round
from punchcard.machines.fleq.common import COUNTING, Counter, program_of
from punchcard.machines.fleq.isa import Array, FleqProgram

RANGE = 2.0


def qr_program(matrix: Array, steps: int) -> FleqProgram:
    """`Q` and `R`, for a matrix with at least as many rows as columns and columns no longer than 1.

    `steps` of Newton's iteration normalise each column: a vector as short as 1.5^-n takes n and about 6 more.
    """
    rows, columns = matrix.shape
    each, newton = Counter("t", columns), newton_counter(steps)
    data = [f"A matrix {rows}x{columns}", f"zeros vector {rows}", *orthogonal_declarations(rows, columns),
            f"R matrix {columns}x{columns}"]
    code = [
        "load: u = add(A[0], zeros)   # the next column of A",
        "incr_pointer(load.a)",
        *orthogonal_round(newton),
        *each.again("load"),
        "R = mul(Q, A)                # Q^T A",
    ]
    return program_of([*data, *COUNTING, *each.data, *newton.data], code, {"A": matrix}, RANGE)
