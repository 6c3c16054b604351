"""Functions of arrays on the FLEQ machine: a corpus, code quality, ranges, reports."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import punchcard as pc
from punchcard.errors import ArgumentError, ProgramError, PunchcardError
from punchcard.learning.programs.network import Network
from punchcard.learning.programs.sgd import learning_program
from punchcard.machines.fleq.builder import Builder
from punchcard.machines.fleq.counter import Counter
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.oracle import FleqInterpreter
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.python.arrays.call import ArrayCall
from punchcard.python.report import distance
from punchcard.python.source import Unsupported
from tests.python_corpus.arrays import CASES, Case, linear_sgd, newton, two_layers

NEAR = 1e-9


def interpreted(case: Case, seed: int) -> float:
    """How far the plain interpreter's run of the compiled program is from NumPy's run of the function."""
    given = case.given(seed)
    call = ArrayCall(case.program, tuple(given), {})
    interpreter = FleqInterpreter(call.program)
    interpreter.run(100_000)
    assert interpreter.halted
    found, expected = call.results(call.program.named(interpreter.memory)), case.program.expected(*given)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    assert all(np.shape(a) == np.shape(b) for a, b in pairs)
    return distance(found, expected, 1.0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compiled_programs_mean_what_numpy_means(case: Case) -> None:
    assert max(interpreted(case, seed) for seed in range(3)) < 1e-12


@pytest.mark.parametrize("case", [
    pytest.param(case, id=case.name, marks=[pytest.mark.soak] * (number % 2)) for number, case in enumerate(CASES)])
def test_the_corpus_on_the_transformer(case: Case) -> None:
    """The equation itself, with weights for the sizes of the program: half of them, and all in `make soak`."""
    given = case.given(17)
    program = case.program.with_options(engine="dense", check=False, heads=1)
    report = program.run(*given)
    assert report.engine == "dense"
    assert report.difference is not None
    assert report.difference < NEAR


MATRIX = np.array([[0.8, 0.3], [-0.2, 0.9]])


def test_the_fast_engine_and_the_report() -> None:
    report = newton.with_options(engine="lowered").run(MATRIX, 6)
    assert report.engine == "lowered"
    assert report.agrees
    assert report.ok
    assert report.step_error is not None
    assert report.bound is not None
    assert report.step_error <= report.bound < 1e-11
    assert report.difference is not None
    assert report.difference < 1e-12
    assert report.range_from.startswith("found")
    assert np.array_equal(report.expected, newton.__wrapped__(MATRIX, 6))
    for word in ("result", "loops", "lowered", "±4, found", "step error", "from NumPy"):
        assert word in str(report)


def test_the_paper_s_design_and_single_precision() -> None:
    report = newton.with_options(engine="dense", check=False, design="paper").run(MATRIX, 1)
    assert report.difference is not None
    assert report.difference < 1e-12
    found = newton.with_options(engine="dense", check=False, precision="float32")(MATRIX, rounds=1)  # a call: the value
    assert isinstance(found, np.ndarray)
    assert np.abs(found - newton.__wrapped__(MATRIX, 1)).max() < 1e-3


def test_the_machine_is_the_same_for_every_argument_of_a_shape() -> None:
    assert newton.machine(MATRIX, 6) is newton.machine(1.1 * MATRIX, 6)
    first, second = (newton.machine(matrix, 6).weights.digest() for matrix in (MATRIX, np.eye(2)))
    assert first == second


def test_the_text_assembles_to_the_program_and_names_the_lines() -> None:
    text = newton.lower(MATRIX, 6)
    assert assemble(text) == newton.program(MATRIX, 6)
    assert "X = X @ (2 * pc.arrays.eye(len(A)) - A @ X)" in text
    assert "# arrays.py:" in text


# The quality of the code


def instructions(program: FleqProgram) -> int:
    interpreter = FleqInterpreter(program, check_range=False)
    interpreter.run(100_000)
    assert interpreter.halted
    return interpreter.steps


def in_a_round(program: Any, *given: Any, rounds: str, to: int = 28) -> float:
    """Instructions that a round of a loop costs, its share of the counting with it."""
    first, last = (instructions(program.program(*given, **{rounds: count})) for count in (1, to))
    return (last - first) / (to - 1)


def inverse_by_hand(matrix: Any, iterations: int) -> FleqProgram:
    """Newton's iteration as the library had it before it was written in Python."""
    p, eye = Builder(), np.eye(len(matrix))
    a, x, two = p.matrix("A", matrix), p.matrix("X", 0.01 * eye), p.matrix("P", 2 * eye)
    xt, y = p.matrix("Xt", shape=matrix.shape), p.matrix("Y", shape=matrix.shape)
    rounds = Counter(p, "t", iterations)
    p.mul(a, x, into=x)
    p.transpose(a, into=a)
    with rounds.repeat("loop"):
        p.mul(a, x, into=y)
        p.sub(two, y, into=y)
        p.transpose(x, into=xt)
        p.mul(xt, y, into=x)
    return p.program(1e300)


def test_the_inverse_costs_no_more_than_by_hand() -> None:
    by_hand = (instructions(inverse_by_hand(MATRIX, 28)) - instructions(inverse_by_hand(MATRIX, 1))) / 27
    assert in_a_round(newton, MATRIX, rounds="rounds") <= by_hand


@pytest.mark.parametrize("hidden", [0, 3])
def test_learning_costs_at_most_1_3_times_what_it_does_by_hand(hidden: int) -> None:
    """A linear model of three features, and a network with two outputs."""
    network = Network(2, (hidden,), 2) if hidden else Network(3)
    random = np.random.default_rng(3)
    x, y = (random.uniform(-1, 1, (5, columns)) for columns in (network.features, network.outputs))
    memory = network.to_memory(network.initial(1))
    by_hand = learning_program(network, memory, network.inputs(x), y.T, epochs=2, rate=0.1, limit=8.0)
    program, labels, weights = linear_sgd, y[:, 0], [memory["V1"][:, 0]]
    if hidden:
        program, labels, weights = two_layers, y, [memory["V1"], memory["V2"], memory["c2"][:, 0]]
    epochs = in_a_round(program, network.inputs(x).T, labels, *weights, 0.1, rounds="epochs", to=3)
    assert epochs <= 1.3 * (by_hand.loops / 2), (epochs, by_hand.loops)


# Ranges


def test_a_range_that_is_given_is_used_and_said() -> None:
    report = newton.with_options(range=64, engine="dense", check=False).run(MATRIX, 1)
    assert (report.range, report.range_from) == (64.0, "given")


def test_leaving_the_range_names_the_line() -> None:
    with pytest.raises(Unsupported) as caught:
        newton.with_options(range=1.5).run(MATRIX, 3)
    assert "leaves the range ±1.5" in str(caught.value)
    assert "give range=" in str(caught.value)
    assert caught.value.text.strip() == "X = X @ (2 * pc.arrays.eye(len(A)) - A @ X)"
    with pytest.raises(PunchcardError, match=r"newton: A holds 9, beyond the range ±2; give range=128 or more"):
        newton.with_options(range=2).run(9.0 * np.eye(2), 1)


def test_an_error_of_the_machine_names_the_line() -> None:
    """Other numbers than those of the run in NumPy, which are beyond the range in the second round."""
    call = ArrayCall(newton.with_options(range=4), (MATRIX, 3), {})
    program = call.program.with_values({"A_t": 3.0 * MATRIX})
    with pytest.raises(PunchcardError) as caught:
        pc.run(program, call.machine(), engine="dense")
    assert isinstance(caught.value, ProgramError)
    error = call.at_its_line(caught.value)
    assert re.match(r"arrays\.py:\d+:\d+: instruction \d+ .*'X.*' became .*beyond the declared range ±4: give a larger",
                    str(error))
    assert getattr(error, "text", "").strip() == "X = X @ (2 * pc.arrays.eye(len(A)) - A @ X)"


def test_wrong_arguments() -> None:
    for given, named, message in (
        ((), {}, "missing 2 required arguments: 'A' and 'rounds'"),
        ((MATRIX, 1, 2), {}, "takes 2 positional arguments but 3 were"),
        ((MATRIX,), {"round": 1}, "did you mean 'rounds'"), ((MATRIX, 1), {"A": MATRIX}, "multiple values for argument 'A'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            newton.run(*given, **named)
    for wrong in ("x", [[1.0], [1.0, 2.0]], 1j * MATRIX, np.zeros((2, 2, 2)), np.zeros((0, 2)), np.nan * MATRIX):
        with pytest.raises(PunchcardError):
            newton.run(wrong, 1)
    for option in ({"rang": 3}, {"range": -1.0}, {"range": "x"}):
        with pytest.raises(ArgumentError):
            newton.with_options(**option)
