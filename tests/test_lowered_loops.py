"""Twenty thousand loops of random programs: the card of the lowered engine is the equation's after each of them."""

from __future__ import annotations

import random

import pytest
import torch
from torch import Tensor

from punchcard.card.layout import Card, as_tensor
from punchcard.engines import Controls, EngineCache, prepare
from tests.cases import soaked
from tests.perturbed import SUBJECTS

pytestmark = pytest.mark.usefixtures("shared_code")

LOOPS = {"two-layer": 5_000, "two-layer, float32": 5_000, "paper": 5_000, "von Neumann": 4_000, "Turing": 1_000}
PART = 250
"""Loops of a program, compared together: a model takes many cards at once."""


@pytest.mark.parametrize("part", [4, soaked(1)])
@pytest.mark.parametrize("name", LOOPS)
def test_random_programs_bit_for_bit(name: str, part: int) -> None:
    """A quarter of the loops; all of them in `make soak`."""
    subject, rng, kept, made = SUBJECTS[name](), random.Random(name), EngineCache(), 0
    model = subject.weights.module
    while made < LOOPS[name] / part:
        cards: list[Tensor] = [subject.card(rng)]

        def watch(_: int, now: Card, cards: list[Tensor] = cards) -> None:
            cards.append(as_tensor(now))

        prepare("lowered", subject.weights, subject.layout, cards[0], cache=kept).run(PART, Controls(watch=watch))
        with torch.no_grad():
            expected = model(torch.stack(cards[:-1]))
        assert torch.equal(torch.stack(cards[1:]), expected)
        made += len(cards) - 1


def test_there_are_twenty_thousand() -> None:
    assert sum(LOOPS.values()) >= 20_000
