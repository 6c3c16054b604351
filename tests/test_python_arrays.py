"""Functions of arrays on the FLEQ machine: a corpus, code quality, ranges, reports; types of NumPy; random programs.

A compiled program gives what NumPy gives, or is refused by name; never a wrong answer.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
from tests.python_random import arguments, function_of, random_program
from tests.tally import SAME, Tally

NEAR = 1e-9


def interpreted(call: ArrayCall, expected: Any, size: float = 1.0) -> float:
    """How far the plain interpreter's run of the compiled program is from what NumPy gives, relative to a size."""
    interpreter = FleqInterpreter(call.program)
    interpreter.run(1_000_000)
    assert interpreter.halted
    found = call.results(call.program.named(interpreter.memory))
    assert shapes(found) == shapes(expected)
    return distance(found, expected, size)


def shapes(values: Any) -> list[tuple[int, ...]]:
    return [np.shape(value) for value in (values if isinstance(values, tuple) else (values,))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compiled_programs_mean_what_numpy_means(case: Case) -> None:
    for seed in range(3):
        given = case.given(seed)
        call = ArrayCall(case.program, tuple(given), {})
        assert interpreted(call, case.program.expected(*given)) < 1e-12


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
    for positional, named, message in (
        ((), {}, "missing 2 required arguments: 'A' and 'rounds'"),
        ((MATRIX, 1, 2), {}, "takes 2 positional arguments but 3 were"),
        ((MATRIX,), {"round": 1}, "did you mean 'rounds'"), ((MATRIX, 1), {"A": MATRIX}, "multiple values for argument 'A'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            newton.run(*positional, **named)
    for wrong in ("x", [[1.0], [1.0, 2.0]], 1j * MATRIX, np.zeros((2, 2, 2)), np.zeros((0, 2)), np.nan * MATRIX):
        with pytest.raises(PunchcardError):
            newton.run(wrong, 1)
    for option in ({"rang": 3}, {"range": -1.0}, {"range": "x"}):
        with pytest.raises(ArgumentError):
            newton.with_options(**option)


# Types: integers, comparisons, lists

X = np.array([3, -1, 2])
Q = np.array([True, False, True])
M = np.array([[1, 2, 0], [0, 1, 3], [2, 0, 1]])
REALS = np.array([0.5, -1.5, 2.25])
TYPED: dict[str, tuple[Any, ...]] = {
    "return X + 1, X @ X, X / 2, X ** 2, X ** 2.0, X ** -1.0, -X, abs(X), np.sqrt(abs(X))": (X, Q),
    "X[0] = 7\n    X[1] += 2\n    X *= 2\n    return X": (X, Q),
    "X = 1.0 * X\n    X[0] = 0.5\n    X += 0.25\n    return X": (X, Q),
    "y = np.zeros(3)\n    y[1] = X[1] / 2\n    return y": (X, Q),
    "y = pc.arrays.maximum(X, 0)\n    y[0] = 0.5\n    return y": (X, Q),
    "y = pc.arrays.where(Q, X, 0)\n    y[0] = 0.5\n    return y": (X, Q),
    "y = np.where(Q, X, 0)\n    y[0] = 5\n    return y": (X, Q),
    "return Q * X, 1.0 - Q, Q.sum() + Q.sum(), Q.mean(), X[Q.shape[0] - 1], ~Q, Q * Q, np.where(Q, 1.0, X)": (X, Q),
    "Q[0] = X[0] < 0\n    return Q": (X, Q),
    "n = 0\n    for i in range(3):\n        if X[i] == 2:\n            n = n + 1\n    return n": (X, Q),
    "n = 0\n    for i in range(3):\n        if X[i] != X[0] and X[i] <= 2:\n            n += 2\n    return n": (X, Q),
    "y = X\n    for i in range(2):\n        y = y / 2\n    z = 1.0 * y\n    z[0] = 0.5\n    return z": (X, Q),
    "a, b = X[0], X[1]\n    return max(a, b) / 2, min(a, 0.5)": (X, Q),
    "return X @ M, (M * M).sum(axis=0), M.max(axis=1), np.diag(M) / 4, np.trace(M), M.T - X": (X, Q),
    "y = np.full(3, 2)\n    y[0] = 3\n    return y * X": (X, Q),
    "return X * 2 + X": ([3, 1, 2], Q),
    "return X * 2 + X, (X > 0) * X": ([0.5, 1.5, 2.0], [True, False, False]),
    "return X * 0.5": (np.array([1.0, 2.0, 4.0], dtype=np.float32), Q),
    "return X * 2, Q * 1.5, Q + 1": (np.int64(4), np.bool_(True)),
    "return pc.arrays.exp(Q), pc.arrays.sum(Q), pc.arrays.abs(Q) - pc.arrays.abs(Q)": (X, Q),
}
REFUSED: dict[str, tuple[str, tuple[Any, ...]]] = {
    "X[0] = 0.5\n    return X": ("'X' is an array of integers, which does not keep what is stored here", (X, Q)),
    "X[0] = REALS[0]\n    return X": ("'X' is an array of integers", (X, Q)),
    "X += 0.5\n    return X": ("'X' is an array of integers", (X, Q)),
    "X /= 2\n    return X": ("'X' is an array of integers", (X, Q)),
    "y = X * 2\n    y[0] = 0.5\n    return y": ("'y' is an array of integers", (X, Q)),
    "y = np.arange(3) * 2\n    y[0] = 0.5\n    return y": ("'y' is an array of integers", (X, Q)),
    "y = np.zeros_like(X)\n    y[0] = 0.5\n    return y": ("'y' is an array of integers", (X, Q)),
    "y = np.where(Q, 1, 0)\n    y[0] = 0.5\n    return y": ("'y' is an array of integers", (X, Q)),
    "X[0] = 0.5\n    return X  # a list": ("'X' is an array of integers", ([1, 2, 3], Q)),
    "Q[0] = 2\n    return Q": ("'Q' is an array of comparisons", (X, Q)),
    "y = X.copy()\n    if X[0] > 0:\n        y = 0.5 * X\n    y[0] = 0.5\n    return y":
        ("'y' may be an array of integers", (X, Q)),
    "y = X.copy()\n    for i in range(2):\n        y[0] = 0.5\n        y = 0.5 * y\n    return y": ("of integers", (X, Q)),
    "return X ** -1": ("** -1 of integers: NumPy refuses it; write 1.0 / x", (X, Q)),
    "return -Q": ("- of a comparison", (X, Q)),
    "return +Q": ("+ of a comparison", (X, Q)),
    "return Q + Q": ("+ of two comparisons means something else", (X, Q)),
    "return Q[0] - Q[1]": ("- of two comparisons means something else", (X, Q)),
    "return np.exp(Q)": ("exp of a comparison: NumPy computes it in 16 bits", (X, Q)),
    "return Q ** 2": ("** of a comparison", (X, Q)),
    "return ~X": ("~ is for comparisons only", (X, Q)),
    "return X * ~3": ("~ is for comparisons only", (X, Q)),
    "return X": ("X holds uint8, which NumPy wraps around: give X.astype(float)", (X.astype(np.uint8), Q)),
    "return 2 * X": ("X holds int32, which NumPy wraps around", (X.astype(np.int32), Q)),
    "return X * np.ones(3, dtype=np.float32)": ("of float32: NumPy computes with that precision", (X, Q)),
}


def program_of(body: str) -> Any:
    function = function_of(f"def made(X, Q):\n    {body}\n", hash(body))
    function.__globals__.update(M=M, REALS=REALS)
    return pc.program(function)


@pytest.mark.parametrize("body", TYPED, ids=[str(i) for i in range(len(TYPED))])
def test_types_are_those_of_numpy(body: str) -> None:
    program, given = program_of(body), TYPED[body]
    call = ArrayCall(program, given, {})
    assert interpreted(call, program.expected(*given), call.limit) < 1e-12


@pytest.mark.parametrize("body", REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_numpy_would_cut_off_or_wrap_is_refused(body: str) -> None:
    said, given = REFUSED[body]
    with pytest.raises(PunchcardError) as caught:
        program_of(body).program(*given)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_way_that_is_not_taken_may_use_any_function() -> None:
    program = program_of("if X[0] < 0:\n        return np.log(X @ X) * X\n    return X / 2")
    call = ArrayCall(program, (X, Q), {})
    assert np.array_equal(call.ran.values[call.code.results[0]][:, 0], X / 2)


def test_names_outside_are_looked_up_in_each_call() -> None:
    """A number, an array that is changed in place, and a program that is called; each with names of its own."""
    text = ("@pc.program\ndef inner(x):\n    return INNER * x\n\n"
            "def made(X, Q):\n    return NUMBER * X + ARRAY + inner(X)\n")
    function = function_of(text, hash(text))
    names = function.__globals__
    names.update(NUMBER=2.0, ARRAY=np.zeros(3), INNER=0.0)
    program = pc.program(function)

    def run() -> Any:
        call = ArrayCall(program, (X, Q), {})
        return call.ran.values[call.code.results[0]][:, 0]

    assert np.array_equal(run(), 2 * X)
    names["NUMBER"] = 3.0
    assert np.array_equal(run(), 3 * X)
    names["ARRAY"][0] = 1.0
    assert np.array_equal(run(), 3 * X + [1, 0, 0])
    names["INNER"] = 1.0
    assert np.array_equal(run(), 4 * X + [1, 0, 0])
    assert len(program.lowered) == 4
    run()
    assert len(program.lowered) == 4


def test_a_plain_function_that_fails_is_told_by_name() -> None:
    with pytest.raises(PunchcardError, match="made: the plain function fails in NumPy: ZeroDivisionError"):
        program_of("y = 1 // 0\n    return X").expected(X, Q)


# Random programs

SEEDS = st.integers(0, 2**40)


def made(seed: int, large: float = 0.0) -> tuple[Any, dict[str, Any]]:
    """A program and its arguments."""
    return pc.program(function_of(random_program(seed, large), seed)), arguments(seed)


def compare(seed: int, large: float = 0.0) -> str:
    """What became of the program: "same", or why it was not run. A difference fails; a refusal is a PunchcardError."""
    try:
        program, named = made(seed, large)
        call = ArrayCall(program, (), named)
    except SyntaxError:
        return "not Python"
    except PunchcardError as error:
        return str(error)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = program.expected(**named)
        except Exception:  # whatever NumPy says of a program that is wrong in itself
            return "NumPy fails"
    assert interpreted(call, expected, max(1.0, call.limit)) < NEAR, random_program(seed, large)
    return SAME


@settings(max_examples=100, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(SEEDS)
def test_random_programs_mean_what_numpy_means(seed: int) -> None:
    compare(seed)


def test_most_random_programs_are_run() -> None:
    assert sum(compare(seed) == SAME for seed in range(30)) >= 25


@pytest.mark.parametrize("seed", [3, 11])
def test_random_programs_on_the_transformer(seed: int) -> None:
    program, named = made(seed)
    report = program.with_options(engine="dense", check=False, heads=2).run(**named)
    assert report.difference is not None
    assert report.difference < NEAR


@pytest.mark.soak
def test_many_random_programs_mean_what_numpy_means() -> None:
    tally = Tally()

    @settings(max_examples=10_000, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(SEEDS)
    def each(seed: int) -> None:
        tally.add(compare(seed))

    each()
    tally.show()
    assert tally.ran > 0.85
