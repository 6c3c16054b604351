"""What the Python compilers compute is bounded, in size and in work: each refusal names the rule, at its place."""

from __future__ import annotations

import re
import resource
import time
from pathlib import Path
from typing import Any

import pytest

import punchcard
from punchcard.errors import ArgumentError, ProgramError, PunchcardError, shortened
from punchcard.python import limits
from punchcard.python.arrays import dry_run
from punchcard.python.files import assemble, assemble_arrays, read
from punchcard.python.limits import MOST_BITS, MOST_ENTRIES, Limits, Refusal
from punchcard.python.source import Unsupported
from tests.cases import file_with
from tests.command_line import invoke
from tests.python_random import function_of

HUGE = 10**5000
LONG = "f" * 4000
NP = "import numpy as np\n"
BITS, ITEMS, ENTRIES, WORK = "at most 1,000 bits", "at most 262,144 items", "at most 1,048,576", "computes too much"
INTEGERS = {
    f"def main():\n    x = 0x{LONG}\n    print(x)\n": BITS,
    f"def main():\n    x = 0b{'1' * 20_000}\n    print(x)\n": BITS,
    f"def main():\n    x = 0o{'7' * 5000}\n    print(x)\n": BITS,
    f"def main():\n    x = {'9' * 5000}\n    print(x)\n": BITS,
    f"X = -0x{LONG}\ndef main():\n    print(X)\n": BITS,
    "X = 10**5000\ndef main():\n    print(X)\n": BITS,
    "X = 1 << 10**12\ndef main():\n    print(X)\n": BITS,
    f"def f(n: int = 0x{LONG}) -> int:\n    return n\ndef main():\n    print(f())\n": BITS,
    f"if __name__ == 0x{LONG}:\n    pass\ndef main():\n    print(1)\n": BITS,
    "import punchcard as pc\n@pc.program(memory=10**5000)\ndef main():\n    print(1)\n": BITS,
    "X = [1]\n" + "X = [X, X]\n" * 40 + "def main():\n    print(X[0])\n": ITEMS,
    "X = [[0] * 60000] * 60000\ndef main():\n    print(X[0][0])\n": ITEMS,
    "A = [[]] * 2000\nB = [A] * 2000\ndef main():\n    print(len(B))\n": ITEMS,
    "X = range(10**30)\ndef main():\n    print(X[0])\n": ITEMS,
    "X = (1,)\n" + "X = [X]\n" * 70 + "def main():\n    print(X[0])\n": "at most 64 levels",
    f"X = {'[' * 80}{']' * 80}\ndef main():\n    print(len(X))\n": "at most 64 levels",
}
ARRAYS = {
    "def f():\n    return 10**400\n": BITS,
    NP + "def f():\n    return np.array([1.0]) * 10**400\n": BITS,
    "def f():\n    x = 3\n" + "    x = x * x\n" * 34 + "    return 1.0 * x\n": BITS,
    "def f():\n    a = (1, 2)\n" + "    a = (a, a)\n" * 40 + "    return 1.0 * len(a)\n": ITEMS,
    "def f():\n    a = ((0,) * 60000,) * 60000\n    return 1.0 * len(a)\n": ITEMS,
    "def f():\n    a = 'ab' * 10**12\n    return 1.0 * len(a)\n": ITEMS,
    "def f():\n    x = 0.0\n    for i in range(10**30):\n        x = x + 1.0\n    return x\n": "a loop of 10+ rounds",
    "def f():\n    return 1.0 * round(7, -10**9)\n": "round to",
    NP + "def f():\n    return np.ones(250000000)\n": ENTRIES,
    NP + "def f():\n    return np.eye(100000)\n": ENTRIES,
    NP + "def f():\n    return np.eye(2, M=10**9)\n": ENTRIES,
    NP + "def f():\n    return np.zeros((10**6, 10**6))\n": ENTRIES,
    NP + "def f():\n    return np.full(shape=(10**6, 10**6), fill_value=1.0)\n": ENTRIES,
    NP + "def f():\n    return np.arange(0.0, 1.0, 1e-12)\n": ENTRIES,
    NP + "def f():\n    return np.linspace(0, 1, 10**10)\n": ENTRIES,
    NP + "def f():\n    return np.diag([1, 2], k=10**6)\n": ENTRIES,
    NP + "def f():\n    return np.zeros(4, dtype='V1000000000')\n": "in the subset",
    NP + "def f():\n    x = np.ones(100000)\n    return np.outer(x, x)[0, 0]\n": ENTRIES,
    NP + "def f():\n    x = np.ones(100000)\n    return x[1:]\n": ENTRIES,
}
WORKS = (
    NP + "def f():\n    x = np.ones((1000, 1000))\n    for i in range(2000):\n        x = x @ x * 0.001\n"
    "    return x[0, 0]\n",
    "def f():\n    t = 0\n    for i in (1,) * 2000:\n        for j in (1,) * 2000:\n            t = t + j\n"
    "    return 1.0 * t\n",
)


@pytest.mark.parametrize("text", INTEGERS)
def test_integers_that_are_too_large_are_refused(text: str) -> None:
    _refused(assemble, text, INTEGERS[text])


@pytest.mark.parametrize("text", ARRAYS)
def test_arrays_that_are_too_large_are_refused(text: str) -> None:
    _refused(assemble_arrays, text, ARRAYS[text], "f")


@pytest.mark.parametrize("text", WORKS)
def test_work_is_bounded(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_WORK", limits.MOST_WORK // 50)
    monkeypatch.setattr(dry_run, "MOST_RUN_WORK", limits.MOST_RUN_WORK // 50)
    _refused(assemble_arrays, text, WORK, "f")


@pytest.mark.soak
@pytest.mark.parametrize("text", WORKS)
def test_work_is_bounded_to_seconds(text: str) -> None:
    _refused(assemble_arrays, text, WORK, "f")


def _refused(compile_text: Any, text: str, rule: str, call: str | None = None) -> None:
    """With a line of the source and a caret, in little time and memory."""
    started, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(Unsupported, match=rule) as caught:
        compile_text(text, "x.py", call=call)
    assert re.match(r"x\.py:\d+:\d+: ", str(caught.value))
    assert caught.value.pointed.endswith("^")
    assert caught.value.instead
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 256 << 10  # KiB
    assert time.process_time() - started < 15


@pytest.mark.parametrize("call", [f"f 0x{LONG}", f"f(0x{LONG})", f"f {'9' * 5000}", f"f [0x{LONG}]", "f 10**5000"])
@pytest.mark.parametrize("text", ["def f(n: int) -> int:\n    return n\n", "def f(n):\n    return n * 1.0\n"])
def test_arguments_that_are_too_large_are_refused(text: str, call: str, tmp_path: Path) -> None:
    path = file_with(tmp_path / "x.py", text)
    name, *words = call.split() if " " in call else [call]
    said = invoke("run", path, "--call", name, *words, status=2)
    assert said.stderr.startswith("punchcard: ")


def test_calls_from_python_raise_named_errors() -> None:
    whole = function_of("def made(n: int) -> int:\n    return n\n", 1)
    real = function_of("def made(x):\n    return x * 1.0\n", 2)
    nested: list[Any] = [1]
    for _ in range(40):
        nested = [nested, nested]
    for given in (HUGE, [HUGE], nested, (nested,)):
        with pytest.raises(PunchcardError):
            punchcard.program(whole)(given)
        with pytest.raises(PunchcardError):
            punchcard.program(real)(given)
    for function, option in (
            (whole, "memory"), (whole, "word_bits"), (whole, "max_steps"), (real, "range"), (real, "heads")):
        options: dict[str, Any] = {option: HUGE}
        with pytest.raises(ArgumentError, match=f"{option}=an integer of 16,610 bits"):
            punchcard.program(function, **options)


@pytest.mark.parametrize("body", ["return X", "return X + X", "return X[0]", "return len(X)"])
def test_names_outside_a_function_are_bounded(body: str) -> None:
    for seed, value in enumerate((HUGE, [HUGE], range(10**30))):
        for head in ("def made():", "def made() -> int:"):
            function = function_of(f"{head}\n    {body}\n", 10 + seed)
            function.__globals__["X"] = value
            with pytest.raises(ProgramError, match=r"bits|items"):
                punchcard.program(function)()


def test_the_memory_budget_holds_for_constants() -> None:
    text = NP + "def f():\n    x = np.ones(200000)\n    return x[0]\n"
    with punchcard.max_memory("1M"), pytest.raises(Unsupported, match=r"np.ones of 200,000 entries.*the budget is 1 MiB"):
        assemble_arrays(text, "x.py", call="f")
    many = NP + "def f():\n    x = 0.0\n" + "    x = x + np.sum(np.ones(100000))\n" * 20 + "    return x\n"
    with punchcard.max_memory("8M"), pytest.raises(Unsupported, match=r"with the constants before it"):
        assemble_arrays(many, "x.py", call="f")


def test_values_up_to_the_limits_are_computed() -> None:
    own, power = Limits(), int.__pow__
    assert own.combined("**", power, 2, MOST_BITS - 1) == 2 ** (MOST_BITS - 1)
    assert own.combined("*", int.__mul__, 2 ** (MOST_BITS - 1), 1) == 2 ** (MOST_BITS - 1)
    assert len(own.known("x" * MOST_ENTRIES)) == MOST_ENTRIES
    for sign, compute, left, right in (("**", power, 2, MOST_BITS), ("<<", int.__lshift__, 1, MOST_BITS),
                                       ("+", int.__add__, 2**MOST_BITS - 1, 1)):
        with pytest.raises(Refusal, match=BITS):
            own.combined(sign, compute, left, right)
    assert read("X = 2**900 - 1\n", "x.py").names["X"] == 2**900 - 1


def test_a_list_that_holds_itself_is_refused() -> None:
    items: list[Any] = []
    items.append(items)
    with pytest.raises(Refusal, match="at most 64 levels"):
        Limits().known(items)


@pytest.mark.parametrize(("sign", "left", "right", "why"), [
    ("%", "%5000000d", 5, "no text is formatted"), ("%", b"%5000000d", 5, "no text is formatted"),
    ("*", b"a", 5_000_000, ENTRIES), ("*", 5_000_000, b"a", ENTRIES)])
def test_a_text_that_is_too_long_is_not_made(sign: str, left: Any, right: Any, why: str) -> None:
    def compute(*given: Any) -> Any:
        pytest.fail(f"{given} was computed")

    with pytest.raises(Refusal, match=why):
        Limits().combined(sign, compute, left, right)


def test_bytes_count_as_a_text() -> None:
    with pytest.raises(Refusal, match=ENTRIES):
        Limits().known(b"a" * (MOST_ENTRIES + 1))


def test_the_search_for_lists_that_may_change_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts as work. Where it takes too much, every list is taken for one that may change."""
    text = "KEPT = 5\nLONG = [[0], [1]] * 9000\n" + "A = LONG\nB = [1]\nprint(B)\n" * 100
    found = read(text, "x.py")
    assert found.names["KEPT"] == 5
    assert isinstance(found.names["LONG"], list)
    assert found.limits.work > 100 * 18000 * limits.ITEM
    assert not isinstance(found.names["B"], list)
    monkeypatch.setattr(limits, "MOST_WORK", found.limits.work // 2)
    names = read(text + "\n", "x.py").names
    assert names["KEPT"] == 5
    assert not any(isinstance(names[name], list) for name in ("LONG", "A", "B"))


def test_a_list_is_looked_through_once_for_all_its_names() -> None:
    text = "LONG = [[0], [1]] * 9000\n" + "".join(f"A{i} = LONG\n" for i in range(1000)) + "B = [1]\nprint(B)\n"
    found = read(text, "x.py")
    assert found.names["A999"] is found.names["LONG"]
    assert not isinstance(found.names["B"], list)
    assert found.limits.work < 2_000_000  # a search costs 144,000


def test_values_are_shown_as_far_as_they_are_short() -> None:
    nested: list[Any] = [1]
    for _ in range(60):
        nested = [nested, nested]
    assert shortened(nested) == "[" * 40 + "..."
    assert shortened(HUGE) == "an integer of 16,610 bits"
    assert shortened([HUGE, (1,), (), [2.5, "a"]], 80) == "[an integer of 16,610 bits, (1,), (), [2.5, 'a']]"


def test_a_warning_of_python_is_printed_once_with_its_place(tmp_path: Path) -> None:
    path = file_with(tmp_path / "x.py", "def main():\n    x = 1\n    print(1if x else 2)\n")
    with pytest.warns(SyntaxWarning) as said:
        assert invoke("asm", path).exit_code == 0
    assert [(warning.filename, warning.lineno) for warning in said] == [(str(path), 3)]
    path.write_text("def main():\n    x = 1\n    print(1if x else '\x1b[31m')\n")
    with pytest.warns(SyntaxWarning) as said:
        invoke("asm", path)
    assert [warning.filename for warning in said] == [f"<{path}>"]  # the line itself would change the terminal


@pytest.mark.parametrize(("name", "line"), [("np", "import numpy as np"), ("math", "import math"),
                                            ("pc", "import punchcard as pc")])
def test_a_module_that_is_not_imported_is_named(name: str, line: str) -> None:
    with pytest.raises(Unsupported, match=f"unknown name '{name}'; write `{line}` at the top of the file"):
        assemble_arrays(f"def f():\n    return {name}.ones(3)\n", "x.py", call="f")
    for line_of_main in (f"x = {name}.ones(3)", f"print({name}.linalg.norm(3))", f"print({name}.pi)"):
        with pytest.raises(Unsupported, match=f"x.py:2:.* unknown name '{name}'; write `{line}` at the top of the file"):
            assemble(f"def main():\n    {line_of_main}\n", "x.py")


@pytest.mark.parametrize(("option", "rule"), [
    ("wordbits=16", r"unknown option 'wordbits' \(did you mean 'word_bits'\?\)"),
    ("check='maybe'", "it must be True or False"),
    ("memory=10**18", "memory=1000000000000000000: with words of 32 bits .* 3 to 16777216 cells"),
    ("word_bits=12, memory=4096", "memory=4096: with words of 12 bits .* 3 to 2047 cells"),
    ("word_bits=3", "12 to 47 bits"), ("engine='nope'", "unknown engine 'nope'"), ("max_steps=-1", "it must be 0 or more"),
    ("machine='x'", "'fleq' or 'von-neumann'"), ("3", "takes its options by name"),
    ("machine='fleq', heads=9", "at most 3"), ("machine='fleq', design='nope'", "unknown design 'nope'"),
    ("machine='fleq', memory=5", "unknown option 'memory'"),
])
@pytest.mark.parametrize("text", [
    "@program({})\ndef main():\n    print(1)\n",
    "@program({})\ndef helper(n: int) -> int:\n    return n\ndef main():\n    print(helper(1))\n"])
def test_options_of_the_decorator_are_checked_where_they_stand(option: str, rule: str, text: str) -> None:
    """Also those of a function that is called, and not only of the one that runs."""
    with pytest.raises(Unsupported, match=rf"x\.py:1:\d+: .*{rule}"):
        assemble(text.format(option), "x.py")
