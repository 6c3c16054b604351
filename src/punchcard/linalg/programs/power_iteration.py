"""The leading eigenvector by power iteration, the paper's section 8.

The paper multiplies T times by A and normalises once, at the end: the vector grows like lambda^T, and Newton's
inverse square root converges from x = 1 only for S < 3. Here A is scaled so that ||A|| <= 1, and each multiplication is
followed by a few steps of `normalise`, which keep the vector's length between bounds for any number of iterations. The
paper's inverse square root at the end makes it 1.
"""

from __future__ import annotations

import math

import numpy as np

from punchcard.linalg.programs.normalise import LENGTH, declare, inverse_root_step, normalise
from punchcard.machines.fleq.builder import Builder
from punchcard.machines.fleq.counter import Counter
from punchcard.machines.fleq.dry_run import UNBOUNDED
from punchcard.machines.fleq.isa import Array, FleqProgram

ROOT_STEPS = 9
"""Steps of the inverse square root at the end: enough for a vector that is 6 times too short."""
SQUARINGS = 3
MOST_STEPS = 8
"""Steps in a round, for matrices whose leading eigenvalue may be 0: 3/2 to the 8th is 26."""
SETTLED = 1e-10
"""An iteration that moves the vector by less than this is the last; what is left is about as much over the gap."""


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
    """Steps of `normalise` that more than make up for what a multiplication by A takes from the vector's length."""
    least = max(least_leading(matrix), 1.25 * 1.5**-MOST_STEPS)
    return max(1, math.ceil(math.log(1.25 / least) / math.log(1.5)))


def power_program(matrix: Array, iterations: int, start: Array | None = None, limit: float = UNBOUNDED) -> FleqProgram:
    """`b` becomes the leading eigenvector, `eigenvalue` its Rayleigh quotient, for a matrix with ||A|| <= 1.

    `start` is where it begins, by default the paper's vector of ones; its length does not matter.
    """
    d = len(matrix)
    first = np.ones(d) if start is None else np.asarray(start, dtype=np.float64).reshape(d)
    p = Builder()
    a = p.matrix("A", matrix)
    declare(p, d, LENGTH * first / np.linalg.norm(first))
    x, _, b, ab = p.scalar("x", 1.0), p.scalar("y"), p.vector("b", d), p.vector("Ab", d)
    eigenvalue = p.scalar("eigenvalue")
    rounds, root = Counter(p, "t", iterations), Counter(p, "k", ROOT_STEPS)
    p.transpose(a, into=a)
    with rounds.repeat("loop"):
        p.mul(a, "u", into="u")  # A u, for A is stored transposed
        normalise(p, steps_per_round(matrix))
    p.mul("u", "u", into="s")
    p.mul("half", "s", into="s")  # half the square of the vector's length, in units of LENGTH
    with root.repeat("root"):
        inverse_root_step(p)
    p.mul(x, "shorten", into=x)
    p.transpose("u", into="ut")
    p.mul("ut", x, into=b)
    p.mul(a, b, into=ab)
    p.mul(b, ab, into=eigenvalue)
    return p.program(limit)


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
        if min(np.abs(new - b).max(), np.abs(new + b).max()) <= SETTLED:
            return count
        b = new
    return None
