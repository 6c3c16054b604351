"""The command line with FLEQ programs."""

from __future__ import annotations

import json

import pytest

from tests.cases import EXAMPLES
from tests.command_line import assert_refused, invoke

NEWTON = str(EXAMPLES / "newton.fleq")
QUICKLY = ("--engine", "scratchpad")


@pytest.mark.parametrize(("options", "layers"), [
    ([], 4), (["--design", "paper"], 13), (["--heads", "3", "--size", "4", "--range", "32", "--dtype", "float32"], 4),
])
def test_run_json(options: list[str], layers: int) -> None:
    """By the engine that is chosen, and for other machines by one that need not compile."""
    result = invoke("run", NEWTON, "--json", *options, *(QUICKLY if options else ()))
    data = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (data["halted"], data["steps"], data["agrees"]) == (True, 62, True)
    assert data["memory"]["t"] == 1.0, "a scalar is a number"
    assert data["memory"]["X"][0] == pytest.approx([0.3, -0.1], abs=1e-3), "a matrix is nested lists"
    assert 0 < data["max_step_error"] <= data["bound"] < 1e-3
    assert 0 < data["max_error"] < 1e-3
    shown = json.loads(invoke("info", NEWTON, "--json", *options).stdout)
    assert shown["layers"] == layers == len(shown["heads"]) == len(shown["hidden"])
    assert {"width", "columns", "parameters", "nonzero", "temperature", "paper"} <= shown.keys()
    assert shown["paper"]["layers"] == 13


def test_run_and_trace() -> None:
    result = invoke("run", NEWTON, "--trace", status=0)
    assert "every instruction is within its bound" in result.stdout
    assert "X = [[ 0.3 -0.1]" in result.stdout
    lines = result.stderr.splitlines()
    assert len(lines) == 63
    assert lines[2].split() == "loop 3 [2] Y 2x2 = mul(At 2x2, X 2x2) goto 3".split()
    assert lines[6].split() == "loop 7 [6] t 1x1 = add(t 1x1, one 1x1) = -10; if t <= 0 goto 2 goto 2".split()


def test_info() -> None:
    few = json.loads(invoke("info", "--machine", "fleq", "--functions", "add, mul", "--size", "3", "--json").stdout)
    assert (few["functions"], few["size"]) == (["add", "mul"], 3)
    assert "error bound of mul" in invoke("info", "--machine", "fleq").stdout


def test_functions_beside_a_program() -> None:
    """A machine may have more functions than its program calls; one that lacks some says so."""
    program = str(EXAMPLES / "columns.fleq")
    more = json.loads(invoke("info", program, "--functions", "sub,add,incr_pointer,reset_pointer", "--json").stdout)
    assert more["functions"] == ["sub", "add", "incr_pointer", "reset_pointer"]
    assert "the program calls 'reset_pointer', which the machine does not have: it has sub" in invoke(
        "run", program, "--functions", "sub").stderr


def test_values_are_set() -> None:
    """A scalar, a matrix with its rows, and what they lead to."""
    given = ("--set", "A=2 0 ; 0 4", "--set", "t=-15")
    data = json.loads(invoke("run", NEWTON, "--json", "--heads", "3", *given, *QUICKLY).stdout)
    assert data["memory"]["A"] == [[2, 0], [0, 4]]
    assert data["memory"]["X"][0] == pytest.approx([0.5, 0], abs=1e-9)
    assert data["steps"] == 2 + 5 * 16, "four rounds more than in the text"


@pytest.mark.parametrize(("arguments", "message"), [
    (["run", NEWTON, "--size", "1"], "the program's largest operand has 2 rows or columns, the machine's size is 1"),
    (["run", NEWTON, "--range", "-2"], "range=-2.0: it must be a positive number"),
    (["run", NEWTON, "--bits", "8"], "--bits is not for .fleq programs"),
    (["run", NEWTON, "--set", "A=1 2"], "variable 'A' is 2x2, and 1 x 2 is given"),
    (["run", NEWTON, "--set", "A=1 2 ; 3"], "--set 'A=1 2 ; 3': the rows of a matrix have equally many numbers"),
    (["run", NEWTON, "--set", "too=1"], "unknown variable 'too' (did you mean 'two'?)"),
    (["run", NEWTON, "--set", "t=one"], "--set 't=one': found 'one'"),
    (["run", NEWTON, "--set", "t=99"], "variable 't' holds a value that is not within ±16"),
    (["run", NEWTON, "--input", "x"], "--input is not for fleq programs: they read nothing"),
    (["run", NEWTON, "--design", "two-layer"],
     "--design two-layer is not for fleq machines: choose compact, three-layer, paper"),
    (["info", "--machine", "fleq", "--functions", ","], "write names separated by commas"),
])
def test_bad_arguments(arguments: list[str], message: str) -> None:
    assert_refused(message, *arguments)
