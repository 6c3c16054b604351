"""A x = b by Gauss-Seidel iteration: each unknown in turn is chosen so that its own equation holds.

    x_i = (b_i - sum over j != i of a_ij x_j) / a_ii

The paper names it and has no code. The divisions are made beforehand and all at once: 1 / a_ii is by Newton's iteration on
the diagonal of A. Then N = A^T D^-1 - I has in column i what equation i takes from the other unknowns, and c = b^T D^-1 what
is left; the unknowns are in a row, so that each is a column, which an instruction can write.
"""

from __future__ import annotations

import numpy as np

from punchcard.errors import MatrixError
from punchcard.machines.fleq.builder import Builder
from punchcard.machines.fleq.counter import Counter
from punchcard.machines.fleq.dry_run import UNBOUNDED
from punchcard.machines.fleq.isa import Array, FleqProgram

UNIT = 2.0**-53
SETTLED = 1e-14
"""A sweep that changes x by less than this, relatively, is the last."""


def gauss_seidel_program(
    matrix: Array, right: Array, sweeps: int, reciprocal_steps: int, limit: float = UNBOUNDED
) -> FleqProgram:
    """`x` after some sweeps from 0, with the reciprocals of the diagonal after some steps of Newton's iteration."""
    d, largest = len(matrix), float(np.abs(np.diag(matrix)).max())
    p, identity = Builder(), np.eye(d)
    a, eye, two = p.matrix("A", matrix), p.matrix("I", identity), p.matrix("P", 2 * identity)
    diagonal, v, y = p.matrix("D", shape=(d, d)), p.matrix("V", identity / largest**2), p.matrix("Y", shape=(d, d))
    b, c, xt = p.vector("b", d, right), p.matrix("c", shape=(1, d)), p.matrix("xt", shape=(1, d))
    x, s = p.vector("x", d), p.scalar("s")
    newton, each = Counter(p, "k", reciprocal_steps), Counter(p, "t", sweeps)
    for i in range(d):
        p.hadamard(a[i], eye[i], into=diagonal[i])
    p.mul(diagonal, v, into=v)  # eps D
    with newton.repeat("reciprocal"):
        p.mul(diagonal, v, into=y)
        p.sub(two, y, into=y)
        p.mul(v, y, into=v)  # V (2 I - D V): all of them diagonal, so no transposes
    p.mul(a, v, into=y)  # A^T D^-1
    p.sub(y, eye, into=y)
    p.mul(b, v, into=c)
    with each.repeat("sweep"):
        for i in range(d):
            p.transpose(xt, into=x)
            p.mul(y[i], x, into=s)
            p.sub(c[i], s, into=xt[i])
    p.transpose(xt, into=x)
    return p.program(limit)


def reciprocal_rounds(matrix: Array) -> int:
    """Rounds of Newton's iteration for the reciprocals of the diagonal: e = (1 - d^2 / D^2)^(2^k) below rounding.

    d is the least and D the largest of the diagonal, by size, for the iteration starts from x = d / D^2.
    """
    diagonal = np.abs(np.diag(matrix))
    rest, count = 1 - float(diagonal.min() / diagonal.max()) ** 2, 0
    if rest == 1.0:
        raise MatrixError(f"the diagonal goes from {diagonal.min():g} to {diagonal.max():g}: its reciprocals are beyond the "
                          "number format, scale the rows")
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
