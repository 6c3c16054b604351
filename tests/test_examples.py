"""Every example gives its result, on the interpreter and on every design, compared after every loop."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import punchcard
from punchcard.machines.subleq import oracle
from tests.cases import DESIGNS, EXAMPLES, EXPECTED, load_subleq

# file -> (variables that matter at the end, how near, instructions executed)
FLEQ_EXPECTED: dict[str, tuple[dict[str, list[list[float]]], float, int]] = {
    "newton.fleq": ({"X": [[0.3, -0.1], [-0.2, 0.4]], "t": [[1.0]]}, 1e-9, 62),
    "columns.fleq": ({"total": [[20.0], [52.0], [40.0]], "pass": [[1.0]]}, 0.0, 30),
    "gram_schmidt.fleq": ({"Q": [[0.5**0.5, 18**-0.5], [0.5**0.5, -(18**-0.5)], [0.0, 4 * 18**-0.5]]}, 1e-9, 116),
    "functions.fleq": ({"s": (1 / (1 + np.exp([[2.0], [0.5], [-0.5], [-2.0]]))).tolist(),
                        "p": [[-2.0], [-1.0], [1.5], [8.0]], "r": [[2**0.5]], "i": [[0.5**0.5]],
                        "h": [[0.01 * 0.5**0.5]]}, 1e-9, 5),
}


def test_every_example_is_listed() -> None:
    assert {p.name for p in EXAMPLES.glob("*") if p.suffix in (".subleq", ".minsky")} == set(EXPECTED)
    assert {p.name for p in EXAMPLES.glob("*.fleq")} == set(FLEQ_EXPECTED)


@pytest.mark.parametrize(("name", "design"), [
    pytest.param(name, design, marks=pytest.mark.soak if name == "gram_schmidt.fleq" and design != "compact" else ())
    for name in FLEQ_EXPECTED for design in ("compact", "three-layer", "paper")])
def test_fleq_on_the_transformer(name: str, design: str) -> None:
    variables, tolerance, steps = FLEQ_EXPECTED[name]
    program = punchcard.load(EXAMPLES / name)
    assert isinstance(program, punchcard.FleqProgram)
    report = punchcard.run(program, design=design, heads=2, engine="auto" if design == "compact" else "scratchpad")
    assert report.ok
    assert report.result.steps == steps
    for variable, expected in variables.items():
        assert np.abs(report.result.memory[variable] - np.array(expected)).max() <= tolerance, variable


@pytest.mark.parametrize("name", EXPECTED)
def test_on_the_interpreter(name: str) -> None:
    cells, steps = EXPECTED[name]
    program = load_subleq(name)
    outcome = oracle.run(program, 16, 10_000)
    assert (outcome.halted, outcome.steps) == (True, steps)
    assert cells.items() <= program.named(outcome.state.memory).items()


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", EXPECTED)
def test_on_the_transformer(name: str, design: str) -> None:
    cells, steps = EXPECTED[name]
    program = load_subleq(name)
    report = punchcard.run(program, design=design)
    assert report.ok
    assert report.result.steps == steps
    assert cells.items() <= report.result.memory.items()
    comparison = punchcard.check(program, design=design, max_steps=150)
    assert comparison.agrees


@pytest.mark.parametrize(("name", "settings", "cell", "expected"), [
    ("multiply.subleq", {"a": -5, "b": 12}, "product", -60),
    ("search.subleq", {"key": 99}, "index", -1),
    ("search.subleq", {"key": 4}, "index", 0),
    ("divide.subleq", {"dividend": 56, "divisor": 56}, "quotient", 1),
    ("divide.subleq", {"dividend": 55, "divisor": 56}, "remainder", 55),
    ("sqrt.subleq", {"n": 0}, "root", 0),
    ("sqrt.subleq", {"n": 24}, "root", 4),
    ("sqrt.subleq", {"n": 25}, "root", 5),
    ("primes.subleq", {"n": 1}, "prime", 2),
    ("primes.subleq", {"n": 10}, "prime", 29),
    ("fibonacci.subleq", {"n": 1}, "a", 1),
    ("factorial.subleq", {"n": 1}, "result", 1),
    ("gcd.subleq", {"a": 17, "b": 5}, "a", 1),
])
def test_other_inputs(name: str, settings: dict[str, int], cell: str, expected: int) -> None:
    program = load_subleq(name).with_values(settings)
    report = punchcard.run(program, design="two-layer")
    assert report.ok
    assert report.result.memory[cell] == expected


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.name)
def test_scripts(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(script), run_name="__main__")
    out = capsys.readouterr().out
    assert out
    if script.name == "learn_xor.py":
        before, after = re.findall(r"loss ([\d.]+) before, ([\d.]+) after", out)[0]
        assert float(after) < 0.5 * float(before), "the loss falls"
