"""The inverse of a matrix by Newton's iteration, X = X (2 I - A X), the paper's section 8.

It converges quadratically from X = eps A^T for every regular A and 0 < eps < 2 / ||A||^2. The paper prints
X = eps A, which converges only where |1 - eps lambda^2| < 1 for every eigenvalue lambda.

It is written in Python, and becomes a program in `linear_algebra/newton.py`. By hand, with the `Builder`, it had 13 lines
in place of 5, and at d = 4 about 7 loops of 90 more, and 27 columns of memory in place of 21.
"""

from __future__ import annotations

import numpy as np

from punchcard.machines.fleq.isa import Array

SMALL = 1e-3
"""A residual below this shrinks quadratically until only rounding is left."""


def safe_step(matrix: Array) -> float:
    """eps = 1 / (||A||_1 ||A||_inf), at most 1 / ||A||^2: Newton's iteration converges from eps A^T."""
    sums = np.abs(matrix)
    return 1.0 / float(sums.sum(axis=0).max() * sums.sum(axis=1).max())


def newton(A: Array, E: Array, rounds: int) -> Array:
    """X after some rounds. E is eps I: a product with it needs no function beyond those of a standard machine."""
    X = A.T @ E
    for _ in range(rounds):
        X = X @ (2 * np.eye(len(A)) - A @ X)
    return X


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
