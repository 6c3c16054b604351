"""A x = b by Gauss-Seidel iteration: each unknown in turn is chosen so that its own equation holds.

    x_i = (b_i - sum over j != i of a_ij x_j) / a_ii

The paper names it and has no code. The divisions are made beforehand and all at once: 1 / a_ii is by Newton's iteration on
the diagonal of A. Then N = A^T D^-1 - I has in column i what equation i takes from the other unknowns, and c = b^T D^-1 what
is left; the unknowns stand in a row, so that each is a column, which an instruction can write.
"""

from __future__ import annotations

import numpy as np

from punchcard.machines.fleq.common import COUNTING, UNBOUNDED, Counter, program_of
from punchcard.machines.fleq.isa import Array, FleqProgram

UNIT = 2.0**-53
SETTLED = 1e-14
"""A sweep that changes x by less than this, relatively, is the last."""


def gauss_seidel_program(
    matrix: Array, right: Array, sweeps: int, reciprocal_steps: int, limit: float = UNBOUNDED
) -> FleqProgram:
    """`x` after some sweeps from 0, with the reciprocals of the diagonal after some steps of Newton's iteration."""
    d = len(matrix)
    newton, each = Counter("k", reciprocal_steps), Counter("t", sweeps)
    largest = float(np.abs(np.diag(matrix)).max())
    data = [*(f"{name} matrix {d}x{d}" for name in ("A", "I", "P", "D", "V", "Y")), f"b vector {d}",
            f"c matrix 1x{d}", f"xt matrix 1x{d}", f"x vector {d}", "s scalar"]
    code = [
        *(f"D[{i}] = hadamard(A[{i}], I[{i}])" for i in range(d)),
        "V = mul(D, V)                # eps D",
        "reciprocal: Y = mul(D, V)",
        "Y = sub(P, Y)",
        "V = mul(V, Y)                # V (2 I - D V): all of them diagonal, so no transposes",
        *newton.again("reciprocal"),
        "Y = mul(A, V)                # A^T D^-1",
        "Y = sub(Y, I)",
        "c = mul(b, V)",
        "sweep:",
    ]
    for i in range(d):
        code += ["x = transpose(xt)", f"s = mul(Y[{i}], x)", f"xt[{i}] = sub(c[{i}], s)"]
    code += [*each.again("sweep"), "x = transpose(xt)"]
    values = {"A": matrix, "b": right, "I": np.eye(d), "P": 2 * np.eye(d), "V": np.eye(d) / largest**2}
    return program_of([*data, *COUNTING, *newton.data, *each.data], code, values, limit)


def reciprocal_rounds(matrix: Array) -> int:
    """Rounds of Newton's iteration for the reciprocals of the diagonal: e = (1 - d^2 / D^2)^(2^k) below rounding.

    d is the least and D the largest of the diagonal, by size, for the iteration starts from x = d / D^2.
    """
    diagonal = np.abs(np.diag(matrix))
    rest, count = 1 - float(diagonal.min() / diagonal.max()) ** 2, 0
    while rest > UNIT:
        rest, count = rest**2, count + 1
    return max(1, count)


def sweeps_needed(matrix: Array, right: Array, most: int) -> int | None:
    """After how many sweeps the plain iteration has settled; None when it has not after `most`."""
    lower, upper = np.tril(matrix), np.triu(matrix, 1)
    x: Array = np.zeros(len(matrix))
    for count in range(1, most + 1):
        new = np.asarray(np.linalg.solve(lower, right - upper @ x), dtype=np.float64)
        if np.abs(new - x).max() <= SETTLED * np.abs(new).max():
            return count
        x = new
    return None
