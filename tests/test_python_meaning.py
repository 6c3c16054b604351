"""Small programs of integers whose meaning is easily lost: order, names that collide, what a file changes at its top."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pytest

import punchcard
from punchcard.errors import PunchcardError
from punchcard.python.files import read
from punchcard.python.integers.compiler import compile_function
from punchcard.python.source import FunctionSource
from tests.test_python_integers import run_compiled

SAME = {
    "a default below 0": "def g(a: int = -4) -> int:\n    return a\ndef f(a: int = -1) -> int:\n    return 10 * a + g()\n",
    "a variable called result": """
def f(n: int = 3) -> int:
    result = n
    x = 0
    if n > 0:
        x = f(n - 1)
    return result * 10 + x
""",
    "variables called as results": """
def g(n: int) -> int:
    result = n
    result1 = n + 1
    return result1, result
def f() -> int:
    a, b = g(3)
    return a * 10 + b
""",
    "a function called as cells of another": """
def g_left(n: int) -> int:
    x = [1, 2, 3]
    return x[n % 3] + x[(n + 1) % 3] - x[(n + 2) % 3]
def f() -> int:
    return g(2)
def g(n: int) -> int:
    s = 0
    for i in range(n):
        for j in range(n):
            for k in range(2):
                s += g_left(i + j + k)
    return s
""",
    "an item is read before the right side": """
def g(x: list[int]) -> int:
    x[0] = 10
    return 2
def f() -> int:
    x = [3, 4]
    x[0] += g(x)
    y = [3, 4]
    y[0] *= g(y)
    return x[0] * 100 + y[0]
""",
    "a list in a test": """
def g(x: list[int]) -> int:
    x[0] += 1
    return x[0]
def f() -> int:
    i = 0
    while g([0]) < 3 and i < 5:
        i += 1
    return i
""",
    "tuples and bools are printed": """
def g(n: int) -> int:
    t = (1, 2)
    if n:
        t = (3,)
    print(t, (0,) * 3, max([n > 0, False]))
    return n
def f() -> int:
    return g(0) + g(1)
""",
    "the remainder fits where the quotient does not": "def f(a: int = -32768, b: int = -1) -> int:\n    return a % b + 5\n",
    "the number of a text of one character": """
def g(c: str) -> int:
    return ord(c) * 2
def f() -> int:
    return g("a") + ord("b") - g(chr(65))
""",
    "one list in two places": "T = [[0] * 2] * 2\nU = T\ndef f() -> int:\n    T[0][0] = 5\n    return U[1][0]\n",
    "several values by a choice": """
def two(n: int):
    print("two", n)
    return n, n + 1
def h(s: str, n: int):
    return s[n], n
def k(s: str, n: int):
    if n:
        return s[0], 3
    return h(s, 1)
def g(t: int):
    return two(1) if t else two(2)
def r(n: int):
    return r(n - 1) if n > 0 else (n + 7, 9)
def q(n: int):
    if n > 2:
        return two(n)
    p = (n, 5)
    return p
def nested(t: int, u: int):
    return two(t) if t else (4, 5) if u else divmod(17, 5)
def f() -> int:
    for t in range(2):
        a, b = two(1) if t else two(2)
        print(a, b)
        a, b = divmod(7, 2) if t else (3, 4)
        print(a, b)
        a, b = two(3) if t else (b, a)
        print(a, b)
        a, b = c, d = two(10) if t else (b, a)
        print(a, b, c, d)
        a, b = g(t)
        print(a, b)
        a, b = r(2 + t)
        print(a, b)
        a, b = q(2 + t)
        print(a, b)
        for u in range(2):
            a, b = nested(t, u)
            print(a, b)
            a, b = nested(t, u) if u else [8, t]
            print(a, b)
        s = "abc"
        s, n = h("xyz", t)
        print(s, n)
        s, n = k("pq", t)
        print(s, n)
        s, n = ("uv", 1) if t else h("xyz", t)
        print(s, n)
        x, y = c, d = two(20)
        print(x, y, c, d)
        w = [0, 0]
        w[0], w[1] = two(30) if t else (w[1], w[0] + 1)
        print(w)
    return 0
""",
}
REFUSED = {
    "N = 1\nN += 1\ndef f() -> int:\n    return N\n": "computed when the file is executed",
    "T = [1, 2]\nU = T\nU[0] = 5\ndef f() -> int:\n    return T[0]\n": "computed when the file is executed",
    "T = [2, 1]\nT.sort()\ndef f() -> int:\n    return T[0]\n": "computed when the file is executed",
    "N = 1\nif N:\n    N = 5\ndef f() -> int:\n    return N\n": "computed when the file is executed",
    "N = 1\nN, M = sorted([3, 4])\ndef f() -> int:\n    return N\n": "computed when the file is executed",
    "N = 1\nfrom os import N\ndef f() -> int:\n    return N\n": "unknown name 'N'",
    "from math import pow\ndef f() -> int:\n    return pow(2, 3)\n": "not a function written in Python",
    "def range(n: int) -> int:\n    return 1\ndef f() -> int:\n    return range(3)\n": "is built in",
    "def f() -> int:\n    x = [1, 2]\n    for i in x:\n        x = (1, 2)\n    print(x)\n    return 1\n": "different types",
    "def f() -> int:\n    x = [int(c) for c in input()]\n    return x[0]\n": "give it a name before",
    "def f() -> int:\n    print('\\ud800')\n    return 1\n": "surrogate",
    "def g(n: int):\n    return n, 1\ndef f() -> int:\n    (a, b), c = g(1), 2\n    return b\n":
        "in a statement of their own",
    "def g(n: int):\n    return n, 1\ndef f() -> int:\n    a = g(1) if input() else g(2)\n    return 1\n": "unpack them",
    "def f() -> int:\n    return f\n": "'f' is a function, not a constant",
    "def g(n: int):\n    return n, 1\ndef f() -> int:\n    a, b = g(1) if g(1) else [1, 2]\n    return 1\n":
        "cannot be a condition",
    "def g(n: int):\n    return n, 1\ndef f() -> int:\n    a, b = g(1) if input() else (1, 2, 3)\n    return 1\n":
        "2 names for 3",
    "N = 3\ndef f(n: int = N) -> int:\n    return n\n": "a default must be",
}


@pytest.mark.parametrize("name", SAME)
def test_programs_mean_what_they_mean_in_python(name: str) -> None:
    names: dict[str, Any] = {}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(SAME[name], names)
        expected = names["f"]()
    for check in (False, True):
        code = compile_function(read(SAME[name], "x.py").functions["f"], {}, word_bits=16, check=check)
        assert run_compiled(code) == (expected, out.getvalue())


LIMIT = 3


@punchcard.program
def limited(a: int) -> int:
    return a + LIMIT


def both(a: list[int], b: list[int]) -> int:
    a[0] = 5
    return b[0]


def test_names_outside_are_looked_up_in_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limited(1) == 4
    monkeypatch.setitem(limited.__wrapped__.__globals__, "LIMIT", 30)
    assert limited(1) == 31
    with pytest.raises(PunchcardError, match="a=None"):
        limited(None)


def test_a_list_that_is_given_twice_is_one_list() -> None:
    items = [1, 2]
    code = compile_function(FunctionSource.of(both), {"a": items, "b": items}, word_bits=16)
    assert run_compiled(code) == (5, "")


@pytest.mark.parametrize("text", REFUSED)
def test_what_would_mean_something_else_is_refused(text: str) -> None:
    with pytest.raises(PunchcardError, match=REFUSED[text]):
        compile_function(read(text, "x.py").functions["f"], {}, word_bits=16)
