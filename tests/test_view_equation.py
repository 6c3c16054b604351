"""A page with the model inside computes what the dense engine computes: SUBLEQ bit for bit, real numbers to 1e-12."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from punchcard.viewer.html import write_html
from tests.browsing import Watched, cards_of
from tests.cases import DESIGNS, EXPECTED, soaked
from tests.opened import opened
from tests.test_view_session import dense

QUICK = ("add.subleq", "multiply.subleq", "reverse.subleq", "search.subleq")
SUBLEQ = [name for name in EXPECTED if name.endswith(".subleq")]


def compare(watched: Watched, tmp_path: Path, name: str, *, tolerance: float = 0.0, **options: Any) -> None:
    """All moments of a run."""
    program, machine, session = opened(name, **options)
    file = tmp_path / "run.html"
    loops = session.explore(60)["loops"]  # the end is soon found, once the weights are compiled
    assert loops is not None
    assert write_html(file, session, model=True) < 3e6
    shown = watched.open(file.as_uri())
    card = machine.punch(program).numpy()
    cards = cards_of(shown, card, session.per_loop * loops)
    for loop in range(loops):
        for stage, theirs in enumerate(stages := dense(machine, card)[1:]):
            ours = next(cards)
            if tolerance:
                assert np.abs(ours - theirs).max() <= tolerance, (name, loop, stage)
            else:
                assert np.array_equal(ours.view("u8"), np.ascontiguousarray(theirs).view("u8")), (name, loop, stage)
        card = stages[-1]
    assert next(cards, None) is None
    assert not watched.problems
    assert not watched.foreign(file.as_uri())


@pytest.mark.parametrize("name", SUBLEQ)
def test_subleq_bit_for_bit(watched: Watched, tmp_path: Path, name: str) -> None:
    compare(watched, tmp_path, name, design="two-layer")


@pytest.mark.parametrize(("name", "design"), [
    pytest.param(name, design, marks=() if name in QUICK[:2] else pytest.mark.soak)
    for name in SUBLEQ for design in DESIGNS if design != "two-layer"])
def test_other_designs_bit_for_bit(watched: Watched, tmp_path: Path, name: str, design: str) -> None:
    compare(watched, tmp_path, name, design=design)


@pytest.mark.parametrize("design", [
    "compact", *(soaked(name) for name in ("three-layer", "paper"))])
def test_real_numbers(watched: Watched, tmp_path: Path, design: str) -> None:
    compare(watched, tmp_path, "newton.fleq", tolerance=1e-12, design=design)
