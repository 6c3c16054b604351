"""Numerical linear algebra as functions of Python, the FLEQ programs that they become, and how many rounds they take.

The paper's section 8 has Newton's inverse and power iteration, which are corrected here, and names the others. All use
functions of a standard machine alone, so that one machine runs all: a number times a vector is written as a product of
matrices, and a vector as a matrix of one column.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from punchcard.errors import MatrixError
from punchcard.machines.fleq.isa import Array, FleqProgram
from punchcard.machines.fleq.oracle import MARGIN, range_above
from punchcard.python.arrays.program import ArrayProgram
from punchcard.python.source import FunctionSource

LENGTH = math.sqrt(15 / 8)
"""The norm of vectors in loops: errors of a product are relative to the range, 2, so a vector is better large."""
HALF = 0.5 / LENGTH**2
"""1/2, measured by the square of that norm."""
SHORTEN = 1 / LENGTH
AT_ONCE = 3
"""Steps of a normalisation between two counts of its loop: a count costs nearly two instructions, a step five."""
ROOT_STEPS = 9
"""Steps of the inverse square root at the end of power iteration: enough for a vector that is 6 times too short."""
LEAST_RANGE = 2.0
"""Loops count from -2 to 1."""
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


def compile_algorithm(function: Callable[..., Any]) -> ArrayProgram:
    """A function as a program; `plain` runs it in NumPy."""
    return ArrayProgram(FunctionSource.of(function), function)


@compile_algorithm
def newton(A: Array, E: Array, rounds: int) -> Array:
    """The inverse by Newton's iteration, X = X (2 I - A X), from X = A^T E with E = eps I.

    It converges quadratically for every regular A and 0 < eps < 2 / ||A||^2. The paper prints X = eps A, which
    converges only where |1 - eps lambda^2| < 1 for every eigenvalue lambda.
    """
    X = A.T @ E
    for _ in range(rounds):
        X = X @ (2 * np.eye(len(A)) - A @ X)
    return X


@compile_algorithm
def pseudo_inverse(A: Array, E: Array, b: Array, rounds: int) -> tuple[Array, Array]:
    """x = A^+ b, which minimises ||A x - b||, and Z, the transpose of A^+, from Z = A E with E = eps I.

    With Z = X^T the iteration is Z = Z (2 I - A^T Z): for a square matrix that of the inverse. Of the two orders, X (2
    I - A X) and (2 I - X A) X, only the second is stable for a tall A: there X A becomes I, while A X is a projection,
    and what rounding puts outside its range would double in every round.
    """
    Z = A @ E
    for _ in range(rounds):
        Z = Z @ (2 * np.eye(A.shape[1]) - A.T @ Z)
    return b @ Z, Z


@compile_algorithm
def gauss_seidel(A: Array, V: Array, b: Array, sweeps: int, steps: int, order: tuple[int, ...]) -> Array:
    """A x = b: each unknown in turn is chosen so that its equation holds, x_i = (b_i - sum of the other a_ij x_j) / a_ii.

    The divisions are made beforehand and all at once: D^-1, the reciprocals of the diagonal, is by Newton's iteration,
    V = V (2 I - D V) from V = eps D. Both are diagonal, so transposes, which are written where they save an
    instruction, change nothing. Column i of N = A^T D^-1 - I has what equation i takes from the other unknowns. `order`
    names the unknowns.
    """
    D, x = np.zeros(A.shape), np.zeros(len(A))
    for i in order:
        D[:, i] = A[:, i] * np.eye(len(A))[:, i]
    V = D.T @ V
    for _ in range(steps):
        V = V.T @ (2 * np.eye(len(A)) - D.T @ V)
    N, c = A.T @ V - np.eye(len(A)), b @ V
    for _ in range(sweeps):
        for i in order:
            x[i] = c[i] - N[:, i] @ x
    return x


@compile_algorithm
def power(A: Array, U: Array, rounds: int, steps: int) -> tuple[Array, Array]:
    """The leading eigenvector from U, a column, and its Rayleigh quotient, for ||A|| <= 1.

    The paper multiplies by A and normalises once, at the end: the vector grows like lambda^T, and Newton's inverse
    square root, x = x (3/2 - S x^2 / 2) from x = 1, converges only for S < 3. Here a few steps follow each
    multiplication that apply the factors to the vector at once, which is the same iteration with U in place of U x: a
    step grows a short vector by 3/2, and near the end it converges quadratically. The paper's inverse square root at
    the end makes the length 1.
    """
    for _ in range(rounds):
        U = A @ U
        for _ in (1,) * steps:
            U = U @ (1.5 - HALF * (U.T @ U))
    S, x = HALF * (U.T @ U), np.ones((1, 1))
    for _ in range(ROOT_STEPS):
        x = x @ (1.5 - S @ (x @ x))
    b = U @ (SHORTEN * x)
    return b, b.T @ (A @ b)


@compile_algorithm
def orthogonal(Q: Array, U: Array, rounds: int) -> Array:
    """U, freed of its components along the columns of Q and normalised, and both again but for the last step, `unit`.

    A vector that nearly depends on the others is short after the first time, so that the error of a product is large
    beside it. Columns of Q that are not there yet are 0 and change nothing.
    """
    U = U - Q @ (Q.T @ U)
    for _ in range(rounds):
        for _ in (1,) * AT_ONCE:
            U = U @ (1.5 - HALF * (U.T @ U))
    U = U - Q @ (Q.T @ U)
    for _ in (1,) * (AT_ONCE - 1):
        U = U @ (1.5 - HALF * (U.T @ U))
    return U


@compile_algorithm
def unit(U: Array) -> Array:
    """The last step of a normalisation, to the norm 1, as a vector."""
    return (U @ (1.5 * SHORTEN - HALF * SHORTEN * (U.T @ U)))[:, 0]


@compile_algorithm
def gram_schmidt(A: Array, rounds: int) -> tuple[Array, Array]:
    """A = Q R: Q with orthonormal columns, R upper triangular, for columns no longer than 1."""
    Q = np.zeros(A.shape)
    for i in range(A.shape[1]):
        Q[:, i] = unit(orthogonal(Q, A[:, i][:, None], rounds))
    return Q, Q.T @ A


@compile_algorithm
def krylov(A: Array, U: Array, dimension: int, rounds: int) -> tuple[Array, Array]:
    """An orthonormal basis Q of span(U, A U, A^2 U, ...), and A restricted to it, H = Q^T A Q, for ||A|| <= 1.

    Arnoldi's iteration makes each A q orthogonal to all earlier columns; H is upper Hessenberg. Lanczos' is for
    symmetric matrices, where all but the last two components vanish by themselves: H is tridiagonal. Here Lanczos too
    frees the vector of all of them, as one does against the well known loss of orthogonality, so both are one program.
    """
    Q = np.zeros((len(A), dimension))
    for i in range(dimension):
        U = orthogonal(Q, U, rounds)
        Q[:, i] = unit(U)
        U = A @ U  # the next vector is A q, up to its length
    return Q, Q.T @ (A @ Q)


def first_step(matrix: Array) -> Array:
    """eps I, where Newton's iterations begin."""
    return safe_step(matrix) * np.eye(matrix.shape[1])


def inverse_program(matrix: Array, iterations: int) -> FleqProgram:
    """The program of `newton`."""
    return _fitting(newton, matrix, first_step(matrix), iterations)


def least_squares_program(matrix: Array, right: Array, iterations: int) -> FleqProgram:
    """The program of `pseudo_inverse`, for at least as many rows as columns."""
    return _fitting(pseudo_inverse, matrix, first_step(matrix), right, iterations)


def gauss_seidel_start(matrix: Array, right: Array, sweeps: int, steps: int) -> tuple[Any, ...]:
    """The arguments of `gauss_seidel`."""
    d, largest = len(matrix), float(np.abs(np.diag(matrix)).max())
    return matrix, np.eye(d) / largest**2, right, sweeps, steps, tuple(range(d))


def gauss_seidel_program(matrix: Array, right: Array, sweeps: int, steps: int) -> FleqProgram:
    return _fitting(gauss_seidel, *gauss_seidel_start(matrix, right, sweeps, steps))


def power_program(matrix: Array, iterations: int, start: ArrayLike | None = None) -> FleqProgram:
    """The program of `power`, from ones by default; the length of the start does not matter."""
    return _fitting(power, matrix, _column(matrix, start), iterations, steps_per_round(matrix))


def qr_program(matrix: Array, steps: int) -> FleqProgram:
    """The program of `gram_schmidt`. `steps` normalise each column: one as short as 1.5^-n takes n and about 6 more."""
    return _fitting(gram_schmidt, matrix, math.ceil(steps / AT_ONCE))


def arnoldi_program(matrix: Array, dimension: int, steps: int, start: ArrayLike | None = None) -> FleqProgram:
    """The program of `krylov`, from ones by default; the length of the start does not matter."""
    return _fitting(krylov, matrix, _column(matrix, start), dimension, math.ceil(steps / AT_ONCE))


def _column(matrix: Array, start: ArrayLike | None) -> Array:
    """A first vector, as a matrix of one column with the norm that all vectors have."""
    first = np.ones((len(matrix), 1)) if start is None else np.reshape(np.asarray(start, dtype=np.float64), (-1, 1))
    return np.asarray(LENGTH * first / np.linalg.norm(first))


def _fitting(function: ArrayProgram, *given: Any) -> FleqProgram:
    """The program of a function for these arguments, with the least range that holds its values.

    Errors of the machine are relative to the range, so it should be small. What is computed may be a little larger on
    the machine.
    """
    there = max(LEAST_RANGE, *(float(np.abs(each).max()) for each in given if isinstance(each, np.ndarray)))
    largest = function.largest(*given)
    limit = range_above(largest * (1 + MARGIN) if largest > there else there)
    return function.with_options(range=limit).program_with_lines(*given)


# What the host works out in NumPy before a run: scales, and after how many rounds an iteration has settled


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
