"""What functions of arrays may not say: every refusal is a named error at its place, with a caret and what to write
instead.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import punchcard as pc
from punchcard.errors import PunchcardError
from punchcard.python.source import FunctionSource, Unsupported
from tests.command_line import invoke
from tests.python_random import function_of

A = np.array([[1.0, 2.0], [3.0, 4.0]])
X = np.array([0.5, -0.25])

REFUSED = (
    ("A[0], A[1] = A[1], A[0]\n    return A", "'A' is changed here, and a value that is assigned next is a part of it"),
    ("Y = Z = np.zeros(2)\n    Y[0] = 1\n    return Z", "'Y' is changed in place, and 'Z' is the same array"),
    ("return lambda x: x", "lambda is not in the subset; write a function with def"),
    ("return [x for x in X]", "a list comprehension is not in the subset; write a for loop"),
    ("with A: pass", "with is not in the subset"),
    ("import math", "import is not in the subset; import at the top of the file"),
    ("print(X)", "print in a function of arrays: the FLEQ machine has no output; return the value"),
    ("return A @ np.ones(3)", "@ of shape (2, 2) and shape (3,): 2 columns meet 3 rows"),
    ("return A + np.ones(3)", "+ of shape (2, 2) and shape (3,): the shapes do not go together"),
    ("return A @ 2.0", "@ of shape (2, 2) and a scalar: both sides must be vectors or matrices; write * for a product"),
    ("return A[2]", "index 2 of axis 0, which has 2 entries"),
    ("return A[0:0]", "a slice without entries"),
    ("for i in range(3):\n        s = X[i]\n    return s", "index 2 of axis 0, which has 2 entries: the loop goes that far"),
    ("return Y", "unknown name 'Y'"),
    ("return np.linalg.inv(A)", "a call of 'inv', which is not a function of array programs; call pc.* or np.* functions"),
    ("return X.cumsum()", ".cumsum() is not in the subset; an array has the methods sum"),
    ("return X.real", ".real is not in the subset; an array has .T, .shape"),
    ("return X ** X[0]", "** with a computed exponent; write np.exp(p * np.log(x))"),
    ("return X ** 40", "** 40: a power is a whole number from -16 to 16"),
    ("if X[0] == X[1]:\n        return X\n    return A",
     "== of real numbers: the machine computes them with errors; write np.abs"),
    ("if X > 0:\n        return X\n    return -X", "a condition of an array, shape (2,): it must be a scalar; use np.where"),
    ("if X[0] > 0:\n        return X\n    return A", "'value 1 of return' has shape (2,) on one way"),
    ("if X[0] > 0:\n        y = X\n    return y", "'y' has no value on some ways to this place"),
    ("y = X\n    for _ in range(2):\n        y = np.outer(X, X) @ A\n    return y",
     "'y' has shape (2,) before the loop and shape"),
    ("Y = A\n    Y[0] = 1.0\n    return A", "'Y' is changed in place, and 'A' is the same array or a part of it"),
    ("y = A[0]\n    A += 1.0\n    return y", "'A' is changed in place, and 'y' is the same array or a part of it"),
    ("for x in X:\n        X[0] = x\n    return X",
     "'X' is changed in place while the loop goes over it; loop over a .copy()"),
    ("y = np.arange(2)\n    y[0] = 0.5\n    return y",
     "'y' is an array of integers, which does not keep what is stored here"),
    ("return (A > 0) @ (A > 1)", "@ of two comparisons means something else in NumPy"),
    ("X += A\n    return X", "X has shape (2,), and the result shape (2, 2)"),
    ("return 1.0 / 0.0", "/ of 1.0 and 0.0: float division by zero"),
    ("return 1.0 / (X[0] - 0.5)", "1 / x of a number that it is not defined for in this line"),
    ("return np.sqrt(X)", "sqrt of a number that it is not defined for in this line"),
    ("while X[0] < 1.0:\n        X = X * 1.0\n    return X", "the loop does not end within"),
    ("for _ in range(60):\n        X = X * 2.0\n    return X", "values grow beyond 1e12 in this line"),
    ("if X[0] * X[0] > 0.25:\n        X = -X\n    return X", "a comparison of numbers that differ by 0.0e+00"),
    ("if X @ X > 0.3125 - 1e-13:\n        X = -X\n    return X", "a comparison of numbers that differ by 1.0e-13"),
    ("for i in range(X[0]):\n        pass\n    return X", "range of a real number: its bounds are whole numbers"),
    ("return A[X[0]]", "an index that is computed; use a constant or the variable of a for loop"),
    ("return np.array([X[0], X[1]])", "array of something that is computed"),
    ("X.y = 1.0\n    return X", "assignment to X.y"),
    ("a, b, c = X\n    return a", "2 values for 3 variables"),
    ("pass", "the function returns nothing; end it with return"),
    ("return X % 2.0", "% of real numbers"),
    ("return sum(X, 1.0)", "Python's sum with a start"),
    ("return not X[0]", "not as a value; use it in the condition of if or while"),
)


@pytest.mark.parametrize(("body", "message"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_a_refusal_is_named_at_its_place(body: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punchcard.python.arrays.dry_run.MOST_STATEMENTS", 10_000)
    function = function_of(f"def made(A, X):\n    {body}\n", hash(body))
    with pytest.raises(PunchcardError) as caught:
        pc.program(function).program(A, X)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "random program" in str(caught.value)
    error: Any = caught.value
    if isinstance(error, Unsupported):
        shown, caret = error.pointed.splitlines()
        assert shown.strip() in f"def made(A, X):\n    {body}\n"
        assert caret.index("^") - 4 == error.column - 1 - (len(error.text) - len(error.text.lstrip()))
        assert error.__notes__ == [error.pointed]


def test_the_caret_stands_below_the_place() -> None:
    def outer() -> Any:
        @pc.program
        def indented(A):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
            return A @ (A + np.ones(3))

        return indented

    with pytest.raises(Unsupported) as caught:
        outer().program(A)
    line, caret = caught.value.pointed.splitlines()
    assert line[caret.index("^"):].startswith("A + np.ones(3)")
    assert caught.value.shown.startswith("test_python_array_errors.py:")


def test_recursion_is_refused() -> None:
    def endless(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return again(x)

    again = pc.program(endless)
    with pytest.raises(Unsupported, match="recursion is not in the subset of arrays; use a loop"):
        again.program(X)


def test_what_is_not_a_function() -> None:
    wrongs: tuple[Any, ...] = (3, "x", print, lambda x: x, type)
    for wrong in wrongs:
        with pytest.raises(PunchcardError):
            pc.program(wrong)
    with pytest.raises(PunchcardError, match="machine='abc': it must be 'fleq' or 'von-neumann'"):
        pc.program(endless_machine, machine="abc")


def endless_machine(x: Any) -> Any:
    return x


def test_which_machine_a_function_is_for() -> None:
    from punchcard.python.program import machine_for

    texts = {"def f(a: int): return a": "von-neumann", "def f(a, b): return a": "fleq",
             "def main(): return 1": "von-neumann",
             "def f(): print(1)": "von-neumann", "def f(): return 1.0": "fleq",
             "def f(a: list[int]): return 0": "von-neumann",
             "def f(a) -> int: return a": "von-neumann", "def f(a: 'Array'): return a": "fleq"}
    for number, (text, machine) in enumerate(texts.items()):
        function = function_of(text.replace("def f", "def made").replace("def main", "def made") + "\n", -number)
        source = FunctionSource.of(function)
        if "main" in text:
            source.node.name = "main"
        assert machine_for(source) == machine, text


@pytest.fixture
def usual_depth() -> Iterator[None]:
    """Python's own limit of the stack: a test runner may have set another."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("usual_depth")
@pytest.mark.parametrize(("given", "result"), [("x", "x"), ("x: int", "-x if x else x")])
@pytest.mark.parametrize("deep", [
    " + ".join(["x"] * 3000), "-" * 900 + "x", "-" * 3000 + "x", "(1 +\n " + " +\n ".join(["x"] * 3000) + ")"])
def test_what_is_nested_too_deeply_is_refused_at_its_line(given: str, result: str, deep: str, tmp_path: Path) -> None:
    """Python itself cannot read some of them, and the stack of the compiler ends in others."""
    file = tmp_path / "deep.py"
    file.write_text(f"# a comment\n\ndef made({given}):\n    y = {result}\n\n    y = {deep}\n    return y\n")
    refused = invoke("run", file, "--call", "made(2)")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert re.match(r"punchcard: \S*deep\.py:6:\d+: this is nested too deeply to be compiled; write it in several "
                    r"statements, or as a loop\n", refused.stderr)


@pytest.mark.usefixtures("usual_depth")
def test_a_function_that_is_nested_too_deeply_is_refused_when_it_is_called_from_python() -> None:
    elifs = "".join(f"    elif x > {number}: return x + {number}\n" for number in range(400))
    for body in (f"    return {'-' * 900}x\n", f"    if x > 1000: return x\n{elifs}    return -x\n"):
        with pytest.raises(Unsupported, match="this is nested too deeply to be compiled"):
            pc.program(function_of(f"def made(x):\n{body}", hash(body))).program(2.0)
