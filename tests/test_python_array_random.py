"""Random array programs: the compiled program gives what NumPy gives, or is refused by name; never a wrong answer."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import punchcard as pc
from punchcard.errors import PunchcardError
from punchcard.machines.fleq.oracle import FleqInterpreter
from punchcard.python.arrays.call import ArrayCall
from punchcard.python.report import distance
from tests.python_random import arguments, function_of, random_program
from tests.tally import SAME, Tally

SEEDS = st.integers(0, 2**40)
NEAR = 1e-9


def made(seed: int) -> tuple[Any, dict[str, Any], Any]:
    """A program, its arguments, and what NumPy returns: None where it raises."""
    program = pc.program(function_of(random_program(seed), seed))
    given_to = arguments(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return program, given_to, program.expected(**given_to)
        except Exception:  # whatever NumPy says of a program that is wrong in itself
            return program, given_to, None


def compare(seed: int) -> str:
    """What became of the program: "same", or why it was not run. A difference fails; a refusal is a PunchcardError."""
    program, named, expected = made(seed)
    try:
        call = ArrayCall(program, (), named)
    except PunchcardError as error:
        return str(error)
    if expected is None:
        return "NumPy fails"
    interpreter = FleqInterpreter(call.program)
    interpreter.run(1_000_000)
    assert interpreter.halted
    found = call.results(call.program.named(interpreter.memory))
    assert [np.shape(value) for value in found] == [np.shape(value) for value in expected]
    assert distance(found, expected, max(1.0, call.limit)) < NEAR, random_program(seed)
    return SAME


@settings(max_examples=100, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(SEEDS)
def test_random_programs_mean_what_numpy_means(seed: int) -> None:
    compare(seed)


def test_most_random_programs_are_run() -> None:
    assert sum(compare(seed) == SAME for seed in range(30)) >= 25


@pytest.mark.parametrize("seed", [3, 11])
def test_random_programs_on_the_transformer(seed: int) -> None:
    program, named, _ = made(seed)
    report = program.with_options(engine="dense", check=False, heads=2).run(**named)
    assert report.difference is not None
    assert report.difference < NEAR


@pytest.mark.soak
def test_many_random_programs_mean_what_numpy_means() -> None:
    tally = Tally()

    @settings(max_examples=10_000, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(SEEDS)
    def each(seed: int) -> None:
        tally.add(compare(seed))

    each()
    tally.show()
    assert tally.ran > 0.85
