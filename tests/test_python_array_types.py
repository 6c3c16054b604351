"""Types of NumPy in array programs: integers, comparisons, lists; the same as in NumPy, or a refusal by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import punchcard as pc
from punchcard.errors import PunchcardError
from punchcard.machines.fleq.oracle import FleqInterpreter
from punchcard.python.arrays.call import ArrayCall
from punchcard.python.report import distance
from tests.python_random import function_of

X = np.array([3, -1, 2])
Q = np.array([True, False, True])
M = np.array([[1, 2, 0], [0, 1, 3], [2, 0, 1]])
REALS = np.array([0.5, -1.5, 2.25])
SAME: dict[str, tuple[Any, ...]] = {
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


@pytest.mark.parametrize("body", SAME, ids=[str(i) for i in range(len(SAME))])
def test_types_are_those_of_numpy(body: str) -> None:
    program, given = program_of(body), SAME[body]
    call = ArrayCall(program, given, {})
    interpreter = FleqInterpreter(call.program)
    interpreter.run(10_000)
    found, expected = call.results(call.program.named(interpreter.memory)), program.expected(*given)
    assert distance(found, expected, call.limit) < 1e-12
    shapes = [[np.shape(value) for value in (each if isinstance(each, tuple) else (each,))] for each in (found, expected)]
    assert shapes[0] == shapes[1]


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
