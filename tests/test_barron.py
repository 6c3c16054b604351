"""Barron's theorem by experiment: sums of m sigmoids of a vector come nearer like 1 / sqrt(m), in several dimensions."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from benchmarks.barron import barron_constant, bell, errors, greedy, least_squares, sampled, slope

from punchcard.machines.fleq.blocks.block import FittedFunction
from punchcard.machines.fleq.functions import vector_function
from punchcard.machines.fleq.machine import FleqMachine
from tests.fleq_cases import one_call, results

TERMS = (16, 64, 256)


@pytest.mark.parametrize("entries", [3, 5, 8])
def test_the_error_falls_like_the_root_of_the_terms(entries: int) -> None:
    """The mean of m random steps, as in the proof: slope -1/2 in every dimension, and below the bound 2 C / sqrt(m)."""
    found = [errors(sampled, entries, m, seeds=24, points=500) for m in TERMS]
    assert -0.58 < slope(TERMS, [mean for mean, _ in found]) < -0.42
    for m, (mean, _) in zip(TERMS, found, strict=True):
        assert mean <= 2 * barron_constant(entries) / math.sqrt(m)


def test_the_largest_error_falls_as_fast() -> None:
    """The print states it point by point; the theorem is about the mean square."""
    assert -0.6 < slope(TERMS, [errors(sampled, 5, m, seeds=24, points=500)[1] for m in TERMS]) < -0.4


def test_greedy_sums_are_no_worse() -> None:
    terms = (4, 16, 48)
    quick = partial(greedy, count=500, dictionary=300)
    assert slope(terms, [errors(quick, 3, m, seeds=1, points=500)[0] for m in terms]) < -0.5


def test_least_squares_is_no_worse() -> None:
    assert slope(TERMS[:2], [errors(least_squares, 3, m, seeds=1, points=500)[0] for m in TERMS[:2]]) < -0.5


def test_a_sum_of_the_proof_is_a_block() -> None:
    """One head, a sigmoid a column: the machine computes the sum that the experiment measures."""
    total = sampled(3, 24, seed=1)
    function = vector_function("bell", bell, 3, (-1.0, 1.0))
    machine = FleqMachine(functions=[FittedFunction(function, total)], size=3, memory=4, instructions=2, range=8.0)
    points = np.random.default_rng(0).uniform(-1, 1, (12, 3))
    found = np.array([c.item() for c in results(machine, [one_call(function, x[:, None], limit=8.0) for x in points])])
    assert np.abs(found - total(points)).max() <= 2.0**-53 * total.rounding()
