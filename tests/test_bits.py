"""Adding a constant to bits, and comparing with one: every value of small widths, and nothing outside the indicator."""

from __future__ import annotations

import pytest
import torch

from punchcard.card.encoding import decode_unsigned, encode_unsigned
from punchcard.primitives.bits import at_least, offset_bits
from punchcard.transformer.build import assign
from punchcard.transformer.expression import stack
from tests.test_primitives import one_layer, word_card


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("offset", [-9, -3, -2, -1, 0, 1, 2, 3, 8])
def test_offset_of_every_value(d: int, offset: int) -> None:
    layout, card, row = word_card(2**d, a=d, b=d)
    every = list(range(2**d))
    layout.put(card, "a", "cases", encode_unsigned(every, d))
    layout.put(card, "a", "outside", -1.0)
    model = one_layer(assign(row["b"], offset_bits(row["a"], offset, row["one"])), layout)
    after = model(card)
    assert decode_unsigned(layout.get(after, "b", "cases")).tolist() == [(a + offset) % 2**d for a in every]
    assert not layout.get(after, "b", "outside").any()
    assert model.shapes[0].hidden <= 4 * d + 2 * d, "four units a bit, and two for the old value"


@pytest.mark.parametrize("d", [1, 2, 4])
def test_every_value_against_every_threshold(d: int) -> None:
    thresholds = range(2**d + 2)
    layout, card, row = word_card(2**d, a=d, b=len(thresholds))
    layout.put(card, "a", "cases", encode_unsigned(list(range(2**d)), d))
    layout.put(card, "a", "outside", 1.0)
    noisy = card.clone()
    noisy[layout.rows("a")] += 0.2 / 2**d
    model = one_layer(assign(row["b"], stack(*(at_least(row["a"], t, row["one"]) for t in thresholds))), layout)
    expected = torch.tensor([[float(a >= t) for a in range(2**d)] for t in thresholds], dtype=torch.float64)
    for start in (card, noisy):
        after = model(start)
        torch.testing.assert_close(layout.get(after, "b", "cases"), expected)
        assert not layout.get(after, "b", "outside").any()
