"""Functions of arrays on the FLEQ machine: a corpus, code quality, ranges, reports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import punchcard as pc
from punchcard.errors import ArgumentError, PunchcardError
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.oracle import FleqInterpreter
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.python.arrays.domains import blocks_for
from punchcard.python.arrays.program import _Call
from punchcard.python.arrays.report import distance
from punchcard.python.source import Unsupported
from tests.python_corpus.arrays import CASES, Case, linear_sgd, newton, two_layers

RANGE = 32.0
NEAR = 1e-9
SHARED = ("add", "sub", "mul", "transpose", "scale", "hadamard", "entrywise", "relu", "abs", "maximum", "minimum", "sigmoid",
          "positive", "incr_pointer", "reset_pointer")
PLAIN = [case for case in CASES if not case.fitted]
FITTED = [case for case in CASES if case.fitted]


@pytest.fixture(scope="module")
def machine() -> FleqMachine:
    """One machine for every program without fitted functions."""
    own = {block.name: block for block in blocks_for({}, SHARED, RANGE, 3)}
    return FleqMachine(functions=[own.get(name, name) for name in SHARED], size=4, memory=64, instructions=48, range=RANGE)


def interpreted(case: Case, seed: int) -> float:
    """How far the plain interpreter's run of the compiled program is from NumPy's run of the function."""
    given = case.given(seed)
    call = _Call(case.program, tuple(given), {})
    interpreter = FleqInterpreter(call.program)
    interpreter.run(100_000)
    assert interpreter.halted
    found, expected = call.results(call.program.named(interpreter.memory)), case.program.expected(*given)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    assert all(np.shape(a) == np.shape(b) for a, b in pairs)
    return distance(found, expected, 1.0)


def test_the_corpus_is_large() -> None:
    assert len(CASES) >= 40
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compiled_programs_mean_what_numpy_means(case: Case) -> None:
    assert max(interpreted(case, seed) for seed in range(4)) < 1e-12


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case.name)
def test_the_corpus_on_one_transformer(case: Case, machine: FleqMachine) -> None:
    given = case.given(17)
    program = case.program.with_options(range=RANGE)
    call = _Call(program, tuple(given), {})
    report = pc.run(call.program, machine, engine="lowered", check=False, max_steps=2000)
    assert report.result.halted
    assert distance(call.results(report.result.memory), program.expected(*given), RANGE) < NEAR
