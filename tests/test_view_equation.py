"""A page with the model inside computes what the dense engine computes: SUBLEQ bit for bit, real numbers to 1e-12."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import punchcard
from punchcard.card.formats import AnyArray
from punchcard.view.html import write_html
from punchcard.view.session import session_of
from tests.browsing import Watched, browser, cards_of
from tests.cases import DESIGNS, EXAMPLES, EXPECTED

QUICK = ("add.subleq", "multiply.subleq", "reverse.subleq", "search.subleq")
SUBLEQ = [name for name in EXPECTED if name.endswith(".subleq")]


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    with browser() as found:
        yield Watched(found)


def dense(machine: Any, card: torch.Tensor, loops: int) -> Iterator[AnyArray]:
    """The equation as the dense engine has it, half a layer at a time."""
    with torch.no_grad():
        for _ in range(loops):
            for layer in machine.model.layers:
                card = layer.attend(card)
                yield card.numpy()
                card = layer.feed_forward(card)
                yield card.numpy()


def compare(watched: Watched, tmp_path: Path, name: str, *, tolerance: float = 0.0, **options: Any) -> int:
    """All moments of a run; how many there were."""
    program = punchcard.load(EXAMPLES / name)
    machine = punchcard.build(program, **options)
    file = tmp_path / "run.html"
    session = session_of(machine, program, EXAMPLES / name)
    loops = session.explore(60)["loops"]  # the end is soon found, once the weights are compiled
    assert loops is not None
    assert write_html(file, session, model=True) < 3e6
    shown = watched.open(file.as_uri())
    first = machine.punch(program)
    moments = 2 * len(machine.weights.layers) * loops
    pairs = zip(cards_of(shown, first.numpy(), moments), dense(machine, first, loops), strict=True)
    found = 0
    for moment, (ours, theirs) in enumerate(pairs):
        if tolerance:
            assert np.abs(ours - theirs).max() <= tolerance, (name, moment)
        else:
            assert np.array_equal(ours.view("u8"), np.ascontiguousarray(theirs).view("u8")), (name, moment)
        found += 1
    assert found == moments
    assert not watched.problems
    assert not watched.foreign(file.as_uri())
    return found


@pytest.mark.parametrize("name", SUBLEQ)
def test_subleq_bit_for_bit(watched: Watched, tmp_path: Path, name: str) -> None:
    compare(watched, tmp_path, name, design="two-layer")


@pytest.mark.parametrize(("name", "design"), [
    pytest.param(name, design, marks=() if name in QUICK[:2] else pytest.mark.soak)
    for name in SUBLEQ for design in DESIGNS if design != "two-layer"])
def test_other_designs_bit_for_bit(watched: Watched, tmp_path: Path, name: str, design: str) -> None:
    compare(watched, tmp_path, name, design=design)


@pytest.mark.parametrize("design", [
    "compact", *(pytest.param(name, marks=pytest.mark.soak) for name in ("three-layer", "paper"))])
def test_real_numbers(watched: Watched, tmp_path: Path, design: str) -> None:
    compare(watched, tmp_path, "newton.fleq", tolerance=1e-12, design=design)
