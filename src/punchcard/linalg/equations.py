"""Inverses and equations: Newton's iteration, Gauss-Seidel, least squares."""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from punchcard.arguments import checked
from punchcard.errors import MatrixError, SingularMatrixError
from punchcard.linalg import algorithms
from punchcard.linalg.execution import (
    AlgebraOptions,
    Computed,
    Execution,
    as_matrix,
    as_vector,
    at_least_one,
    distance,
    execute,
    power_of_two,
    require_convergence,
)
from punchcard.machines.fleq.isa import Array

MOST_ROUNDS = 100
"""Newton's iteration takes about 2 log2 of the condition: so many are for conditions beyond float64."""
MOST_SWEEPS = 1000


@checked
def inverse(matrix: ArrayLike, iterations: int | None = None, **options: Unpack[AlgebraOptions]) -> Computed:
    """The inverse X of a square matrix A, by Newton's iteration.

    iterations   default: as many as the same iteration needs in NumPy to converge
    options      see `punchcard.linalg`

    Returns a `Computed`; its residual is the largest entry of I - A X. The matrix is first scaled by a power of two, to keep
    the values of the program in a small range.
    """
    a = as_matrix(matrix, "inverse", square=True)
    at_least_one(iterations, "inverse", "iterations")
    rounds = _rounds(a, iterations, "inverse")
    scale = _balance(a, algorithms.newton.plain(a, algorithms.first_step(a), rounds))
    done = execute(algorithms.inverse_program(scale * a, rounds), condition=float(np.linalg.cond(a)), **options)
    value = scale * done.returned()
    residual = float(np.abs(np.eye(len(a)) - a @ value).max())
    found = Computed(value, distance(value, np.linalg.inv(a)), done.machine_error, residual, done)
    return require_convergence(found, "inverse", asked=iterations)


@checked
def least_squares(
    matrix: ArrayLike, right: ArrayLike, iterations: int | None = None, **options: Unpack[AlgebraOptions]
) -> Computed:
    """The x that minimises ||A x - b||, by Newton's iteration for the pseudo-inverse A^+.

    matrix       A, with full rank and at least as many rows as columns
    right        b, a vector
    iterations   default: as many as the same iteration needs in NumPy to converge
    options      see `punchcard.linalg`

    Returns a `Computed`; its residual is the largest entry of I - A^+ A.
    """
    a = as_matrix(matrix, "least_squares")
    b = as_vector(right, len(a), "least_squares", "the right side")
    at_least_one(iterations, "least_squares", "iterations")
    done, value, pseudo_inverse = _by_newton(a, b, iterations, "least_squares", options)
    residual = float(np.abs(np.eye(a.shape[1]) - pseudo_inverse @ a).max())
    true = np.linalg.lstsq(a, b, rcond=None)[0]
    found = Computed(value, distance(value, true), done.machine_error, residual, done)
    return require_convergence(found, "least_squares", asked=iterations)


@checked
def solve(
    matrix: ArrayLike, right: ArrayLike, sweeps: int | None = None, **options: Unpack[AlgebraOptions]
) -> Computed:
    """The solution x of A x = b.

    Gauss-Seidel iteration is used if A is strictly diagonally dominant by rows, or symmetric and positive definite.
    Otherwise Newton's iteration for the inverse is used.

    matrix    A, a square matrix;  right   b, a vector
    sweeps    sweeps of Gauss-Seidel, default: as many as the same iteration needs in NumPy to converge. Raises `MatrixError`
              if it is given and Gauss-Seidel cannot be used
    options   see `punchcard.linalg`

    Returns a `Computed`; its residual is the largest entry of A x - b, divided by the largest entry of b.
    """
    a = as_matrix(matrix, "solve", square=True)
    b = as_vector(right, len(a), "solve", "the right side")
    at_least_one(sweeps, "solve", "sweeps")
    why_not = _why_not_gauss_seidel(a)
    if why_not and sweeps is not None:
        raise MatrixError(f"solve: sweeps={sweeps}: {why_not}; without sweeps, Newton's iteration is taken")
    needed = None if why_not else sweeps or algorithms.sweeps_needed(a, b, MOST_SWEEPS)
    if needed is None:
        done, value, _ = _by_newton(a, b, None, "solve", options)
    else:
        done, value = _by_gauss_seidel(a, b, needed, options)
    computed = Computed(value, distance(value, np.linalg.solve(a, b)), done.machine_error, distance(a @ value, b), done)
    return require_convergence(computed, "solve", asked=sweeps)


def _by_gauss_seidel(a: Array, b: Array, sweeps: int, options: AlgebraOptions) -> tuple[Execution, Array]:
    """A run of some sweeps, and x."""
    diagonal = np.abs(np.diag(a))
    scale = 1 / power_of_two(math.sqrt(diagonal.max() * diagonal.min()))
    reciprocals = algorithms.reciprocal_rounds(scale * a)
    x = algorithms.gauss_seidel.plain(*algorithms.gauss_seidel_start(scale * a, b, sweeps, reciprocals))
    shrink = 1 / power_of_two(max(float(np.abs(each).max()) for each in (b, b / np.diag(scale * a), x)))
    program = algorithms.gauss_seidel_program(scale * a, shrink * b, sweeps, reciprocals)
    done = execute(program, condition=float(np.linalg.cond(a)), **options)
    return done, done.returned() * (scale / shrink)


def _by_newton(
    a: Array, b: Array, iterations: int | None, call: str, options: AlgebraOptions
) -> tuple[Execution, Array, Array]:
    """A run of Newton's iteration for the pseudo-inverse, x, and the pseudo-inverse itself."""
    rounds = _rounds(a, iterations, call)
    x, z = algorithms.pseudo_inverse.plain(a, algorithms.first_step(a), b, rounds)
    scale = _balance(a, z)
    shrink = scale / power_of_two(max(float(np.abs(x).max()), scale * float(np.abs(b).max())))
    program = algorithms.least_squares_program(scale * a, shrink * b, rounds)
    done = execute(program, condition=float(np.linalg.cond(a)), **options)
    return done, done.returned() * (scale / shrink), scale * done.returned(1).T


def _rounds(a: Array, iterations: int | None, call: str) -> int:
    """The rounds that are asked for, or as many as are needed."""
    if np.linalg.matrix_rank(a) < a.shape[1]:
        raise SingularMatrixError(f"{call}: {_singular(a)}")
    rounds = iterations or algorithms.newton_rounds(a, MOST_ROUNDS)
    if rounds is None:
        raise SingularMatrixError(f"{call}: Newton's iteration does not settle in {MOST_ROUNDS} rounds: {_singular(a)}")
    return rounds


def _balance(a: Array, x: Array) -> float:
    """The power of two s for which s A and X / s have the least range; then X / s as large as it goes.

    The range is 2 or more in any case, for 2 I is among the constants.
    """
    largest_a, largest_x = float(np.abs(a).max()), float(np.abs(x).max())
    exponents = range(math.floor(math.log2(largest_x)) - 60, math.ceil(math.log2(largest_x)) + 60)
    return min((2.0**k for k in exponents),
               key=lambda s: (math.ceil(math.log2(max(2.0, s * largest_a, largest_x / s))), s))


def _singular(a: Array) -> str:
    what = "the matrix is singular" if a.shape[0] == a.shape[1] else "the columns depend on each other"
    return f"{what}, or too near to it (condition {np.linalg.cond(a):.1e})"


def _why_not_gauss_seidel(a: Array) -> str:
    """Gauss-Seidel converges for two kinds of matrices; why a matrix is of neither, or nothing."""
    diagonal = np.abs(np.diag(a))
    others = np.abs(a).sum(axis=1) - diagonal
    if bool(np.all(diagonal > others)):
        return ""
    if np.array_equal(a, a.T) and bool(np.all(np.linalg.eigvalsh(a) > 0)):
        return ""
    row = int(np.argmin(diagonal - others))
    return (f"Gauss-Seidel needs a matrix that is strictly diagonally dominant by rows, or symmetric and positive definite; "
            f"in row {row} the diagonal is {diagonal[row]:g} and the others sum to {others[row]:g}")
