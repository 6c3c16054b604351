"""What the host works out in NumPy before a run: scales, and after how many rounds an iteration has settled."""

from __future__ import annotations

import math

import numpy as np

from punchcard.errors import MatrixError
from punchcard.machines.fleq.isa import Array

SMALL = 1e-3
"""A residual below this shrinks quadratically until only rounding is left."""
SQUARINGS = 3
MOST_STEPS = 8
"""Steps in a round of power iteration, for matrices whose leading eigenvalue may be 0: 3/2 to the 8th is 26."""
UNMOVED = 1e-10
"""An iteration that moves the vector by less than this is the last; what is left is about as much over the gap."""
UNIT = 2.0**-53
SETTLED = 1e-14
"""A sweep that changes x by less than this, relatively, is the last."""


def safe_step(matrix: Array) -> float:
    """eps = 1 / (||A||_1 ||A||_inf), at most 1 / ||A||^2: Newton's iteration converges from eps A^T."""
    sums = np.abs(matrix)
    return 1.0 / float(sums.sum(axis=0).max() * sums.sum(axis=1).max())


def newton_rounds(matrix: Array, most: int) -> int | None:
    """After how many rounds Newton's iteration has settled: its residual I - X A is small and shrinks no more.

    None if it has not after `most`. X A and not A X, so that it holds for tall matrices of full rank, too.
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
    """After how many sweeps Gauss-Seidel has settled, or None if it has not after `most`."""
    lower, upper = np.tril(matrix), np.triu(matrix, 1)
    x: Array = np.zeros(len(matrix))
    for count in range(1, most + 1):
        new = np.asarray(np.linalg.solve(lower, right - upper @ x), dtype=np.float64)
        if np.abs(new - x).max() <= SETTLED * np.abs(new).max():
            return count
        x = new
    return None


def norm_bound(matrix: Array) -> float:
    """An upper bound of ||A||, at most 7 % too large for d = 8: the Frobenius norm of (A^T A)^8, to the power 1/16."""
    power = matrix.T @ matrix
    logarithm = 0.0
    for _ in range(SQUARINGS + 1):
        norm = float(np.linalg.norm(power))
        logarithm = 2 * logarithm + math.log(norm)
        power = (power / norm) @ (power / norm)
    return math.exp(logarithm / 2 ** (SQUARINGS + 1))


def least_leading(matrix: Array) -> float:
    """A lower bound of the leading eigenvalue's size.

    For a symmetric matrix it is ||A||, and the Frobenius norm is at most sqrt d times that. For others, the mean of the
    eigenvalues' powers is a trace over d.
    """
    d = len(matrix)
    if np.array_equal(matrix, matrix.T):
        return norm_bound(matrix) * math.pow(d, -1 / 2 ** (SQUARINGS + 2))
    return max(math.pow(abs(np.trace(np.linalg.matrix_power(matrix, k))) / d, 1 / k) for k in range(1, 9))


def steps_per_round(matrix: Array) -> int:
    """Steps of a normalisation that more than make up for what a multiplication by A takes from the vector's length."""
    least = max(least_leading(matrix), 1.25 * 1.5**-MOST_STEPS)
    return max(1, math.ceil(math.log(1.25 / least) / math.log(1.5)))


def power_rounds(matrix: Array, start: Array | None, most: int) -> int | None:
    """After how many iterations the vector no longer changes, but for its sign, or None if it still does after `most`."""
    b = np.ones(len(matrix)) if start is None else np.asarray(start, dtype=np.float64)
    b = b / np.linalg.norm(b)
    for count in range(1, most + 1):
        new = matrix @ b
        norm = float(np.linalg.norm(new))
        if norm == 0:
            return None
        new /= norm
        if min(np.abs(new - b).max(), np.abs(new + b).max()) <= UNMOVED:
            return count
        b = new
    return None
