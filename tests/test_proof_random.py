"""The prover against all cards of machines with random weights: what it shows must be so on each of them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from punchcard.errors import ProofError
from tests.cases import soaked

pytest.importorskip("z3")

from tests.random_machines import TinyMachine, places, prove_tiny, random_machine, told


def judged(machine: Any, right: bool) -> str:
    """How a proof ends, of a machine whose model does what it means on every card, or does not."""
    try:
        found = prove_tiny(machine, seconds=30)
    except ProofError as error:
        return f"refused: {str(error).partition(';')[0]}"
    if found.proven:
        assert right
        return "proven"
    example = found.counterexample
    if example is not None:
        assert machine.layout.violations(example.card) == []
        assert not (right and example.differences)
    return "a margin is missed" if right else "refuted" if example is not None and example.differences else "not shown"


def altered(rng: random.Random, machine: TinyMachine, pairs: list[Any]) -> list[Any]:
    """The table with one bit of one card turned."""
    number = rng.randrange(len(pairs))
    before, after = pairs[number]
    block, _, column = rng.choice(places(machine.layout))
    rows, other = machine.layout.rows(block), after.copy()
    other[rng.randrange(rows.start, rows.stop), column] *= -1
    return [*pairs[:number], (before, other), *pairs[number + 1 :]]


@pytest.mark.parametrize("count", [6, soaked(400)])
def test_what_is_shown_is_so_on_every_card(count: int) -> None:
    """A machine that is right is proven, or misses a margin; one that is wrong on a card, or by its meaning, is not."""
    rng, ends, tried = random.Random(count), Counter[str](), 0
    while tried < count:
        made = random_machine(rng)
        if made is None:
            continue
        tried += 1
        machine, before, after = made
        fine = [not machine.layout.violations(card) for card in after]
        pairs = [(old, new if good else old) for old, new, good in zip(before, after, fine, strict=True)]
        machine.meaning = told(machine.layout, pairs)
        ends[judged(machine, all(fine))] += 1
        if all(fine):
            assert np.isin(after, (-1, 0, 1)).all()
            machine.meaning = told(machine.layout, altered(rng, machine, pairs))
            ends[f"one bit of the meaning turned: {judged(machine, False)}"] += 1
    print(ends)  # noqa: T201
    assert ends["proven"] > 0
    assert ends["refuted"] + ends["one bit of the meaning turned: refuted"] > 0
