"""The long checks of the von Neumann machine: `make soak`."""

from __future__ import annotations

import random

import pytest

from punchcard.engines import ENGINES
from tests.test_von_neumann import LOOPS, SHAPES, STORES_AHEAD, check_random_images

SOAK_STEPS = 1_000_000


@pytest.mark.soak
@pytest.mark.parametrize("engine", ENGINES)
def test_a_million_random_steps(engine: str) -> None:
    """Every shape of the quick test; the smaller the card, the larger its share."""
    rng = random.Random("soak")
    shares = [1 / memory**1.5 for _, memory, _ in SHAPES]
    steps = ahead = 0
    for (bits, memory, _), share in zip(SHAPES, shares, strict=True):
        images = int(SOAK_STEPS / LOOPS * share / sum(shares)) + 1
        while images > 0:
            batch = min(images, 200)
            compared, = check_random_images(rng, [(bits, memory, batch)], LOOPS, engine)
            steps, ahead, images = steps + compared.steps, ahead + compared.stores_ahead, images - batch
    assert steps >= SOAK_STEPS
    assert ahead >= STORES_AHEAD * SOAK_STEPS
