"""Engines run any model on any card: here a machine that the package does not contain, written in the test."""

from __future__ import annotations

import pytest
import torch

from punchcard.card.encoding import decode_unsigned, encode_unsigned
from punchcard.card.layout import Layout, Pattern, Region, RowBlock
from punchcard.engines import ENGINES, find_engine
from punchcard.errors import LayoutError
from punchcard.primitives.add import increment_bits
from punchcard.primitives.read import read
from punchcard.transformer.build import assign, build
from punchcard.transformer.expression import rows
from punchcard.transformer.model import LoopedTransformer
from punchcard.transformer.precision import Precision

BITS = 3
CELLS = 7


def counter_machine() -> tuple[Layout, LoopedTransformer, torch.Tensor]:
    """A card reader: each loop reads the column that the counter names, and counts on."""
    layout = Layout(
        [RowBlock("data", 2, holds={"tape": "bits"}),
         RowBlock("seen", 2, changes=("head",), holds={"head": "bits"}),
         RowBlock("counter", BITS, changes=("head",), holds={"head": "bits"}),
         RowBlock("position", BITS, holds={"tape": "bits"}),
         RowBlock("inside", 1, holds={"head": "one"}),
         RowBlock("v_new", 2)],
        [Region("head", 1), Region("tape", CELLS)],
    )
    data, seen, counter, position, one, v_new = (rows(layout, block.name) for block in layout.blocks)
    parts = [
        read(pointer=counter, position=position, source=data, into=seen, via=v_new, inside=one, gate=8.0),
        assign(counter, increment_bits(counter, one)),
    ]
    card = layout.blank()
    layout.put(card, "data", "tape", encode_unsigned([i % 4 for i in range(CELLS)], 2))
    layout.put(card, "position", "tape", encode_unsigned(list(range(1, CELLS + 1)), BITS))
    layout.put(card, "seen", "head", -1.0)
    layout.put(card, "counter", "head", encode_unsigned(1, BITS))
    layout.put(card, "inside", "head", 1.0)
    return layout, build(parts, layout.width, Precision()), card


@pytest.mark.parametrize("name", ENGINES)
def test_a_machine_from_elsewhere(name: str) -> None:
    layout, model, card = counter_machine()
    engine = find_engine(name)
    for loops in range(1, CELLS + 1):
        ran = engine(model, card, loops, facts=layout)
        assert (ran.loops, ran.reason) == (loops, "loops")
        assert decode_unsigned(layout.get(ran.card, "seen", "head")).item() == (loops - 1) % 4
        assert decode_unsigned(layout.get(ran.card, "counter", "head")).item() == (loops + 1) % 8


@pytest.mark.parametrize("name", ENGINES)
def test_until_a_pattern_stands_on_every_card(name: str) -> None:
    layout, model, card = counter_machine()
    pattern = Pattern("counter", "head", (1, -1, 1))  # 5
    ran = find_engine(name)(model, card, 100, facts=layout, until=pattern)
    assert (ran.loops, ran.reason) == (4, "matched")
    later = card.clone()
    layout.put(later, "counter", "head", encode_unsigned(2, BITS))
    both = find_engine(name)(model, torch.stack([card, later]), 20, facts=layout, until=pattern)
    assert (both.loops, both.reason) == (20, "loops"), "the two counters never show it together"


@pytest.mark.parametrize("name", ENGINES)
def test_without_facts_every_engine_still_runs(name: str) -> None:
    _, model, card = counter_machine()
    assert find_engine(name)(model, card, 3).loops == 3
    with pytest.raises(LayoutError, match="`until` and `ports` name rows of the card"):
        find_engine(name)(model, card, 3, until=Pattern("counter", "head", (1, 1, 1)))


@pytest.mark.parametrize("name", ENGINES)
def test_watch_and_interruption(name: str) -> None:
    _, model, card = counter_machine()
    seen: list[int] = []
    ran = find_engine(name)(model, card, 50, watch=lambda loop, _: seen.append(loop),
                            interrupted=lambda: len(seen) == 6)
    assert (ran.loops, ran.reason, seen) == (6, "interrupted", [1, 2, 3, 4, 5, 6])


def test_dense_is_the_model_applied_again_and_again() -> None:
    _, model, card = counter_machine()
    expected = card
    for _ in range(9):
        expected = model(expected)
    assert torch.equal(find_engine("dense")(model, card, 9).card, expected)


def test_threads_are_left_as_they_were() -> None:
    _, model, card = counter_machine()
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        find_engine("dense")(model, card, 2)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
