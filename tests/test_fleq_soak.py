"""The long check of the FLEQ machine: `make soak`."""

from __future__ import annotations

import random

import pytest

from tests.fleq_cases import check_random_programs
from tests.test_fleq_machine import RANDOM_MACHINES, STEPS, random_machine

SOAK_STEPS = 200_000


@pytest.mark.soak
@pytest.mark.parametrize(("design", "d", "functions", "wanted"), RANDOM_MACHINES)
def test_many_random_instructions(design: str, d: int, functions: tuple[str, ...], wanted: int) -> None:
    """More than a hundred times the quick test, with seeds of its own."""
    machine = random_machine(design, d, functions)
    share = wanted * SOAK_STEPS // STEPS
    seed = f"soak {design} {d} {' '.join(functions)}"
    assert check_random_programs(machine, random.Random(seed), share, batch=64, max_steps=200) >= share
