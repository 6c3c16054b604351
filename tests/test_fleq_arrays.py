"""The functions for programs over arrays, in both designs: accuracy, error bounds, and what they leave alone."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from punchcard.machines.fleq.fitted import fitted_function
from punchcard.machines.fleq.functions import ARRAY_FUNCTIONS, HADAMARD, Function, Shape, ShapeMismatch
from punchcard.machines.fleq.isa import Array
from punchcard.machines.fleq.machine import FleqMachine
from tests.fleq_cases import DESIGNS, one_call, results
from tests.thin_model import ThinModel

RANGE, D = 16.0, 3
FITTED = [fitted_function(*domain) for domain in (
    ("exp", -16, 2), ("log", 2**-4, 16), ("sqrt", 0, 16), ("inverse", 2**-4, 16), ("sin", -16, 16), ("cos", -16, 16))]
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


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_within_its_bound_and_changes_nothing_else(design: str, name: str) -> None:
    """Junk of size 1,000 around the operands reaches nothing, and stays bit-identical."""
    machine, function = machine_with(design), FUNCTIONS[name]
    rng = np.random.default_rng(list(f"{design} {name}".encode()))
    cases = [drawn(function, rng, D) for _ in range(3)]
    programs = [one_call(function, *case, limit=RANGE, around=1) for case in cases]
    before = []
    for program in programs:
        card = machine.punch(program)
        used = {c for v in program.variables if not v.name.startswith("junk") for c in v.columns}
        spare = sorted(set(range(machine.sizes.memory)) - used)
        junk = rng.uniform(-1e3, 1e3, (machine.sizes.data_rows, len(spare)))
        machine.layout.get(card, "data", "memory")[:, spare] = torch.from_numpy(junk)
        before.append(card)
    after = ThinModel(machine.model)(torch.stack(before))
    for case, program, old, new in zip(cases, programs, before, after, strict=True):
        content = (machine.layout.get(new, "data", "memory") + machine.layout.get(new, "incoming", "memory")).numpy()
        expected = function.reference(*case)
        columns = list(next(v for v in program.variables if v.name == "c").columns)
        written = content[:, columns]
        assert np.abs(written[: len(expected)] - expected).max() <= machine.bound(name)
        assert not written[len(expected) :].any()
        kept = [c for c in range(machine.sizes.memory) if c not in columns]
        assert np.array_equal(content[:, kept], machine.layout.get(old, "data", "memory").numpy()[:, kept])


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bounds_hold(name: str, precision: str) -> None:
    machine, function = machine_with("compact", precision=precision), FUNCTIONS[name]
    rng = np.random.default_rng(list(f"{precision} {name}".encode()))
    cases = [tuple(x.astype(precision).astype(np.float64) for x in drawn(function, rng, D)) for _ in range(10)]
    found = results(machine, [one_call(function, *case, limit=RANGE) for case in cases])
    worst = max(float(np.abs(c - function.reference(*case)).max()) for c, case in zip(found, cases, strict=True))
    assert worst <= machine.bound(name)
    if name in EXACT:
        assert worst == 0.0


def test_shapes() -> None:
    matrix, vector, scalar = Shape(2, 3), Shape(2, 1), Shape(1, 1)
    assert HADAMARD.shape(vector, matrix) == matrix
    assert FUNCTIONS["scale"].shape(scalar, matrix) == matrix
    with pytest.raises(ShapeMismatch, match="entrywise"):
        HADAMARD.shape(matrix, matrix)
    with pytest.raises(ShapeMismatch, match="must be a scalar"):
        FUNCTIONS["scale"].shape(vector, matrix)
