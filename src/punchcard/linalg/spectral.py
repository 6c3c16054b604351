"""Eigenvectors and orthonormal bases: power iteration, QR decomposition, Arnoldi, Lanczos."""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from punchcard.arguments import checked
from punchcard.errors import ConvergenceError, MatrixError, PunchcardError, SingularMatrixError
from punchcard.linalg.algorithms import arnoldi_program, norm_bound, power_program, power_rounds, qr_program
from punchcard.linalg.execution import (
    AlgebraOptions,
    Execution,
    Krylov,
    LeadingEigenpair,
    QRDecomposition,
    as_matrix,
    as_vector,
    at_least_one,
    distance,
    execute,
    require_convergence,
)
from punchcard.machines.fleq.isa import Array

MOST_ITERATIONS = 2000
NORMALISING = 18
"""Steps that normalise a column: enough for one that Gram-Schmidt leaves 0.01 of its length."""
UNIT_TOLERANCE = 1e-3
"""A column whose norm is further from 1 was not normalised: it was nothing but rounding, or needs more steps."""
_LOST = "start has nearly no part along the leading eigenvector, or the leading eigenvalue is far below ||A||"


@checked
def power_iteration(
    matrix: ArrayLike, iterations: int | None = None, start: ArrayLike | None = None, **options: Unpack[AlgebraOptions]
) -> LeadingEigenpair:
    """The eigenvalue of largest absolute value, and its eigenvector b, by power iteration.

    matrix       A, a square matrix
    iterations   default: as many as the same iteration needs in NumPy until the vector no longer changes
    start        the first vector, default: ones
    options      see `punchcard.linalg`

    Returns a `LeadingEigenpair`; its residual is the largest entry of A b - eigenvalue b, divided by the eigenvalue.
    """
    a = as_matrix(matrix, "power_iteration", square=True)
    at_least_one(iterations, "power_iteration", "iterations")
    first = None if start is None else as_vector(start, len(a), "power_iteration", "start")
    scale = norm_bound(a)
    rounds = iterations or power_rounds(a / scale, first, MOST_ITERATIONS)
    if rounds is None:
        raise ConvergenceError(f"power_iteration: not settled after {MOST_ITERATIONS} iterations: the two largest "
                               f"eigenvalues are {_largest_two(a)} in size; or start has no part along the first")
    done = execute(power_program(a / scale, rounds, first), **options)
    value, eigenvalue = done.returned()[:, 0], scale * done.returned(1).item()
    _check_norms(done, "b", "power_iteration", _LOST)
    residual = float(np.abs(a @ value - eigenvalue * value).max() / abs(eigenvalue))
    found = LeadingEigenpair(value, _from_leading_space(a, value), done.machine_error, residual, done, eigenvalue)
    return require_convergence(found, "power_iteration", asked=iterations)


@checked
def qr(matrix: ArrayLike, steps: int = NORMALISING, **options: Unpack[AlgebraOptions]) -> QRDecomposition:
    """The QR decomposition A = Q R, by the Gram-Schmidt process. The diagonal of R is positive.

    matrix    A, with at least as many rows as columns
    steps     Newton steps that normalise each column, default: 18
    options   see `punchcard.linalg`

    Returns a `QRDecomposition`; its residual is the largest entry of I - Q^T Q. Its error compares Q with LAPACK's Q, whose
    signs are changed so that the diagonal of R is positive.
    """
    a = as_matrix(matrix, "qr")
    at_least_one(steps, "qr", "steps")
    scale = 2.0 ** -math.ceil(math.log2(float(np.linalg.norm(a, axis=0).max())))
    done = execute(qr_program(scale * a, steps), **options)
    _check_norms(done, "Q", "qr", "it depends on the columns before it, or needs more steps than "
                 f"steps={steps}, the condition is {np.linalg.cond(a):.1e}")
    value, r = done.returned(), done.returned(1) / scale
    true, diagonal = np.linalg.qr(a)
    error = distance(value, true * np.sign(np.diag(diagonal)))
    return QRDecomposition(value, error, done.machine_error, _from_orthonormal(value), done, r)


@checked
def arnoldi(
    matrix: ArrayLike, dimension: int, start: ArrayLike | None = None, steps: int = NORMALISING,
    **options: Unpack[AlgebraOptions],
) -> Krylov:
    """An orthonormal basis Q of the Krylov space span(b, A b, ..., A^(dimension - 1) b), and H = Q^T A Q.

    matrix      A, a square matrix
    dimension   number of basis vectors
    start       b, default: ones
    steps       Newton steps that normalise each vector, default: 18
    options     see `punchcard.linalg`

    Returns a `Krylov`; its residual is the largest entry of I - Q^T Q. Its error compares Q with Gram-Schmidt in NumPy,
    which uses LAPACK's QR.
    """
    return _krylov("arnoldi", matrix, dimension, start, steps, options)


@checked
def lanczos(
    matrix: ArrayLike, dimension: int, start: ArrayLike | None = None, steps: int = NORMALISING,
    **options: Unpack[AlgebraOptions],
) -> Krylov:
    """As `arnoldi`, for a symmetric matrix. H is tridiagonal, and its eigenvalues approximate the extreme ones of A."""
    a = as_matrix(matrix, "lanczos", square=True)
    if not np.array_equal(a, a.T):
        row, column = np.unravel_index(int(np.argmax(np.abs(a - a.T))), a.shape)
        raise MatrixError(f"lanczos: the matrix must be symmetric; its entries at ({row}, {column}) and ({column}, {row}) "
                          f"are {a[row, column]:g} and {a[column, row]:g}: take arnoldi")
    return _krylov("lanczos", matrix, dimension, start, steps, options)


def _krylov(
    call: str, matrix: ArrayLike, dimension: int, start: ArrayLike | None, steps: int, options: AlgebraOptions
) -> Krylov:
    a = as_matrix(matrix, call, square=True)
    at_least_one(steps, call, "steps")
    if not 1 <= dimension <= len(a):
        raise PunchcardError(f"{call}: dimension={dimension}: it must be between 1 and {len(a)}, the size of the matrix")
    first = np.ones(len(a)) if start is None else as_vector(start, len(a), call, "start")
    scale = norm_bound(a)
    done = execute(arnoldi_program(a / scale, dimension, steps, first), **options)
    _check_norms(done, "Q", call, "the vectors before it span an invariant space, so the Krylov space ends there; or it "
                 f"needs more steps than steps={steps}")
    value, h = done.returned(), scale * done.returned(1)
    return Krylov(value, distance(value, _krylov_basis(a, first, dimension)), done.machine_error,
                  _from_orthonormal(value), done, h)


def _krylov_basis(a: Array, first: Array, dimension: int) -> Array:
    """The basis, each new vector from LAPACK's QR of the ones before it."""
    basis = (first / np.linalg.norm(first)).reshape(-1, 1)
    while basis.shape[1] < dimension:
        new = a @ basis[:, -1:]
        q, r = np.linalg.qr(np.hstack([basis, new]))
        basis = np.hstack([basis, q[:, -1:] * np.sign(r[-1, -1])])
    return basis


def _check_norms(done: Execution, name: str, call: str, why: str) -> None:
    """Every column has the norm 1, or it could not be normalised."""
    norms = np.linalg.norm(done.returned(), axis=0)
    wrong = np.flatnonzero(~(np.abs(norms - 1) <= UNIT_TOLERANCE))
    if len(wrong):
        kind = ConvergenceError if call == "power_iteration" else SingularMatrixError
        which = "" if len(norms) == 1 else f" {wrong[0]}"
        raise kind(f"{call}: column{which} of {name} ends with the norm {norms[wrong[0]]:.4g} in place of 1: {why}")


def _from_orthonormal(q: Array) -> float:
    return float(np.abs(q.T @ q - np.eye(q.shape[1])).max())


def _largest_two(a: Array) -> str:
    sizes = np.sort(np.abs(np.linalg.eigvals(a)))[::-1][:2]
    return " and ".join(f"{size:g}" for size in sizes)


def _from_leading_space(a: Array, vector: Array) -> float:
    """The distance of a vector from the space of the leading eigenvalue, over its largest entry."""
    values, vectors = np.linalg.eig(a) if not np.array_equal(a, a.T) else np.linalg.eigh(a)
    largest = values[np.argmax(np.abs(values))]
    space = np.linalg.qr(vectors[:, np.abs(values - largest) <= 1e-9 * abs(largest)])[0]
    return distance(space @ (space.conj().T @ vector), vector)
