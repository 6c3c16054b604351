"""The linear algebra programs on the plain interpreter: counters, convergence, and what the paper prints."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from punchcard.errors import ConvergenceError, ProgramError, SourceError
from punchcard.linalg.algorithms import (
    arnoldi_program,
    gauss_seidel_program,
    inverse_program,
    least_squares_program,
    newton_rounds,
    norm_bound,
    power_program,
    power_rounds,
    qr_program,
    reciprocal_rounds,
    safe_step,
)
from punchcard.machines.fleq.builder import Builder
from punchcard.machines.fleq.counter import Counter
from punchcard.machines.fleq.isa import Array, FleqProgram
from punchcard.machines.fleq.oracle import dry_run, range_above
from punchcard.machines.fleq.text.assembler import assemble, disassemble


def regular(rng: np.random.Generator, d: int, condition: float = 20.0) -> Array:
    """A random matrix of a given condition."""
    left, right = (np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(2))
    return np.array(left @ np.diag(np.geomspace(1, 1 / condition, d)) @ right)


def returned(program: FleqProgram) -> list[Array]:
    """What a program returns on the interpreter, where no value leaves its range."""
    ran = dry_run(program)
    assert ran.largest <= program.range * (1 + 1e-6)
    return [np.asarray(each.of(ran.memory)) for each in program.results]


# Counters


@given(st.integers(1, 300))
def test_a_counter_makes_its_rounds(rounds: int) -> None:
    p = Builder()
    n, counter = p.scalar("n"), Counter(p, "t", rounds)
    with counter.repeat("loop"):
        p.add(n, "one", into=n)
    ran = dry_run(p.program(1e300))
    assert ran.memory["n"] == rounds
    assert max(np.abs(value).max() for name, value in ran.memory.items() if name != "n") <= 2


@given(st.integers(1, 30), st.integers(1, 30))
def test_a_counter_inside_another_restarts(outer: int, inner: int) -> None:
    p = Builder()
    n, each, within = p.scalar("n"), Counter(p, "t", outer), Counter(p, "k", inner)
    with each.repeat("each"):
        with within.repeat("within"):
            p.add(n, "one", into=n)
        within.restart()
    assert dry_run(p.program(1e300)).memory["n"] == outer * inner


def test_a_counter_of_no_rounds_is_refused() -> None:
    with pytest.raises(ProgramError, match="0 rounds: a loop makes at least one"):
        Counter(Builder(), "t", 0)


# The range


def test_the_range_fits_what_occurs() -> None:
    text = ".range 100\n.data\na scalar 3\nb scalar\n.code\nb = mul(a, a)\nb = sub(a, a)\nhalt"
    ran = dry_run(assemble(text))
    assert ran.largest == pytest.approx(9)
    assert ran.steps == 2
    assert range_above(ran.largest) == 16
    given = assemble(".data\na scalar 4\nb scalar\n.code\nb = sub(a, a)\nhalt")
    assert range_above(dry_run(given).largest) == 4


def test_growth_without_bound_is_said() -> None:
    program = assemble(".data\na scalar 4\n.code\nloop: a = mul(a, a); goto loop\nhalt")
    with pytest.raises(ConvergenceError, match="values grow without bound"):
        dry_run(program)


# Convergence, on many matrices


@pytest.mark.parametrize("seed", range(4))
def test_newton_converges_for_any_regular_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for d in range(1, 9):
        matrix = rng.normal(size=(d, d)) * 10 ** rng.uniform(-3, 3)
        rounds = newton_rounds(matrix, 100)
        assert rounds is not None
        (found,) = returned(inverse_program(matrix, rounds))
        assert np.abs(found @ matrix - np.eye(d)).max() < 1e-15 * np.linalg.cond(matrix) ** 2 * d


@pytest.mark.parametrize("seed", range(4))
def test_power_iteration_stays_in_range_and_ends_normalised(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for d in range(1, 9):
        matrix = rng.normal(size=(d, d)) * 10 ** rng.uniform(-3, 3)
        for a in (matrix + matrix.T, matrix @ matrix.T, np.abs(matrix)):
            scaled = a / norm_bound(a)
            rounds = power_rounds(scaled, None, 500)
            if rounds is not None:
                b, eigenvalue = returned(power_program(scaled, rounds))
                assert abs(np.linalg.norm(b) - 1) < 1e-14
                assert np.abs(scaled @ b - eigenvalue * b).max() < 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_orthogonal_bases_in_the_interpreter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for rows, columns in ((1, 1), (3, 2), (4, 4), (8, 8)):
        matrix = rng.normal(size=(rows, columns))
        matrix /= np.linalg.norm(matrix, axis=0).max()
        program = qr_program(matrix, 24)
        q, r = returned(program)
        assert program.range == 2
        assert np.abs(q.T @ q - np.eye(columns)).max() < 1e-14
        assert np.abs(q @ r - matrix).max() < 1e-14
        assert np.abs(np.tril(r, -1)).max() < 1e-14
    square = rng.normal(size=(6, 6))
    program = arnoldi_program(square / norm_bound(square), 4, 24)
    q, h = returned(program)
    assert program.range == 2
    h *= norm_bound(square)
    assert np.abs(np.tril(h, -2)).max() < 1e-13
    assert np.abs((square @ q - q @ h)[:, :-1]).max() < 1e-13  # the last column leaves the space


@pytest.mark.parametrize("seed", range(5))
def test_equations_in_the_interpreter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for d in (1, 2, 5, 8):
        matrix = rng.normal(size=(d, d)) + np.diag(rng.choice([-1, 1], d) * rng.uniform(2 * d, 6 * d, d))
        right = rng.normal(size=d)
        (found,) = returned(gauss_seidel_program(matrix, right, 60, reciprocal_rounds(matrix)))
        assert np.abs(found - np.linalg.solve(matrix, right)).max() < 1e-14
        tall = rng.normal(size=(d, (d + 1) // 2))
        rounds = newton_rounds(tall, 100)
        assert rounds is not None
        found, _ = returned(least_squares_program(tall, right, rounds))
        assert np.abs(found - np.linalg.lstsq(tall, right, rcond=None)[0]).max() < 1e-10


def test_programs_take_no_more_loops_than_by_hand() -> None:
    """Loops of the programs that were written with the builder, instruction by instruction, for the same matrices."""
    rng = np.random.default_rng(0)
    tall, square = rng.normal(size=(5, 3)), rng.normal(size=(4, 4))
    tall, square = tall / np.linalg.norm(tall, axis=0).max(), square / norm_bound(square)
    both = (square + square.T) / norm_bound(square + square.T)
    dominant = (rng.uniform(-1, 1, (4, 4)) + 8 * np.eye(4)) / 8
    for program, by_hand in (
        (qr_program(tall, 9), 233), (qr_program(tall, 18), 389), (arnoldi_program(square, 3, 9), 232),
        (arnoldi_program(square, 2, 18), 260), (power_program(both, 50), 460), (power_program(both, 1), 67),
        (gauss_seidel_program(dominant, np.full(4, 0.1), 20, 5), 314),
    ):
        assert dry_run(program).steps + 1 <= by_hand


def test_a_singular_matrix_never_settles() -> None:
    assert newton_rounds(np.array([[1.0, 2.0], [2.0, 4.0]]), 100) is None
    assert power_rounds(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([1.0, 0.5]), 1000) is None
    assert power_rounds(np.array([[0.0, 1.0], [0.0, 0.0]]), None, 1000) is None


def test_programs_are_text() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.uniform(-0.5, 0.5, (3, 3))
    for program in (
        inverse_program(matrix, 5), power_program(matrix, 5), qr_program(matrix, 9), arnoldi_program(matrix, 2, 9),
        gauss_seidel_program(matrix + 4 * np.eye(3), np.ones(3), 5, 5), least_squares_program(matrix[:, :2], np.ones(3), 5),
    ):
        assert assemble(disassemble(program)) == program


def test_instructions_do_not_depend_on_the_data() -> None:
    rng = np.random.default_rng(0)
    one, other = (inverse_program(rng.normal(size=(3, 3)), 9) for _ in range(2))
    assert one.instructions == other.instructions
    assert one.variables == other.variables


# What the paper prints


NEWTON_AS_PRINTED = """
.range 1e300
.data
a  matrix 2x2   {a}
p  matrix 2x2   2 0 ; 0 2
x  matrix 2x2   {eps} 0 ; 0 {eps}
y  matrix 2x2
q  scalar -1
t  scalar -11
.code
        x = mul(x, a)
        a = transpose(a)
loop:   y = mul(a, x)
        y = sub(p, y)
        y = transpose(y)
        x = mul(x, y)
        t = sub(t, q)
        if t <= 0 goto loop
        halt
"""


def test_newton_from_a_in_place_of_its_transpose_diverges() -> None:
    """X = eps A, with the two lines of the loop as meant: values grow without bound unless |1 - eps lambda^2| < 1."""
    rng = np.random.default_rng(0)
    grown = 0
    for _ in range(200):
        matrix = rng.normal(size=(4, 4))
        x, y = safe_step(matrix) * matrix, safe_step(matrix) * matrix.T
        with np.errstate(all="ignore"):
            for _ in range(40):
                x = x @ (2 * np.eye(4) - matrix @ x)
                y = y @ (2 * np.eye(4) - matrix @ y)
        converges = bool(np.all(np.abs(1 - safe_step(matrix) * np.linalg.eigvals(matrix) ** 2) < 1))
        assert bool(np.abs(x).max() < 1e6) == converges
        assert np.abs(y).max() < 1e6
        grown += not converges
    assert grown > 100


def test_newton_as_printed_gives_the_wrong_product() -> None:
    """Lines 5 and 6 give X^T Y^T: no inverse even for a matrix with positive eigenvalues, unless it is symmetric."""
    for text, right in (("4 1 ; 2 3", False), ("3 1 ; 1 2", True)):
        matrix = np.array([[float(x) for x in row.split()] for row in text.split(";")])
        program = assemble(NEWTON_AS_PRINTED.format(a=text, eps=safe_step(matrix)))
        try:
            found = dry_run(program).memory["x"]
        except ConvergenceError:
            found = np.full((2, 2), np.inf)
        assert bool(np.abs(found @ matrix - np.eye(2)).max() < 1e-6) == right


@pytest.mark.parametrize(("square", "ends"), [(1.5, "right"), (2.9, "right"), (3.1, "wrong sign"), (8.0, "overflow")])
def test_the_inverse_square_root_from_one(square: float, ends: str) -> None:
    """The paper's start x = 1 is right for S < 3 only."""
    x = 1.0
    for _ in range(60):
        x = x * (1.5 - 0.5 * square * x * x)
        if abs(x) > 1e100:
            break
    found = "overflow" if abs(x) > 1e100 else "right" if abs(x - square**-0.5) < 1e-9 else "wrong sign"
    assert found == ends


def test_scaling_a_vector_as_printed_has_the_wrong_shape() -> None:
    with pytest.raises(SourceError, match="shapes of mul: 2x1 and 1x1"):
        assemble(".data\nb vector 2 1 1\ninv_norm scalar 0.5\n.code\nb = mul(b, inv_norm)\nhalt")


def test_a_counter_from_minus_t_makes_one_round_too_many() -> None:
    data = ".data\nt scalar -5\nn scalar\none scalar 1\n"
    text = data + ".code\nloop: n = add(n, one)\nt = add(t, one)\nif t <= 0 goto loop\nhalt"
    assert dry_run(assemble(text)).memory["n"] == 6
