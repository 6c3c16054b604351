"""The long checks: `make soak`."""

from __future__ import annotations

import random

import pytest

from punchcard.engines import ENGINES
from tests import test_von_neumann as images
from tests.cases import DESIGNS
from tests.test_subleq_machine import SHAPES, check_random_programs, machine_of

SOAK_STEPS = 1_000_000


@pytest.mark.soak
@pytest.mark.parametrize("design", DESIGNS)
def test_a_million_random_steps_of_subleq(design: str) -> None:
    """Every shape of the quick test; the smaller the card, the larger its share, so that it ends in half an hour."""
    shares = [1 / columns for _, columns in SHAPES]
    checked = 0
    for (bits, columns), share in zip(SHAPES, shares, strict=True):
        wanted = int(SOAK_STEPS * share / sum(shares)) + 1
        machine = machine_of(columns, bits, design, "float32" if bits % 2 else "float64")
        checked += check_random_programs(machine, random.Random(f"soak {design} {columns}"), wanted)
    assert checked >= SOAK_STEPS


@pytest.mark.soak
@pytest.mark.parametrize("engine", ENGINES)
def test_a_million_random_steps_of_images(engine: str) -> None:
    rng = random.Random("soak")
    shares = [1 / memory**1.5 for _, memory, _ in images.SHAPES]
    steps = ahead = 0
    for (bits, memory, _), share in zip(images.SHAPES, shares, strict=True):
        rest = int(SOAK_STEPS / images.LOOPS * share / sum(shares)) + 1
        while rest > 0:
            batch = min(rest, 200)
            compared, = images.check_random_images(rng, [(bits, memory, batch)], images.LOOPS, engine)
            steps, ahead, rest = steps + compared.steps, ahead + compared.stores_ahead, rest - batch
    assert steps >= SOAK_STEPS
    assert ahead >= images.STORES_AHEAD * SOAK_STEPS
