"""Linear algebra on the transformer: against the same algorithm written in NumPy, and against SciPy's answer."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import punchcard
from punchcard import linalg
from punchcard.errors import ConvergenceError, MatrixError, ProgramError, PunchcardError, SingularMatrixError
from punchcard.linalg import Computed
from punchcard.machines.fleq.functions import STANDARD_FUNCTIONS
from punchcard.machines.fleq.isa import Array
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.oracle import dry_run
from punchcard.machines.fleq.text.assembler import assemble
from tests.cases import soaked
from tests.pages import page, run_snippets
from tests.test_linear_algebra_programs import regular

FLOAT64, FLOAT32 = 5e-12, 2e-5
"""The largest error against NumPy in float64, over the largest entry."""
ENGINE = "scratchpad"
"""These runs are short: an engine that compiles first would take longer, and the dense one does."""
EXACTNESS = [soaked("float64", 2, FLOAT64), ("float64", 3, FLOAT64), ("float32", 3, FLOAT32)]


def newton(matrix: Array, iterations: int) -> Array:
    """The paper's pseudocode in NumPy, from eps A^T."""
    sums = np.abs(matrix)
    x = np.array(matrix.T / (sums.sum(axis=0).max() * sums.sum(axis=1).max()))
    for _ in range(iterations):
        x = x @ (2 * np.eye(len(matrix)) - matrix @ x)
    return x


def powers(matrix: Array, iterations: int) -> Array:
    """The paper's pseudocode: ones, multiplied by A again and again, then normalised."""
    b = np.linalg.matrix_power(matrix, iterations) @ np.ones(len(matrix))
    return np.array(b / np.linalg.norm(b))


def symmetric(d: int, seed: int = 0, ratio: float = 0.5) -> Array:
    """A symmetric matrix whose second eigenvalue is `ratio` times the leading one, whose vector is not far from ones."""
    vectors = np.random.default_rng(seed).normal(size=(d, d))
    vectors[:, 0] = 1 + vectors[:, 0] / 2
    q = np.linalg.qr(vectors)[0]
    a = q @ np.diag([3.0, *np.linspace(-3 * ratio, 3 * ratio, d - 1)]) @ q.T
    return np.array((a + a.T) / 2)


def relative(found: Array, expected: Array) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def check_range(computed: Computed) -> None:
    """The range is within a factor 2 of what occurs."""
    assert computed.program.range / 2 < dry_run(computed.program).largest <= computed.program.range


# Newton's iteration


@pytest.mark.parametrize(("precision", "heads", "tolerance"), EXACTNESS)
@pytest.mark.parametrize(("d", "iterations"), [(4, 10), soaked(8, 9)])
def test_inverse_is_newton(d: int, iterations: int, precision: str, heads: int, tolerance: float) -> None:
    matrix = regular(np.random.default_rng(d), d, 4.0)
    found = linalg.inverse(matrix, iterations, heads=heads, precision=precision, engine=ENGINE)
    assert found.execution.report.agrees
    check_range(found)
    assert relative(found.value, newton(matrix, iterations)) <= tolerance
    assert found.machine_error <= tolerance


@pytest.mark.parametrize(("d", "seed", "how"), [(3, 1, {}), (2, 1, {"design": "paper", "heads": 2}), *(
    soaked(8, seed, {"heads": heads}) for seed in range(5) for heads in (2, 3))])
def test_inverse_against_scipy(d: int, seed: int, how: dict[str, Any]) -> None:
    matrix = regular(np.random.default_rng(seed), d, 5.0) * 1000
    found = linalg.inverse(matrix, engine=ENGINE, **how)
    expected = scipy.linalg.inv(matrix)
    assert found.converged
    assert relative(found.value, expected) <= 1e-10
    assert found.error == pytest.approx(relative(found.value, expected), rel=0.1)
    assert found.residual == pytest.approx(np.abs(np.eye(d) - matrix @ found.value).max())
    assert found.loops == found.execution.report.result.steps + 1
    assert "design" not in how or len(found.machine.model.shapes) == 13


def test_an_iteration_that_is_cut_short_says_so() -> None:
    found = linalg.inverse([[4.0, 1.0], [2.0, 3.0]], 2, engine=ENGINE)
    assert not found.converged
    assert found.error > 0.01
    assert found.machine_error <= FLOAT64


# Power iteration


@pytest.mark.parametrize(("precision", "heads", "tolerance"), EXACTNESS)
@pytest.mark.parametrize(("d", "iterations"), [(4, 8), soaked(8, 5)])
def test_power_iteration_is_the_algorithm(d: int, iterations: int, precision: str, heads: int, tolerance: float) -> None:
    matrix = symmetric(d)
    found = linalg.power_iteration(matrix, iterations, heads=heads, precision=precision, engine=ENGINE)
    assert found.execution.report.agrees
    check_range(found)
    assert relative(found.value, powers(matrix, iterations)) <= tolerance


@pytest.mark.parametrize(("d", "seed"), [(4, 1), *(soaked(8, seed) for seed in range(3))])
def test_leading_eigenvector_against_scipy(d: int, seed: int) -> None:
    matrix = symmetric(d, seed, ratio=0.3)
    found = linalg.power_iteration(matrix, check=False, engine=ENGINE)
    values, vectors = scipy.linalg.eigh(matrix)
    leading = vectors[:, -1] * np.sign(vectors[:, -1] @ found.value)
    assert found.converged
    assert np.abs(found.value - leading).max() <= 1e-8
    assert abs(found.eigenvalue - values[-1]) <= 1e-10
    assert found.error <= 1e-8
    assert found.machine_error <= FLOAT64


def test_a_negative_eigenvalue_leads_and_the_start_is_free() -> None:
    matrix = np.diag([1.0, -4.0, 2.0])
    found = linalg.power_iteration(matrix, 9, start=[1.0, 8.0, 0.0], check=False, engine=ENGINE)
    assert found.eigenvalue == pytest.approx(-4, abs=1e-6)
    assert abs(found.value[1]) == pytest.approx(1, abs=1e-6)


def test_power_iteration_of_a_stochastic_matrix() -> None:
    """A matrix that is not symmetric: the stationary distribution of a Markov chain."""
    chain = np.array([[0.9, 0.2, 0.1], [0.05, 0.7, 0.1], [0.05, 0.1, 0.8]])
    found = linalg.power_iteration(chain, 10, check=False, engine=ENGINE)
    assert found.eigenvalue == pytest.approx(1, abs=1e-2)
    assert relative(found.value, powers(chain, 10)) <= FLOAT64


# QR, Arnoldi, Lanczos


@pytest.mark.parametrize("shape", [(4, 2), soaked((8, 8))])
def test_qr_against_scipy(shape: tuple[int, int]) -> None:
    matrix = 10 * np.random.default_rng(0).normal(size=shape)
    found = linalg.qr(matrix, 6 if shape == (4, 2) else 18, engine=ENGINE)
    q, r = scipy.linalg.qr(matrix, mode="economic")
    signs = np.sign(np.diag(r))
    assert found.execution.report.agrees
    check_range(found)
    assert relative(found.value, q * signs) <= 1e-10
    assert relative(found.r, r * signs[:, None]) <= 1e-10
    assert np.abs(found.value.T @ found.value - np.eye(shape[1])).max() <= 5e-12
    assert relative(found.value @ found.r, matrix) <= 5e-12
    assert found.residual <= 5e-12


@pytest.mark.parametrize(("d", "dimension"), [(3, 3), soaked(8, 8)])
def test_lanczos_finds_the_eigenvalues(d: int, dimension: int) -> None:
    matrix = symmetric(d, seed=2)
    found = linalg.lanczos(matrix, dimension, steps=9 if d == 3 else 18, check=False, engine=ENGINE)
    assert np.abs(np.triu(found.h, 2)).max() <= 1e-10
    assert np.abs(np.linalg.eigvalsh(found.h) - scipy.linalg.eigvalsh(matrix)).max() <= 1e-10
    assert found.residual <= 5e-12
    assert found.error <= 1e-9


def test_arnoldi_is_upper_hessenberg() -> None:
    matrix = np.random.default_rng(3).normal(size=(3, 3))
    found = linalg.arnoldi(matrix, 3, start=[1.0, 0.0, 1.0], steps=9, check=False, engine=ENGINE)
    q, h = found.value, found.h
    assert np.abs(np.tril(h, -2)).max() <= 1e-11
    assert np.abs(q.T @ matrix @ q - h).max() <= 1e-11
    assert np.abs(matrix @ q - q @ h).max() <= 1e-11
    assert found.machine_error <= 1e-10


# Equations


@pytest.mark.parametrize(("d", "sweeps"), [(4, None), soaked(8, 1), soaked(8, None)])
def test_solve_against_scipy(d: int, sweeps: int | None) -> None:
    rng = np.random.default_rng(d)
    matrix = rng.uniform(-1, 1, (d, d)) + 2 * d * np.diag(rng.choice([-1, 1], d))
    right = 100 * rng.normal(size=d)
    found = linalg.solve(matrix, right, sweeps, engine=ENGINE)
    assert found.execution.report.agrees
    check_range(found)
    assert found.machine_error <= FLOAT64
    if sweeps is None:
        assert relative(found.value, scipy.linalg.solve(matrix, right)) <= 1e-10
    x = np.zeros(d)
    for _ in range(sweeps or 40):
        for i in range(d):
            x[i] = (right[i] - matrix[i] @ x + matrix[i, i] * x[i]) / matrix[i, i]
    assert relative(found.value, x) <= FLOAT64


def test_solve_takes_a_positive_definite_matrix() -> None:
    matrix = [[2.0, 1.5, 0.5], [1.5, 2.0, 1.0], [0.5, 1.0, 1.5]]
    assert linalg.solve(matrix, [1.0, -2.0, 0.5], 4, check=False, engine=ENGINE).machine_error <= FLOAT64


@pytest.mark.parametrize("matrix", [
    [[1.0, 2.0], [3.0, 1.0]],
    [[0.0, 1.0], [1.0, 0.0]],
    [[1.0, 0.999], [0.999, 1.0]],  # positive definite, but Gauss-Seidel would take thousands of sweeps
    [[0.0, 2.0, 1.0], [-1.0, 0.0, 3.0], [4.0, 1.0, 0.0]],
])
def test_solve_takes_any_well_conditioned_matrix(matrix: list[list[float]]) -> None:
    """Where Gauss-Seidel does not converge it is Newton's iteration; the error is about the condition times a product's."""
    right = 1.0 + np.arange(len(matrix))
    found = linalg.solve(matrix, right, engine=ENGINE, check=False)
    assert "Z = mul(" in found.text
    error = relative(found.value, scipy.linalg.solve(np.array(matrix), right))
    assert error <= 4 * np.linalg.cond(matrix) * found.bound
    assert found.converged
    assert found.host.startswith("NumPy ran the same program first: ")


def test_matrices_of_one_size_share_a_machine() -> None:
    first, second = (linalg.inverse(matrix, 6, engine=ENGINE, check=False).machine.weights.digest()
                     for matrix in ([[4.0, 1.0], [2.0, 3.0]], [[0.7, -0.2], [0.1, 0.5]]))
    assert first == second


@pytest.mark.parametrize("shape", [(4, 3), (4, 4), soaked((8, 5))])
def test_least_squares_against_scipy(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    matrix, right = rng.normal(size=shape) * 50, rng.normal(size=(shape[0], 1))
    found = linalg.least_squares(matrix, right, engine=ENGINE)
    expected = scipy.linalg.lstsq(matrix, right[:, 0])[0]
    assert found.execution.report.agrees
    check_range(found)
    assert relative(found.value, expected) <= 1e-10


# One machine


def test_one_unchanged_model_inverts_finds_eigenvectors_and_learns() -> None:
    """The weights that the module holds after all runs are those that the machine was built with."""
    machine = FleqMachine(functions=STANDARD_FUNCTIONS, size=4, memory=64, instructions=64, range=4.0, heads=2)
    before = machine.weights.digest()
    matrix = regular(np.random.default_rng(0), 4, 4.0)
    inverted = linalg.inverse(matrix, 8, machine=machine, engine=ENGINE)
    eigen = linalg.power_iteration(symmetric(4), 3, machine=machine, engine=ENGINE)
    for found in (inverted, eigen):
        assert found.machine is machine
        assert found.execution.report.agrees
        assert found.machine_error <= 1e-10
    learned = punchcard.learn([[0.5, -0.2], [0.1, 0.9]], [0.3, -0.4], epochs=2, machine=machine, engine=ENGINE)
    assert learned.machine is machine
    assert learned.error <= 1e-10
    assert machine.weights.digest() == before


@pytest.mark.soak
def test_one_unchanged_model_runs_the_others_too() -> None:
    machine = FleqMachine(functions=STANDARD_FUNCTIONS, size=4, memory=48, instructions=64, range=4.0, heads=2)
    before = machine.weights.digest()
    matrix = regular(np.random.default_rng(0), 4, 4.0)
    for found in (
        linalg.solve(matrix + 3 * np.eye(4), np.ones(4), 3, machine=machine, engine=ENGINE),
        linalg.least_squares(matrix[:, :2], np.ones(4), 9, machine=machine, engine=ENGINE),
        linalg.qr(matrix, machine=machine, engine=ENGINE),
        linalg.arnoldi(matrix, 2, machine=machine, engine=ENGINE),
    ):
        assert found.machine is machine
        assert found.execution.report.agrees
        assert found.machine_error <= 1e-10
    assert machine.weights.digest() == before


def test_the_text_is_the_program() -> None:
    found = linalg.inverse([[2.0]], 3, engine=ENGINE)
    assert assemble(found.text) == found.program
    assert "= sub(k, " in found.text  # 2 I - A X


# What is refused


@pytest.mark.parametrize(("call", "error", "says"), [
    (lambda: linalg.inverse([[1.0, 2.0, 3.0]]), MatrixError, "inverse: the matrix is 1x3, and must be square"),
    (lambda: linalg.inverse([1.0, 2.0]), MatrixError, r"a matrix has two dimensions .* this has the shape \(2\)"),
    (lambda: linalg.inverse([[1.0, np.nan], [0.0, 1.0]]), MatrixError, "the matrix holds nan, and must be finite"),
    (lambda: linalg.inverse([[0.0, 0.0], [0.0, 0.0]]), MatrixError, "the matrix is 0"),
    (lambda: linalg.inverse([[1e-90]]), MatrixError, "has the largest entry 1e-90: it must be between 1e-60 and 1e[+]60"),
    (lambda: linalg.inverse([[1.0, 2.0], [2.0, 4.0]]), SingularMatrixError, r"singular, or too near to it \("),
    (lambda: linalg.inverse([[1.0, 2.0], [2.0, 4.0]], 9), SingularMatrixError, "singular"),
    (lambda: linalg.inverse([[1.0]], 0), PunchcardError, "inverse: iterations=0: it must be 1 or more"),
    (lambda: linalg.inverse(scipy.linalg.hilbert(5), precision="float32", engine=ENGINE), ConvergenceError,
     "became .* beyond the declared range .* on the interpreter, which rounds less, values stay within"),
    (lambda: linalg.inverse(np.diag([1.0, 3e-5]), precision="float32", engine=ENGINE), ConvergenceError,
     "the residual is .* on the machine, the limit is 2.4e-04: the matrix has the condition 3.3e[+]04"),
    (lambda: linalg.least_squares([[1.0, 2.0]], [1.0]), MatrixError, "1x2, and must have at least as many rows"),
    (lambda: linalg.least_squares([[1.0], [2.0]], [1.0]), MatrixError, r"has the shape \(1,\): it must have 2"),
    (lambda: linalg.least_squares([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]], [1.0, 2.0, 3.0]), SingularMatrixError,
     "the columns depend on each other"),
    (lambda: linalg.inverse(np.diag([1.0, 1e-7]), engine=ENGINE, check=False), ConvergenceError,
     "the matrix, of the condition 1.0e[+]07, is too badly conditioned: that is beyond the most exact machine, float64"),
    (lambda: linalg.solve([[1.0, 2.0], [3.0, 1.0]], [1.0, 1.0], 5), MatrixError,
     "sweeps=5: Gauss-Seidel needs a matrix that is strictly diagonally dominant by rows, .* in row 1 the diagonal is 1 and "
     "the others sum to 3; without sweeps, Newton's iteration is taken"),
    (lambda: linalg.solve([[1.0, 2.0], [2.0, 1.0]], [1.0, 1.0], 3), MatrixError, "diagonally dominant"),
    (lambda: linalg.solve([[1.0, 2.0], [2.0, 4.0]], [1.0, 1.0]), SingularMatrixError, "the matrix is singular"),
    (lambda: linalg.solve([[2.0, 1.0], [1.0, 2.0]], [0.0, 0.0]), MatrixError, "the right side is 0"),
    (lambda: linalg.power_iteration([[0.0, 1.0], [1.0, 0.0]], start=[1.0, 0.5]), ConvergenceError,
     "not settled after 2000 iterations: the two largest eigenvalues are 1 and 1 in size"),
    (lambda: linalg.power_iteration([[0.0, 1.0], [0.0, 0.0]], 5, engine=ENGINE), ConvergenceError, "b ends with the"),
    (lambda: linalg.power_iteration([[1.0, -1.0], [-1.0, 1.0]], 5, engine=ENGINE), ConvergenceError, "nearly no part"),
    (lambda: linalg.power_iteration([[1.0]], 5, start=[1.0, 2.0]), MatrixError, r"start has the shape \(2,\)"),
    (lambda: linalg.qr([[1.0, 2.0], [2.0, 4.0]], 6, engine=ENGINE), SingularMatrixError, "column 1 of Q ends with"),
    (lambda: linalg.arnoldi([[1.0, 0.0], [0.0, 1.0]], 2, steps=3, engine=ENGINE), SingularMatrixError, "invariant space"),
    (lambda: linalg.arnoldi([[1.0]], 2), PunchcardError, "dimension=2: it must be between 1 and 1"),
    (lambda: linalg.solve([[1.0, 0.0], [0.0, 1e-9]], [1.0, 1.0]), MatrixError, "the diagonal goes from .* scale"),
    (lambda: linalg.lanczos([[1.0, 2.0], [3.0, 1.0]], 2), MatrixError, r"at \(0, 1\) and \(1, 0\) are 2 and 3: take"),
])
def test_refusals(call: object, error: type[Exception], says: str) -> None:
    assert callable(call)
    with pytest.raises(error, match=says):
        call()


def test_a_machine_that_does_not_fit_is_refused() -> None:
    machine = FleqMachine(functions=STANDARD_FUNCTIONS, size=2, memory=32, instructions=32, range=2.0)
    with pytest.raises(ProgramError, match="largest operand has 3 rows or columns, the machine's size is 2"):
        linalg.inverse(np.eye(3), machine=machine)
    with pytest.raises(PunchcardError, match="heads: options are for building a machine, but a machine is given"):
        linalg.inverse(np.eye(2), machine=machine, heads=2)


@pytest.mark.parametrize("engine", [ENGINE, soaked(None)])
def test_the_page_is_a_program(engine: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """On an engine that need not compile; as printed in the soak."""
    if engine is not None:
        for name in ("inverse", "power_iteration"):
            monkeypatch.setattr(punchcard.linalg, name, partial(getattr(punchcard.linalg, name), engine=engine))
    names = run_snippets(page("linear-algebra.md"))
    assert np.abs(names["found"].value - [[0.3, -0.1], [-0.2, 0.4]]).max() <= 1e-11
    assert names["leading"].eigenvalue == pytest.approx(5, abs=0.02)
