"""min ||A x - b|| by Newton's iteration for the pseudo-inverse, x = A^+ b.

With Z = X^T in place of X the iteration is Z = Z (2 I - A^T Z) from Z = eps A: for a square matrix that of the inverse,
for a tall one of full rank it converges to the transpose of A^+. Of the two orders, X (2 I - A X) and (2 I - X A) X, only
the second is stable for a tall A: there X A becomes I, while A X is a projection, and what rounding puts outside its range
would double in every round.
"""

from __future__ import annotations

import numpy as np

from punchcard.linear_algebra.programs.inverse import safe_step
from punchcard.machines.fleq.common import COUNTING, UNBOUNDED, Counter, program_of
from punchcard.machines.fleq.isa import Array, FleqProgram


def least_squares_program(matrix: Array, right: Array, iterations: int, limit: float = UNBOUNDED) -> FleqProgram:
    """`x`, and `Z`, the transposed pseudo-inverse, for at least as many rows as columns; W becomes I."""
    rows, columns = matrix.shape
    rounds = Counter("t", iterations)
    data = [f"A matrix {rows}x{columns}", f"Z matrix {rows}x{columns}", f"X matrix {columns}x{rows}",
            f"W matrix {columns}x{columns}", f"P matrix {columns}x{columns}", f"b vector {rows}", f"x vector {columns}"]
    code = [
        "X = transpose(A)",
        "Z = mul(X, W)                # eps A",
        "loop: W = mul(A, Z)          # A^T Z",
        "W = sub(P, W)",
        "X = transpose(Z)",
        "Z = mul(X, W)                # Z (2 I - A^T Z)",
        *rounds.again("loop"),
        "x = mul(Z, b)",
    ]
    eye = np.eye(columns)
    values = {"A": matrix, "b": right, "W": safe_step(matrix) * eye, "P": 2 * eye}
    return program_of([*data, *COUNTING, *rounds.data], code, values, limit)
