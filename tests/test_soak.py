"""The long checks: `make soak`."""

from __future__ import annotations

import random

import pytest

from tests.cases import DESIGNS
from tests.test_subleq_machine import SHAPES, check_random_programs, machine_of

SOAK_STEPS = 1_000_000


@pytest.mark.soak
@pytest.mark.parametrize("design", DESIGNS)
def test_a_million_random_steps(design: str) -> None:
    """Every shape of the quick test; the smaller the card, the larger its share, so that it ends in half an hour."""
    shares = [1 / columns for _, columns in SHAPES]
    checked = 0
    for (bits, columns), share in zip(SHAPES, shares, strict=True):
        wanted = int(SOAK_STEPS * share / sum(shares)) + 1
        machine = machine_of(columns, bits, design, "float32" if bits % 2 else "float64")
        checked += check_random_programs(machine, random.Random(f"soak {design} {columns}"), wanted)
    assert checked >= SOAK_STEPS
