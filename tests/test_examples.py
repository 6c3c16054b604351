"""Every example gives its result on every design, and the interpreter agrees after every loop."""

from __future__ import annotations

import re
import runpy
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

import punchcard
from tests.cases import DESIGNS, EXAMPLES, EXPECTED, load_subleq, soaked

# file -> (variables that matter at the end, how near, instructions executed)
FLEQ_EXPECTED: dict[str, tuple[dict[str, list[list[float]]], float, int]] = {
    "newton.fleq": ({"X": [[0.3, -0.1], [-0.2, 0.4]], "t": [[1.0]]}, 1e-9, 62),
    "columns.fleq": ({"total": [[20.0], [52.0], [40.0]], "pass": [[1.0]]}, 0.0, 30),
    "gram_schmidt.fleq": ({"Q": [[0.5**0.5, 18**-0.5], [0.5**0.5, -(18**-0.5)], [0.0, 4 * 18**-0.5]]}, 1e-9, 116),
    "rotation.fleq": ({"x": [[np.cos(1.0)], [np.sin(1.0)]]}, 1e-9, 304),
    "functions.fleq": ({"s": (1 / (1 + np.exp([[2.0], [0.5], [-0.5], [-2.0]]))).tolist(),
                        "p": [[-2.0], [-1.0], [1.5], [8.0]], "r": [[2**0.5]], "i": [[0.5**0.5]],
                        "h": [[0.01 * 0.5**0.5]]}, 1e-9, 5),
}


def test_every_example_is_listed() -> None:
    assert {p.name for p in EXAMPLES.glob("*") if p.suffix in (".subleq", ".minsky")} == set(EXPECTED)
    assert {p.name for p in EXAMPLES.glob("*.fleq")} == set(FLEQ_EXPECTED)


FLEQ_RUNS = [(name, design, "scratchpad") for name in FLEQ_EXPECTED for design in ("compact", "three-layer", "paper")]
SHORT_FLEQ = "newton.fleq"
"""The others take longer to compile, or to run in a design of many layers."""


@pytest.mark.parametrize(("name", "design", "engine"), [
    *((pytest.param if run[1] == "compact" or run[0] == SHORT_FLEQ else soaked)(*run) for run in FLEQ_RUNS),
    *((pytest.param if name == SHORT_FLEQ else soaked)(name, "compact", "auto") for name in FLEQ_EXPECTED)])
def test_fleq_on_the_transformer(name: str, design: str, engine: str) -> None:
    variables, tolerance, steps = FLEQ_EXPECTED[name]
    program = punchcard.load(EXAMPLES / name, punchcard.FleqProgram)
    report = punchcard.run(program, design=design, heads=2, engine=engine)
    assert report.ok
    assert report.result.steps == steps
    for variable, expected in variables.items():
        assert np.abs(report.result.memory[variable] - np.array(expected)).max() <= tolerance, variable


@cache
def machine_for_all(design: str) -> punchcard.SubleqMachine:
    """One machine with room for every example, so that its loop is compiled once."""
    sizes = [punchcard.SubleqMachine.sizes_for(load_subleq(name)) for name in EXPECTED]
    return punchcard.SubleqMachine(**{size: max(each[size] for each in sizes) for size in sizes[0]}, design=design)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", EXPECTED)
def test_on_the_transformer(name: str, design: str) -> None:
    cells, steps = EXPECTED[name]
    program, machine = load_subleq(name), machine_for_all(design)
    report = punchcard.run(program, machine)
    assert report.ok
    assert report.result.steps == steps
    assert cells.items() <= report.result.memory.items()
    assert punchcard.check(program, machine, max_steps=50).agrees  # random programs are compared for longer


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


@pytest.mark.parametrize(("script", "engine"), [
    *((script, "scratchpad" if script.name == "linear_algebra.py" else None) for script in sorted(EXAMPLES.glob("*.py"))),
    soaked(EXAMPLES / "linear_algebra.py", None)], ids=lambda p: p.name if isinstance(p, Path) else p)
def test_scripts(script: Path, engine: str | None, capsys: pytest.CaptureFixture[str],
                 monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are; the one whose machine takes long to compile also on an engine that does not compile."""
    for call in ("inverse", "solve", "power_iteration") if engine else ():
        monkeypatch.setattr(punchcard.linalg, call, partial(getattr(punchcard.linalg, call), engine=engine))
    monkeypatch.setattr("sys.argv", [str(script)])  # and not what the tests were started with
    runpy.run_path(str(script), run_name="__main__")
    out = capsys.readouterr().out
    assert out
    if script.name == "learn_xor.py":
        before, after = re.findall(r"loss ([\d.]+) before, ([\d.]+) after", out)[0]
        assert float(after) < 0.5 * float(before), "the loss falls"
