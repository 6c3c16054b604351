"""Functions of integers: the same values and the same output as CPython, or an error by name."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import punchcard
from punchcard.errors import PunchcardError, SourceError
from punchcard.machines.streams import reader
from punchcard.machines.von_neumann.languages.asq.assembler import assemble
from punchcard.machines.von_neumann.oracle import ImageInterpreter
from punchcard.python.files import read, split_call
from punchcard.python.integers.compiler import CompiledIntegers, compile_function
from punchcard.python.integers.program import IntegerProgram, RunError
from tests.cases import soaked
from tests.python_corpus.integers import CORPUS
from tests.python_random_integers import Program, TooLong, run_by_python
from tests.tally import SAME, Tally

MEMORY = 16384
LONG = {"life", "queens"}
"""Programs of very many steps."""


def program_of(text: str, name: str = "f", function: Any = None) -> IntegerProgram:
    return IntegerProgram(read(text, "test.py").functions[name], function, memory=MEMORY)


@pytest.mark.parametrize("name", CORPUS)
def test_programs_do_what_python_does(name: str) -> None:
    """On the transformer, lowered; all on one machine."""
    case, rng = CORPUS[name], random.Random(name)
    names: dict[str, Any] = {}
    exec(case.text, names)
    made = program_of(case.text, case.entry, names[case.entry])
    for _ in range(case.times):
        report = made.run(*case.arguments(rng), input=case.input(rng), engine="lowered",
                          check="end" if name not in LONG else False)
        assert report.same_as_python, report
        assert not isinstance(report.expected, Exception)
        assert report.agrees is not False


def test_the_corpus_is_large_enough() -> None:
    assert len(CORPUS) >= 40
    assert {"sieve", "quicksort", "gcd", "collatz", "queens", "matrix product", "reverse input", "prime factors", "life",
            "fizzbuzz", "ackermann", "calculator"} <= CORPUS.keys()


@pytest.mark.parametrize("name", [soaked(name) if number % 2 else name for number, name in enumerate(CORPUS)])
def test_the_listing_assembles_to_the_program(name: str) -> None:
    """The compiler hands items to the assembler; the text that it shows has the same words. Half of them; all in soak."""
    case = CORPUS[name]
    code = compile_function(read(case.text, "test.py").functions[case.entry], {}, word_bits=20, check=True)
    assert assemble(code.listing, word_bits=20).words == code.program.words


def run_compiled(code: CompiledIntegers) -> tuple[Any, str]:
    """What a program returns, or the name of its error; and what it writes. On the interpreter."""
    made = ImageInterpreter(code.program, code.word_bits, code.memory, read=reader(b""))
    made.run(2_000_000)
    written, labels = made.output.decode(), code.program.labels
    if made.stop == "fault":
        at = made.cells[labels["error"]]
        said = next(message for label, message in code.errors.items() if labels[label] == at)
        return said.split(": ")[1], written[: written.rindex("\n" + said)]
    assert made.stop == "halted"
    half = 1 << (code.word_bits - 1)
    return (made.cells[labels[code.places[0]]] + half) % (2 * half) - half, written


def compare_random(seed: int, bits: int = 14, *, large: float = 0.0) -> str:
    """A random program on the interpreter beside Python; what became of it: "same", or why it was not run."""
    rng = random.Random(seed)
    text, check = Program(rng, bits, large).text, rng.random() < 0.4
    half = 1 << (bits - 1)
    arguments = (rng.choice((rng.randint(-20, 20), rng.randint(-half, half - 1))), rng.randint(-9, 9),
                 [rng.randint(-50, 50) for _ in range(4)])
    try:
        named = dict(zip(("a", "b", "items"), arguments, strict=True))
        code = compile_function(read(text, "x.py").functions["f"], named, word_bits=bits, check=check)
    except SourceError:
        pytest.fail(f"the text of seed {seed} does not assemble")
    except PunchcardError as error:
        return str(error)
    try:
        expected = run_by_python(text, copy.deepcopy(arguments), bits, check=check)
    except (TooLong, MemoryError, OverflowError):
        return "too long"
    assert run_compiled(code) == expected, f"seed {seed}, {arguments}, check={check}\n{text}"
    return SAME


RANDOM = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


@settings(RANDOM, max_examples=40)
@given(st.integers(0, 2**32))
def test_random_programs(seed: int) -> None:
    compare_random(seed)


@pytest.mark.soak
def test_many_random_programs() -> None:
    tally = Tally()

    @settings(RANDOM, max_examples=1_000)
    @given(st.integers(0, 2**32))
    def each(seed: int) -> None:
        tally.add(compare_random(seed, 16))

    each()
    tally.show()
    assert tally.ran > 0.85


def test_most_random_programs_are_not_refused() -> None:
    became = [compare_random(seed) for seed in range(8)]
    assert became.count(SAME) >= 5, became


# Calls

@punchcard.program
def gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


@punchcard.program(word_bits=16, memory=4096, check=True)  # type: ignore[untyped-decorator]
def factorial(n: int, start: int = 1) -> int:
    """The product of start to n."""
    return start if n < 2 else n * factorial(n - 1, start)


def test_a_number_that_wraps_is_not_python_s() -> None:
    report = program_of("def f(a):\n    return a + a\n", function=lambda a: a + a).run(1 << 30, engine="lowered")
    assert (report.result, report.expected, report.same_as_python) == (-(1 << 31), 1 << 31, False)
    assert "same        NO: as CPython, which gives 2147483648" in str(report)


def test_a_call_runs_on_the_machine() -> None:
    assert gcd(1071, 462) == 21
    report = gcd.run(1071, b=462)
    assert (report.result, report.expected, report.same_as_python, report.agrees) == (21, 21, True, True)
    assert gcd.__wrapped__(12, 18) == 6
    assert gcd.machine() is gcd.machine()
    text = gcd.lower()
    assert "a, b = b, a % b" in text
    assert "@go divide" in text
    assert "multiply" not in text


def test_overflow_is_an_error_or_wraps() -> None:
    assert factorial(7) == 5040
    with pytest.raises(RunError, match=r"test_python_integers.py:\d+: OverflowError: .* 16 bits"):
        factorial(8)
    assert factorial.with_options(check=False)(8) == 40320 - 65536


def test_the_first_argument_of_print_that_fails_is_told() -> None:
    """A checked sum fails as early as a call or an index does, which come after it here."""
    text = "def f(a: int, items: list[int]) -> int:\n    print('sum', a + 1, items[a])\n    return 0\n"
    code = compile_function(read(text, "x.py").functions["f"], {"a": 2**15 - 1, "items": [1]}, word_bits=16, check=True)
    assert run_compiled(code) == ("OverflowError", "")


def test_arguments_are_checked() -> None:
    for arguments, said in (((1,), r"gcd\(\) missing 1 required argument: 'b'"),
                            ((1, 2, 3), "takes 2 positional arguments but 3 were given"),
                            ((1, 2**40), "does not fit a word"),
                            ((1, "x"), "it must be an integer"), ((1, 2.5), "it must be an integer")):
        with pytest.raises(PunchcardError, match=said):
            gcd(*arguments)
    with pytest.raises(PunchcardError, match=r"gcd\(\) got an unexpected keyword argument 'c'"):
        gcd(1, c=2)
    with pytest.raises(PunchcardError, match=r"gcd\(\) got multiple values for argument 'a'"):
        gcd(1, a=2)
    decorate: Any = punchcard.program
    for options, said in (({"word_bit": 3}, "unknown option 'word_bit'"), ({"word_bits": 8}, "12 to 47 bits"),
                          ({"check": 1}, "check=1: it must be True or False"),
                          ({"word_bits": "x"}, "program: word_bits='x': it must be an integer or None")):
        with pytest.raises(PunchcardError, match=said):
            decorate(**options)(gcd.__wrapped__)


def test_weights_do_not_depend_on_the_program() -> None:
    assert program_of("def f(a: int):\n    return a\n").machine() is program_of("def f():\n    print(1)\n").machine()


# Errors at run time, which name their line

@pytest.mark.parametrize(("body", "arguments", "said"), [
    ("return 7 // a", (0,), "test.py:2: ZeroDivisionError"),
    ("x = [1, 2]\n    return x[a]", (2,), "test.py:3: IndexError"),
    ("x = [1, 2]\n    return x[a]", (-3,), "test.py:3: IndexError"),
    ("for i in range(0, 5, a):\n        pass\n    return a", (0,), "test.py:2: ValueError: the step of range"),
    ("for i in range(0, 5, a - 1):\n        pass\n    return a", (0,), "test.py:2: ValueError: the step of range"),
    ("return 1 << a", (-1,), "test.py:2: ValueError: negative shift"),
    ("return 2 ** a", (-1,), "test.py:2: ValueError: a negative power"),
    ("print(chr(a))\n    return 0", (200,), "test.py:2: ValueError: chr"),
    ("assert a > 3, 'too small'\n    return 0", (3,), "test.py:2: AssertionError: too small"),
    ("x = [0] * a\n    return len(x)", (30000,), "MemoryError"),
    ("return int(input())", (0,), "EOFError"),
    ("x = [0] * a\n    return max(x)", (0,), "test.py:3: ValueError: the list is empty"),
])
def test_errors_name_their_line(body: str, arguments: tuple[int, ...], said: str) -> None:
    with pytest.raises(RunError, match=said):
        program_of(f"def f(a: int) -> int:\n    {body}\n").run(*arguments)


def test_a_bad_number_and_deep_recursion() -> None:
    read = program_of("def f() -> int:\n    return int(input())\n")
    assert read.run(input=b"  -42 \n").result == -42
    for bad in (b"4x\n", b"\n", b"99999999999\n", b"- 5\n", b"2147483648\n"):
        with pytest.raises(RunError, match="ValueError"):
            read.run(input=bad)
    assert read.run(input=b"-2147483648").result == -(2**31)
    code = program_of("def f(c: str) -> int:\n    return ord(c)\n")
    assert code("a") == 97
    for text in ("", "ab"):
        with pytest.raises(RunError, match=r"test.py:2: TypeError: ord\(\) of a text that is not one character"):
            code(text)
    with pytest.raises(RunError, match="RecursionError"):
        program_of("def f(n: int) -> int:\n    return n if n < 0 else 1 + f(n + 1)\n")(0)
    with pytest.raises(PunchcardError, match="never returns"):
        program_of("def f(n: int) -> int:\n    return 1 + f(n + 1)\n")(0)


# What is refused, with its place

@pytest.mark.parametrize(("body", "said"), [
    ("return a / 2", r"test.py:2:12: / is not in the integer subset; use //"),
    ("return a + 1.5", r"2:16: float 1.5 is not in the integer subset; use whole numbers"),
    ("x = {1: 2}\n    return a", "2:9: a dictionary is not in"),
    ("x = []\n    return a", r"2:9: an empty list has no use here"),
    ("x = [1]\n    x.append(a)\n    return a", r"3:5: .append\(\) is not in .* fixed length"),
    ("return lambda: a", "2:12: a lambda is not in"),
    ("for i in range(3):\n        x = i\n    return y", "4:12: unknown name 'y'"),
    ("if a:\n        x = 1\n    return x", "4:12: 'x' may have no value here"),
    ("return a[0]", "a number|an int cannot be indexed"),
    ("x = 'ab' + 'c'\n    return a", r"\+ needs numbers, and this is a str"),
    ("try:\n        pass\n    except ValueError:\n        pass\n    return a", "2:5: try is not in"),
    ("global x\n    return a", "names outside a function are constants"),
    ("return f(a, 1)", r"f\(\) takes 1 positional argument but 2 were given"),
    ("return g(a)", "unknown name 'g'"),
    ("for i in range(0, 5, min(a, 0)):\n        pass\n    return a", "above 0 or below"),
    ("x = [1, 'ab']\n    return a", "lists hold values of one type"),
    ("return 3000000000", "3000000000 does not fit a word"),
    ("print(f'{a:3}')\n    return a", "formats such as"),
    ("x = str(a)\n    return a", r"str\(\) makes a text that cannot be kept"),
    ("x = a if a else 'b'\n    return a", "of different types"),
    ("return a // 0", "division by zero"),
    ("x = [1, 2, 3]\n    return x[5]", "the index 5 is out of range: the list has 3 items"),
    ("x = a < 3\n    x = x and a\n    print(x)\n    return a", "an int or a bool cannot be printed"),
    ("return (yield)", "yield is not in"),
    ("x = input()\n    return x[1:]", "slices are not in"),
    ("return a is None", "None|`is` is not in"),
    ("while (a := a - 1):\n        pass\n    return a", ":= is not in"),
])
def test_what_is_refused(body: str, said: str) -> None:
    with pytest.raises(PunchcardError, match=said) as caught:
        program_of(f"def f(a: int) -> int:\n    {body}\n").lower()
    assert "\n" not in str(caught.value)


# Files

FILE = """import os
os.abort()
LIMIT = 2 * 3
TABLE = [LIMIT, LIMIT + 1]

def gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a

def greet(name: str):
    print("hello", name, TABLE[1])

def main():
    print(LIMIT, gcd(12, 18))

if __name__ == "__main__":
    os.abort()
"""


def test_a_file_is_parsed_and_never_executed(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(FILE)
    image = punchcard.load(tmp_path / "prog.py", word_bits=16, memory=4096)
    assert punchcard.run(image).result.output == b"6 6\n"
    called = punchcard.load(tmp_path / "prog.py", call="gcd(1071, 462)", word_bits=16, memory=4096)
    assert punchcard.run(called).result.output == b"21\n"
    assert (called.word_bits, called.memory) == (16, 4096)
    greeting = punchcard.load(tmp_path / "prog.py", call="greet 'Ada L.'", word_bits=16, memory=4096)
    assert punchcard.run(greeting).result.output == b"hello Ada L. 7\n"
    assert "print(LIMIT" in image.listing


@pytest.mark.parametrize(("text", "call", "said"), [
    ("def f(:\n", None, "prog.py:1:7: this is not Python"),
    ("x = 1\n", None, r"there is neither main\(\) nor"),
    ("x = 1\nasync def main():\n    return 1\n", None, "prog.py:2:1: main is not a function that is defined by a"),
    ("if x:\n    def f(a: int):\n        return a\n", "f 1", "prog.py:2:5: f is not a function that is defined by"),
    ("def f(a: int):\n    a, *b = 1, 2, 3\n    return a\n", "f 1", r"prog.py:2:8: \* in a target is not in the integer"),
    ("def f(a: int):\n    (a, *b), c = (1, 2), 3\n    return a\n", "f 1", r"prog.py:2:9: \* in a target"),
    ("def f(a: int):\n    return a\n", "g 1", "there is no function 'g'"),
    ("def f(a: int):\n    return a\n", "f(x)", r"call='f\(x\)'"),
    ("def f(a: int):\n    return a\n", "f x", "a='x': it must be an integer"),
    ("@cache\ndef f(a: int):\n    return a\n", "f 1", "the only decorator of a function in a program file is @program"),
    ("@pc.program(word_bits=n())\ndef f(a: int):\n    return a\n", "f 1", "must be a constant"),
    ("def f(a: int):\n    return a\n" + "x = " + "(" * 300 + "1" + ")" * 300, "f 1", "prog.py"),
])
def test_bad_files_are_refused(tmp_path: Path, text: str, call: str | None, said: str) -> None:
    (tmp_path / "prog.py").write_text(text)
    with pytest.raises(PunchcardError, match=said):
        punchcard.load(tmp_path / "prog.py", call=call)


def test_calls_as_text() -> None:
    assert split_call("gcd(1, -2)") == ("gcd", [1, -2])
    assert split_call("f 1 '[1, 2]' word") == ("f", [1, [1, 2], "word"])
    with pytest.raises(PunchcardError, match="write a name and constants"):
        split_call("'")
