"""The command `calc`."""

from __future__ import annotations

import json
import math
import re

import pytest

from punchcard.calculator.functions import FUNCTIONS
from punchcard.machines.fleq.text.assembler import assemble
from tests.command_line import assert_refused, invoke

PAPER = ("calc", "sqrt(1/((a+b-c)*d))/100", "a=3", "b=2", "c=1", "d=0.5")


@pytest.mark.parametrize("options", [[], ["--design", "paper"], ["--heads", "1"], ["--terms", "48", "--newton", "0"]])
def test_json(options: list[str]) -> None:
    result = invoke(*PAPER, "--json", *options)
    data = json.loads(result.stdout)
    assert result.exit_code == 0
    assert data["exact"] == math.sqrt(0.5) / 100
    assert data["steps"] == 6
    assert 0 <= abs(data["value"] - data["exact"]) <= data["bound"]
    assert data["error"] <= data["bound"] < 1e-8 * data["exact"]
    assert data["agrees"] is True
    assert {"loops", "design", "heads", "terms", "dtype", "range", "functions", "columns", "expression"} <= data.keys()


def test_what_is_shown() -> None:
    result = invoke(*PAPER, status=0)
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["value", "exact", "error", "bound", "6"]
    assert abs(float(lines[0].split()[1]) - math.sqrt(0.5) / 100) < 1e-12
    exact = float(lines[1].split()[1])
    shown = [re.findall(r"^\w+  (\S+), (\S+) of the exact value$", line)[0] for line in lines[2:4]]
    (error, part), (bound, part_of_bound) = (map(float, sizes) for sizes in shown)
    assert error <= bound
    assert part == pytest.approx(error / exact, rel=0.1)  # both are absolute first, then relative
    assert part_of_bound == pytest.approx(bound / exact, rel=0.1)
    assert "transformer with 4 layers" in lines[4]
    assert re.fullmatch(r"error  \S+\nbound  \S+", "\n".join(invoke("calc", "1-1").stdout.splitlines()[2:4]))


def test_the_help_lists_the_functions() -> None:
    assert f"%, {', '.join(FUNCTIONS)}, pi and e." in " ".join(invoke("calc", "--help").stdout.split())


def test_float32() -> None:
    data = json.loads(invoke(*PAPER, "--json", "--dtype", "float32").stdout)
    assert (data["dtype"], data["agrees"]) == ("float32", True)
    assert 1e-12 < data["error"] <= data["bound"] < 1e-3


def test_the_program() -> None:
    result = invoke(*PAPER, "--program", status=0)
    program = assemble(result.stdout)
    assert program.used_functions() == ("add", "sub", "mul", "inverse", "sqrt", "percentage")
    both = json.loads(invoke(*PAPER, "--program", "--json").stdout)
    assert both["program"] == result.stdout
    assert both["steps"] == 6


def test_ranges_and_newton_steps() -> None:
    options = ("calc", "1/x", "x=2", "--range", "x=0.01:100")
    data = json.loads(invoke(*options, "--json").stdout)
    assert data["error"] <= data["bound"] < 1e-8
    assert any(name.startswith("inverse_") for name in data["functions"])
    more = invoke(*options, "--newton", "2", "--program").stdout
    assert len(more) > len(invoke(*options, "--newton", "0", "--program").stdout)


def test_an_expression_may_begin_with_a_minus() -> None:
    data = json.loads(invoke("calc", "-3 + a", "a=-4", "--json").stdout)
    assert data["value"] == data["exact"] == -7
    assert json.loads(invoke("calc", "--json", "--", "-a", "a=2").stdout)["value"] == -2


@pytest.mark.parametrize(("arguments", "message"), [
    (["a+*2", "a=1"], "'a+*2': line 1, column 3: found '*'"),
    (["a", "a"], "'a': write NAME=VALUE"),
    (["a", "a=x"], "a value is a decimal number"),
    (["a", "1=2"], "write NAME=VALUE"),
    (["a", "a=1", "a=2"], "a variable is given twice"),
    (["a", "a=1", "--range", "a=0:1", "--range", "a=0:2"], "--range a=0:1 --range a=0:2: a variable has two ranges"),
    (["a", "a=1", "--range", "a=1"], "write --range NAME=LOW:HIGH"),
    (["a", "a=1", "--range", "a=2:3"], "outside its range, 2 to 3"),
    (["a", "a=1", "--herds=2"], "no such option: --herds"),
    (["a", "a=1", "--heads", "4"], "--heads"),
    (["a", "a=1", "--dtype", "float16"], "--dtype"),
    ([], "EXPRESSION"),
])
def test_bad_input_is_one_line_and_status_2(arguments: list[str], message: str) -> None:
    assert_refused(message, "calc", *arguments)
