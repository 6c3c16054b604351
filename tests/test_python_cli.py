"""`.py` files on the command line: run, call, assembled; what is wrong is one line and status 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import punchcard
from punchcard.machines.kind import Kind, Language
from punchcard.machines.registry import Registry
from punchcard.machines.streams import reader
from punchcard.machines.von_neumann.oracle import ImageInterpreter
from punchcard.python.files import assemble_arrays
from tests.cases import file_with
from tests.command_line import assert_refused, invoke

FILE = """import sys
sys.exit("this file was executed")

def double(x: int) -> int:
    return 2 * x

def total(items: list[int]) -> int:
    return sum(items)

def scaled(A):
    return 2 * A

def main():
    name = input("name? ")
    print("hello,", name)
    print(double(len(name)))
"""
CALLING = """RATE = 0.5

def half(x, times=1):
    for _ in range(times):
        x = RATE * x
    return x

def both(u):
    return half(u) + half(half(u), times=2)

def count(n: int) -> int:
    return n

def wrong(u):
    return count(u)
"""
SMALL = ("--bits", "16", "--memory", "4096")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return file_with(tmp_path / "prog.py", FILE)


def test_main_runs_with_input(file: Path) -> None:
    result = invoke("run", file, *SMALL, "--engine", "lowered", given="Ada\n")
    assert (result.stdout, result.exit_code) == ("name? hello, Ada\n6\n", 0)


@pytest.mark.parametrize(("body", "printed"), [
    ("return 42", "42\n"), ("print(1)\n    return 2 > 1", "1\nTrue\n"), ("print(3)\n    return", "3\n")])
def test_what_main_returns_is_printed(tmp_path: Path, body: str, printed: str) -> None:
    path = file_with(tmp_path / "prog.py", f"def main():\n    {body}\n")
    assert invoke("run", path, *SMALL).stdout == printed


def test_a_call_prints_its_result(file: Path) -> None:
    assert invoke("run", file, "--call", "double", "-21", *SMALL).stdout == "-42\n"
    assert invoke("run", file, *SMALL, "--call", "total([1, 2, 39])").stdout == "42\n"
    facts = json.loads(invoke("run", file, "--call", "total", "[]", *SMALL, "--json").stdout)
    assert (facts["output"], facts["word_bits"]) == ("0\n", 16)
    assert "total_result" in facts["memory"]


def test_a_function_of_arrays_runs_on_the_other_machine(file: Path) -> None:
    program = punchcard.load(file, call="scaled([[1.0, 2.0]])")
    assert type(program).__name__ == "FleqProgram"


def test_an_error_of_the_program_is_told_at_the_end(file: Path) -> None:
    result = invoke("run", file, *SMALL, status=1)
    assert "EOFError: the input has ended" in result.stdout
    assert "stopped after" in result.stderr
    checked = invoke("run", file, "--call", "double", "20000", "--check-overflow", *SMALL)
    assert "prog.py:5: OverflowError" in checked.stdout
    assert invoke("run", file, "--call", "double", "20000", *SMALL).stdout == "-25536\n"


def test_a_program_is_written_and_runs_again(file: Path, tmp_path: Path) -> None:
    shown = invoke("asm", file, "--call", "double", "4").stdout
    assert "# 5: return 2 * x" in shown
    for name in ("out.asq", "out.dec"):
        assert invoke("asm", file, "--call", "double", "4", "-o", tmp_path / name).exit_code == 0
        assert invoke("run", tmp_path / name, "--bits", "32", "--memory", "8192").stdout == "8\n"


@pytest.mark.parametrize(("arguments", "said"), [
    (("--call", "doubel", "1"), "there is no function 'doubel' (did you mean 'double'?)"),
    (("--call", "double", "x"), "x='x': it must be an integer"),
    (("--call", "double", "99999"), "does not fit a word of 16 bits"),
    (("--call", "double"), "double() missing 1 required argument: 'x'"),
    (("--tape", "3"), "--tape is not for .py programs"),
])
def test_what_is_wrong_is_one_line(file: Path, arguments: tuple[str, ...], said: str) -> None:
    assert_refused(said, "run", file, *arguments, *SMALL)


def test_the_usual_words_have_32_bits(file: Path) -> None:
    assert invoke("run", file, "--call", "double", "1000000000", "--memory", "8192").stdout == "2000000000\n"


def test_languages_may_share_an_extension_where_texts_tell_them_apart(tmp_path: Path) -> None:
    def kind(name: str, mark: str, *, tells: bool = True) -> Kind:
        def owns(text: str, source: str) -> bool:
            return mark in text

        language = Language(name, (".two",), lambda text, source: text, owns=owns if tells else None)
        return Kind(name, name, type(name, (), {}), [language], str)

    (tmp_path / "x.two").write_text("b")
    assert Registry([kind("a", "a"), kind("b", "b")]).language_of(tmp_path / "x.two")[0].name == "b"
    with pytest.raises(punchcard.PunchcardError, match="is claimed by 'a' and by 'b'"):
        Registry([kind("a", "a"), kind("b", "b", tells=False)])


EXAMPLES = Path(__file__).parent.parent / "examples" / "python"
INPUTS = {"sort": b"6\n5\n3\n-7\n30000\n0\n5\n", "expression": b"2*(3+4)-5\n"}
OUTPUTS = {"primes": "2 3 5 7 11 13 17 19 23 29", "factorial": "1 2 6 24 120 720 5040", "sort": "-7 0 3 5 5 30000",
           "gcd": "21", "queens": "4", "expression": "> 9",
           "life": "........ ..#..... ...#.... .###.... ........ ........ ........ ........"}


@pytest.mark.parametrize("name", OUTPUTS)
def test_examples_give_their_results_in_the_steps_that_the_docs_say(name: str) -> None:
    """On the interpreter; the corpus runs such programs on the transformer."""
    image = punchcard.load(EXAMPLES / f"{name}.py", word_bits=16, call="gcd 1071 462" if name == "gcd" else None)
    ran = ImageInterpreter(image, 16, image.memory or 0, read=reader(INPUTS.get(name, b"")))
    ran.run(1_000_000)
    assert (ran.stop, ran.output.decode().split()) == ("halted", OUTPUTS[name].split())
    table = (EXAMPLES.parent.parent / "docs" / "python.md").read_text()
    row = next(line for line in table.splitlines() if line.startswith(f"| `examples/python/{name}.py`"))
    assert f"| {len(image):,} | {ran.steps:,} |" in row


ARRAYS = """import numpy as np
import punchcard as pc
from punchcard.arrays import eye
from os import abort

@pc.program
def inverse():
    A = np.array([[4.0, 1.0], [2.0, 3.0]])
    X = 0.05 * A.T
    for _ in range(8):
        X = X @ (2 * eye(2) - A @ X)
    return X + 0 * pc.arrays.ones((2, 2))

@pc.program
def stops():
    return abort()
"""


def test_a_main_of_arrays_is_one_by_what_it_calls(tmp_path: Path) -> None:
    path = tmp_path / "prog.py"
    path.write_text("import numpy as np\ndef main():\n    return np.array([1.5, 2.0]) + np.array([0.25, 1.0])\n")
    ran = invoke("run", path, status=0)
    assert "1.75" in ran.stdout


def test_a_file_of_arrays_may_name_numpy_and_punchcard(tmp_path: Path) -> None:
    """And no other module: what the file imports is not imported."""
    path = file_with(tmp_path / "inverse.py", ARRAYS)
    program = punchcard.load(path, call="inverse")
    assert program.functions
    result = invoke("run", path, "--call", "stops", status=2)
    assert "abort" in result.output


@pytest.mark.parametrize(("line", "name"), [
    ("import punchcard.arrays", "punchcard.arrays.sigmoid"), ("import punchcard.arrays as pa", "pa.sigmoid"),
    ("from punchcard import arrays", "arrays.sigmoid"), ("from punchcard.arrays import sigmoid", "sigmoid"),
    ("import punchcard as pc", "pc.arrays.sigmoid")])
def test_functions_of_arrays_are_found_under_every_name(tmp_path: Path, line: str, name: str) -> None:
    path = file_with(tmp_path / "prog.py", f"{line}\n\n\ndef f(X):\n    return {name}(X)\n")
    assert "sigmoid(" in assemble_arrays(path.read_text(), "prog.py", call="f 0.5").listing


def test_the_place_of_an_error_is_shown(tmp_path: Path) -> None:
    """Lines are counted as Python does: a form feed begins none."""
    path = file_with(tmp_path / "prog.py", "def main():\n    a = 1\x0c\n    b = a / 2\n")
    said = invoke("run", path).stderr.splitlines()
    assert said[0].startswith("punchcard: prog.py:3:9: / is not in the integer subset")
    assert said[1:] == ["    b = a / 2", "        ^"]
    path.write_text("@program(machine='foo')\ndef main():\n    print(1)\n")
    assert "prog.py:1:2: machine='foo'; it must be 'fleq' or 'von-neumann'" in invoke("run", path).stderr
    path.write_text("#" * (1 << 20) + "\n")
    assert "prog.py: the file has 1,048,577 characters" in invoke("run", path).stderr


def test_instructions_know_their_lines(tmp_path: Path) -> None:
    """A view marks the line of the Python source."""
    path = file_with(tmp_path / "prog.py", ARRAYS)
    program = punchcard.load(path, call="inverse")
    listing = punchcard.build(program).listing(program, ARRAYS)
    assert {item.line for item in listing.instructions} == {10, 11}, "the others are constants"
    path.write_text(FILE)
    program = punchcard.load(path, call="double 3", word_bits=16, memory=4096)
    listing = punchcard.build(program).listing(program, FILE)
    assert {item.line for item in listing.instructions} == {5}
    assert program.lines[-1] == 0, "data belong to no line"


RETURNS = """import punchcard as pc
FIRST, SECOND = range(2)
HALF, = (0.5,)

@pc.program(heads=2)
def both(A):
    B = HALF * A.T
    return B, B[FIRST] @ B[SECOND]
"""


@pytest.mark.parametrize("matrix", ["[[1, 2], [3, 4]]", "1 2 ; 3 4"])
def test_a_run_shows_what_the_function_returns_and_not_its_temporaries(tmp_path: Path, matrix: str) -> None:
    path = file_with(tmp_path / "both.py", RETURNS)
    shown = invoke("run", path, "--call", "both", matrix, "--engine", "dense").stdout
    assert shown.startswith("result[0] = [[0.5 1.5]\n             [1.  2. ]]\nresult[1] = 3.5\ndifference from NumPy ")
    program = punchcard.load(path, call="both([[1, 2], [3, 4]])")
    assert punchcard.build(program).options["heads"] == 2
    assert punchcard.build(program, heads=1).options["heads"] == 1
    text = invoke("asm", path, "--call", "both", matrix).stdout
    assert "both.py:8: return B, B[FIRST] @ B[SECOND]" in text


def test_names_for_the_items_of_a_constant_stand_at_the_top(tmp_path: Path) -> None:
    path = tmp_path / "names.py"
    path.write_text("(A, B), C = (1, 2), 3\nD, E = range(4, 6)\ndef main():\n    print(A, B, C, D, E)\n")
    assert invoke("run", path, *SMALL).stdout == "1 2 3 4 5\n"
    path.write_text("A, B = 1, 2, 3\ndef main():\n    print(A)\n")
    assert "'A' is computed when the file is executed" in invoke("run", path, *SMALL).stderr


def test_an_error_of_a_program_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("def pick(i: int) -> int:\n    items = [1, 2, 3]\n    return items[i]\n")
    result = invoke("run", tmp_path / "wrong.py", *SMALL, "--call", "pick", "7", status=1)
    assert "wrong.py:3: IndexError: index out of range" in result.stdout
    assert ": wrong.py:3: IndexError: index out of range" in result.stderr
    assert "operand" not in result.stderr
    facts = json.loads(invoke("run", tmp_path / "wrong.py", *SMALL, "--call", "pick", "7", "--json").stdout)
    assert facts["fault"] == "wrong.py:3: IndexError: index out of range"


def test_what_a_function_of_arrays_returns_is_compared_with_numpy(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = invoke("run", file, "--call", "scaled", "1 2 ; 3 4", "--check", "--engine", "dense", status=0)
    assert "difference from NumPy 0.0e+00, relative to the range 16" in result.stdout
    facts = json.loads(invoke("run", file, "--call", "scaled", "1 2 ; 3 4", "--engine", "dense", "--json").stdout)
    assert facts["result"] == [[2.0, 4.0], [6.0, 8.0]]
    assert facts["numpy_difference"] == 0.0
    monkeypatch.setattr("punchcard.machines.fleq.isa.Returned.difference", lambda self, memory: 1.0)
    wrong = invoke("run", file, "--call", "scaled", "1 2 ; 3 4", "--check", "--engine", "dense", status=1)
    assert "the result is 6.2e-02 of the range away from NumPy's" in wrong.stdout


def test_functions_of_a_file_call_each_other(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(CALLING)
    facts = json.loads(invoke("run", tmp_path / "two.py", "--call", "both", "8 16", "--engine", "dense", "--json").stdout)
    assert facts["result"] == pytest.approx([5.0, 10.0])
    refused = invoke("run", tmp_path / "two.py", "--call", "wrong", "8 16")
    assert "a call of 'count', which is not a function of array programs" in refused.stderr


def test_values_that_are_set_are_not_those_that_numpy_had(file: Path) -> None:
    program = punchcard.load(file, call="scaled [1.5]")
    assert program.results[0].expected is not None
    name = next(name for name, value in program.values.items() if value[0, 0] == 1.5)
    assert program.with_values({name: [2.5]}).results[0].expected is None
