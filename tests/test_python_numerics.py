"""The numerical programs of examples/python: short, near NumPy, and on the engines that check the equation."""

from __future__ import annotations

import runpy
from functools import cache
from typing import Any

import pytest

from punchcard.python.arrays.program import ArrayProgram
from tests.cases import EXAMPLES, soaked

FOLDER = EXAMPLES / "python"
NEAR = 1e-9
QUICK: dict[str, dict[str, Any]] = {
    "ridge": {"rounds": 2}, "conjugate_gradients": {"tolerance": 0.5}, "pagerank": {"rounds": 5}, "kalman": {},
    "kmeans": {"rounds": 1}, "logistic": {"epochs": 1}, "network": {"epochs": 1}, "attention": {},
}
"""The programs, and arguments that make them short."""


@cache
def names_of(name: str) -> dict[str, Any]:
    """What an example defines."""
    return runpy.run_path(str(FOLDER / f"{name}.py"))


def program_of(name: str) -> ArrayProgram:
    (found,) = (value for value in names_of(name).values() if isinstance(value, ArrayProgram))
    return found


@pytest.mark.parametrize("name", [soaked(name) if name in ("kmeans", "ridge") else name for name in QUICK])
def test_a_numerical_program_is_near_numpy(name: str) -> None:
    """On an engine that makes every loop of the equation; with fewer rounds than in the example."""
    first, *others = names_of(name)["example"]()
    if name in ("logistic", "network"):  # two points
        first, others[0] = first[:, :2], others[0][:2]
    if name == "kalman":
        first = first[:2]
    arguments = (first, *others)
    report = program_of(name).with_options(engine="scratchpad").run(*arguments, **QUICK[name])
    assert report.agrees
    assert report.difference is not None
    assert report.difference <= NEAR


@pytest.mark.soak
@pytest.mark.parametrize("name", QUICK)
def test_a_whole_numerical_program_is_near_numpy(name: str) -> None:
    report = program_of(name).with_options(engine="lowered").run(*names_of(name)["example"]())
    assert report.agrees
    assert report.difference is not None
    assert report.difference <= NEAR


@pytest.mark.parametrize("name", QUICK)
def test_a_numerical_program_is_short(name: str) -> None:
    """At most 25 lines; the whole file, its data included, is little more."""
    source = program_of(name).source
    lines = (source.node.end_lineno or 0) - source.node.lineno + 1
    assert lines <= 25
    assert len((FOLDER / f"{name}.py").read_text().splitlines()) <= 35
