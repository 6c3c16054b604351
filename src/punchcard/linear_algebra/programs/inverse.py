"""The inverse of a matrix by Newton's iteration, X = X (2 I - A X), the paper's section 8.

It converges quadratically from X = eps A^T for every regular A and 0 < eps < 2 / ||A||^2. The paper prints
X = eps A, which converges only where |1 - eps lambda^2| < 1 for every eigenvalue lambda.
"""

from __future__ import annotations

import numpy as np

from punchcard.machines.fleq.builder import Builder
from punchcard.machines.fleq.counter import Counter
from punchcard.machines.fleq.dry_run import UNBOUNDED
from punchcard.machines.fleq.isa import Array, FleqProgram

SMALL = 1e-3
"""A residual below this shrinks quadratically until only rounding is left."""


def safe_step(matrix: Array) -> float:
    """eps = 1 / (||A||_1 ||A||_inf), at most 1 / ||A||^2: Newton's iteration converges from eps A^T."""
    sums = np.abs(matrix)
    return 1.0 / float(sums.sum(axis=0).max() * sums.sum(axis=1).max())


def inverse_program(matrix: Array, iterations: int, limit: float = UNBOUNDED) -> FleqProgram:
    """`X` becomes the inverse of a square matrix. `A` is replaced by its transpose, as in the paper."""
    p, eye = Builder(), np.eye(len(matrix))
    a, x, two = p.matrix("A", matrix), p.matrix("X", safe_step(matrix) * eye), p.matrix("P", 2 * eye)
    xt, y = p.matrix("Xt", shape=matrix.shape), p.matrix("Y", shape=matrix.shape)
    rounds = Counter(p, "t", iterations)
    p.mul(a, x, into=x)  # eps A^T
    p.transpose(a, into=a)
    with rounds.repeat("loop"):
        p.mul(a, x, into=y)  # A X, for A stands there transposed
        p.sub(two, y, into=y)
        p.transpose(x, into=xt)
        p.mul(xt, y, into=x)  # X (2 I - A X)
    return p.program(limit)


def newton_rounds(matrix: Array, most: int) -> int | None:
    """After how many rounds the plain iteration has settled: its residual I - X A is small and shrinks no more.

    None when it has not after `most`. X A and not A X, so that it holds for tall matrices of full rank, too.
    """
    x = safe_step(matrix) * matrix.T
    eye, last = np.eye(len(x)), np.inf
    for count in range(1, most + 1):
        x = (2 * eye - x @ matrix) @ x
        residual = float(np.abs(eye - x @ matrix).max())
        if residual < SMALL and residual >= last / 2:
            return count
        last = residual
    return None
