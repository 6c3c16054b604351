"""Numerical linear algebra as functions of Python, and the FLEQ programs that they become.

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

from punchcard.linalg.rounds import safe_step, steps_per_round
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


def compiled(function: Callable[..., Any]) -> ArrayProgram:
    """A function as a program; `plain` runs it in NumPy."""
    return ArrayProgram(FunctionSource.of(function), function)


@compiled
def newton(A: Array, E: Array, rounds: int) -> Array:
    """The inverse by Newton's iteration, X = X (2 I - A X), from X = A^T E with E = eps I.

    It converges quadratically for every regular A and 0 < eps < 2 / ||A||^2. The paper prints X = eps A, which
    converges only where |1 - eps lambda^2| < 1 for every eigenvalue lambda.
    """
    X = A.T @ E
    for _ in range(rounds):
        X = X @ (2 * np.eye(len(A)) - A @ X)
    return X


@compiled
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


@compiled
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


@compiled
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


@compiled
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


@compiled
def unit(U: Array) -> Array:
    """The last step of a normalisation, to the norm 1, as a vector."""
    return (U @ (1.5 * SHORTEN - HALF * SHORTEN * (U.T @ U)))[:, 0]


@compiled
def gram_schmidt(A: Array, rounds: int) -> tuple[Array, Array]:
    """A = Q R: Q with orthonormal columns, R upper triangular, for columns no longer than 1."""
    Q = np.zeros(A.shape)
    for i in range(A.shape[1]):
        Q[:, i] = unit(orthogonal(Q, A[:, i][:, None], rounds))
    return Q, Q.T @ A


@compiled
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
    """The program of `gauss_seidel`."""
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
    """A first vector, as a matrix of one column with the norm at which vectors are held."""
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
