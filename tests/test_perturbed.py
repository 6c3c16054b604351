"""Sound for any weights: with one weight changed, the lowered engine refuses, declines, or gives the equation's card.

With the right weights it gives that card after each of twenty thousand loops of random programs.
"""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
import torch
from torch import Tensor

from punchcard.card.layout import Card, as_tensor
from punchcard.engines import Controls, EngineCache, prepare
from tests.cases import soaked
from tests.perturbed import SUBJECTS, Subject, compare

pytestmark = pytest.mark.usefixtures("shared_code")

PERTURBED = {"operations": 16, "von Neumann": 5, "one-layer": 4, "FLEQ": 2, "RISC-V": 1}
FEW, MANY, SOME = 8, 400, 20
LONG = ("FLEQ, three-layer",)
"""Left to `make soak`: its loops take long to compile."""
LOOPS = 24


def check(name: str, subject: Subject, seeds: range, loops: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in seeds:
        outcome = compare(subject, f"{name} {seed}", loops)
        found[outcome.kind] += 1
        assert outcome.kind != "different", f"{name} {seed}: {outcome.what}"
    return found


@pytest.mark.parametrize("part", [2, soaked(1)])
@pytest.mark.parametrize("name", [
    soaked(name) if name == "RISC-V" else name for name in SUBJECTS if name not in LONG])
def test_one_weight_changed(name: str, part: int) -> None:
    """Bits exactly; real numbers within rounding. Where the equation itself rounds, its own error is allowed.

    Half of the changes; all of them in `make soak`.
    """
    found = check(name, SUBJECTS[name](), range(math.ceil(PERTURBED.get(name, FEW) / part)), LOOPS)
    assert found["rounded"] == 0, found
    if name not in ("one-layer", "painters", "FLEQ", "RISC-V"):  # these are always refused, always decline, or take long
        assert found["lowered"], "some loops were the engine's"


@pytest.mark.parametrize(("name", "seed"), [
    ("von Neumann", 1077),  # a row that settles lies in a word that is stored to
])
def test_what_was_different_once(name: str, seed: int) -> None:
    assert check(name, SUBJECTS[name](), range(seed, seed + 1), LOOPS)["lowered"]


@pytest.mark.soak
@pytest.mark.parametrize("name", SUBJECTS)
def test_many_weights_changed(name: str) -> None:
    count = SOME if name in ("RISC-V", *LONG) else MANY  # their loops take long to compile
    found = check(name, SUBJECTS[name](), range(1000, 1000 + count), 60)
    assert found["rounded"] <= max(1, count // 100), found


# The right weights

LONG_RUNS = {"two-layer": 5_000, "two-layer, float32": 5_000, "paper": 5_000, "von Neumann": 4_000, "Turing": 1_000}
PART = 250
"""Loops of a program, compared together: a model takes many cards at once."""


@pytest.mark.parametrize("part", [4, soaked(1)])
@pytest.mark.parametrize("name", LONG_RUNS)
def test_random_programs_bit_for_bit(name: str, part: int) -> None:
    """A quarter of the loops; all of them in `make soak`."""
    subject, rng, kept, made = SUBJECTS[name](), random.Random(name), EngineCache(), 0
    model = subject.weights.module
    while made < LONG_RUNS[name] / part:
        cards: list[Tensor] = [subject.card(rng)]

        def watch(_: int, now: Card, cards: list[Tensor] = cards) -> None:
            cards.append(as_tensor(now))

        prepare("lowered", subject.weights, subject.layout, cards[0], cache=kept).run(PART, Controls(watch=watch))
        with torch.no_grad():
            expected = model(torch.stack(cards[:-1]))
        assert torch.equal(torch.stack(cards[1:]), expected)
        made += len(cards) - 1


def test_there_are_twenty_thousand() -> None:
    assert sum(LONG_RUNS.values()) >= 20_000
