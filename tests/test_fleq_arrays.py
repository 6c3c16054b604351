"""The functions for programs over arrays, in every design: accuracy, error bounds, and what they leave alone."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from punchcard.api import run
from punchcard.errors import FitError, ProgramError, PunchcardError, SourceError
from punchcard.machines.fleq.blocks.curves import DEAD_ZONE
from punchcard.machines.fleq.blocks.table import tabulate
from punchcard.machines.fleq.functions import (
    ARRAY_FUNCTIONS,
    HADAMARD,
    Function,
    Shape,
    ShapeMismatch,
    fitted_domain,
    fitted_function,
    known_function,
)
from punchcard.machines.fleq.isa import Array
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.assembler import assemble
from tests.cases import soaked
from tests.command_line import invoke
from tests.fleq_cases import MANY, check_result, one_call, results, with_junk
from tests.thin_model import ThinModel

RANGE, D = 16.0, 3
FITTED = [fitted_function(*domain) for domain in (
    ("exp", -16, 2), ("log", 2**-4, 16), ("sqrt", 0.25, 16), ("inverse", 0.1, 10), ("sin", -16, 16), ("cos", -16, 16))]
FUNCTIONS = {**ARRAY_FUNCTIONS, "hadamard": HADAMARD, **{function.name: function for function in FITTED}}
EXACT = ("relu", "abs", "positive")


@cache
def machine_with(design: str, precision: str = "float64") -> FleqMachine:
    """All functions in one machine: none must disturb another."""
    return FleqMachine(functions=tuple(FUNCTIONS), size=D, memory=3 * D + 4, instructions=2, design=design, range=RANGE,
                       heads=2, precision=precision)


def drawn(function: Function, rng: np.random.Generator, d: int) -> tuple[Array, ...]:
    """Operands of random shapes, whose results are within the range."""
    shape = Shape(*(int(n) for n in rng.integers(1, d + 1, 2)))
    first = {"scale": Shape(1, 1), "hadamard": Shape(shape.rows, 1)}.get(function.name, shape)
    shapes = (first, shape)[: function.arity]
    size = 4.0 if function.name in ("scale", "hadamard", "entrywise") else RANGE
    low, high = function.domain or (-size, size)
    if function.least:
        low = function.least
        return (rng.uniform(low, high, (shape.rows, shape.columns)) * rng.choice([-1, 1], (shape.rows, shape.columns)),)
    return tuple(rng.uniform(low, high, (one.rows, one.columns)) for one in shapes)


@pytest.mark.parametrize("design", MANY)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_within_its_bound_and_changes_nothing_else(design: str, name: str) -> None:
    """Junk of size 1,000 around the operands reaches nothing, and stays bit-identical."""
    machine, function = machine_with(design), FUNCTIONS[name]
    rng = np.random.default_rng(list(f"{design} {name}".encode()))
    program = one_call(function, *drawn(function, rng, D), limit=RANGE, around=1)
    before = with_junk(machine, program, rng)
    check_result(machine, function, program, before, ThinModel(machine.model)(before[None])[0], name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bounds_hold_in_float32(name: str) -> None:
    machine, function = machine_with("compact", precision="float32"), FUNCTIONS[name]
    rng = np.random.default_rng(list(name.encode()))
    cases = [tuple(x.astype(np.float32).astype(np.float64) for x in drawn(function, rng, D)) for _ in range(3)]
    found = results(machine, [one_call(function, *case, limit=RANGE) for case in cases])
    worst = max(float(np.abs(c - function.reference(*case)).max()) for c, case in zip(found, cases, strict=True))
    assert worst <= machine.bound(name)
    if name in EXACT:
        assert worst == 0.0


def test_signs_are_told_apart_down_to_the_dead_zone() -> None:
    machine = FleqMachine(functions=["positive"], size=2, memory=8, instructions=2, range=RANGE)
    least = DEAD_ZONE * RANGE
    operand = np.array([[0.0, -least], [least, 1e-300]])
    (found,) = results(machine, [one_call(FUNCTIONS["positive"], operand, limit=RANGE)])
    assert found[:, 0].tolist() == [0.0, 1.0]
    assert found[0, 1] == 0.0
    assert 0.0 <= found[1, 1] < 1.0


def test_the_bound_names_the_dead_zone() -> None:
    """The bound of `positive` is for operands outside it, and says so, wherever the bound is shown."""
    machine = FleqMachine(functions=["positive", "add"], size=2, memory=8, instructions=2, range=RANGE)
    least = DEAD_ZONE * RANGE
    assert machine.bound("positive") == 0.0
    assert machine.bound_over("positive") == f"[-{RANGE:g}, {RANGE:g}] without 0 < x < {least:.3g}"
    assert machine.bound_over("add") == f"[-{RANGE:g}, {RANGE:g}]"
    assert machine.summary()["bounds_over"] == {name: machine.bound_over(name) for name in ("positive", "add")}
    shown = invoke("info", "--machine", "fleq", "--functions", "positive,add", "--range", f"{RANGE:g}")
    assert f"0.0e+00 over {machine.bound_over('positive')}" in shown.stdout
    inside = np.full((2, 2), least / 1000)
    (found,) = results(machine, [one_call(FUNCTIONS["positive"], inside, limit=RANGE)])
    assert (np.abs(found - 1.0) > machine.bound("positive")).all()
    with pytest.raises(PunchcardError, match="the machine has no function 'mul'"):
        machine.bound_over("mul")


# Tables and names


@pytest.mark.parametrize(("function", "low", "high"), [
    soaked(np.sqrt, 0.0, 16.0), (np.sqrt, 0.25, 16.0), (np.log, 2.0**-20, 16.0),
    (np.reciprocal, 2.0**-6, 64.0), (np.sin, -16.0, 16.0)])
def test_a_table_is_near(function: np.ufunc, low: float, high: float) -> None:
    table = tabulate(function, low, high)
    x = np.random.default_rng(0).uniform(low, high, 5000) ** np.repeat([1.0, 3.0], 2500)
    x = x[(low <= x) & (x <= high)]
    largest = np.abs(function(x)).max()
    assert table.error <= 2e-12 * largest
    assert np.abs(table(x) - function(x)).max() <= 1.25 * table.error + 2.0**-53 * table.rounding(x)


def test_a_table_is_refused_without_a_domain() -> None:
    with pytest.raises(FitError, match="low must be less than high"):
        tabulate(np.exp, 1.0, 1.0)
    with pytest.raises(FitError, match="must be finite"):
        tabulate(np.log, 0.0, 1.0)


def test_names_tell_domains() -> None:
    for name, low, high in (("exp", -16.0, 2.5), ("inverse", 1e-5, 20000.0), ("sqrt", 0.0, 1e7), ("log", 2e-7, 1.0)):
        function = fitted_function(name, low, high)
        assert fitted_domain(function.name) == (name, low, high)
        assert known_function(function.name) is function
    assert fitted_function("tanh", -1.0, 1.0).name == "tanh"
    assert known_function("exp") is None
    for wrong, why in ((("log", 0.0, 1.0), "low is positive"), (("sqrt", -1.0, 1.0), "not negative"),
                       (("exp", 1.0, 1.0), "less than high"), (("sin", -1.23456789, 1.0), "at most 6 digits"),
                       (("sine", 0.0, 1.0), "did you mean 'sin'")):
        with pytest.raises(ProgramError, match=why):
            fitted_function(*wrong)


def test_a_text_calls_a_function_by_its_domain() -> None:
    """On the compiled engine, where d is not a power of two; and refused where the domain is none, or is left."""
    text = ".range 8\n.data\nx matrix 3x2 1 -2 ; 0.5 -0.25 ; 4 3\ny matrix 3x2\n.code\ny = inverse_0d2_5(x)\n"
    program = assemble(text)
    report = run(program, engine="lowered", heads=1)
    assert report.agrees
    assert np.abs(report.result.memory["y"] - 1 / program.values["x"]).max() < 1e-12
    with pytest.raises(SourceError, match=r"line 6.*low must be less than high"):
        assemble(text.replace("0d2_5", "5_0d2"))
    with pytest.raises(ProgramError, match=r"inverse_0d2_5 of 0.1: its block is built for -5 to 5, of size 0.2 or more"):
        run(assemble(text.replace("0.5", "0.1")), engine="scratchpad")


def test_shapes() -> None:
    matrix, vector, scalar = Shape(2, 3), Shape(2, 1), Shape(1, 1)
    assert HADAMARD.shape(vector, matrix) == matrix
    assert FUNCTIONS["scale"].shape(scalar, matrix) == matrix
    with pytest.raises(ShapeMismatch, match="entrywise"):
        HADAMARD.shape(matrix, matrix)
    with pytest.raises(ShapeMismatch, match="must be a scalar"):
        FUNCTIONS["scale"].shape(vector, matrix)


def test_a_machine_with_functions_over_domains_is_saved_and_loaded(tmp_path: Path) -> None:
    machine = FleqMachine(functions=["exp_m4_2", "log_0d5_2", "positive", "entrywise"], size=1, memory=4, instructions=2,
                          range=8.0)
    machine.save(tmp_path / "machine.safetensors")
    loaded = FleqMachine.load(tmp_path / "machine.safetensors")
    program = one_call(fitted_function("exp", -4, 2), np.array([[1.5]]), limit=8.0)
    assert results(loaded, [program])[0].tolist() == results(machine, [program])[0].tolist()
    assert loaded.bound("log_0d5_2") == machine.bound("log_0d5_2") < 1e-12
