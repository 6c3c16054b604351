"""Winners: the keys whose softmax weight is not exactly 0, compared with all scores."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from punchcard.card.encoding import encode_bits
from punchcard.engines.scratchpad import winners
from punchcard.transformer.softmax import hard_product


def codes(count: int, generator: torch.Generator) -> Tensor:
    return torch.randint(0, 2, (5, count), generator=generator).double() * 2 - 1


@pytest.mark.parametrize("kind", ["codes", "codes and constants", "nearly codes", "gaps in the queries", "numbers",
                                  "zeros"])
@pytest.mark.parametrize("reach", [0.5, 2.5, 1e9])
def test_winners_are_all_keys_near_the_best(kind: str, reach: float) -> None:
    generator = torch.Generator().manual_seed(3)
    keys, queries = codes(40, generator), codes(60, generator)
    if kind == "codes and constants":
        keys, queries = torch.cat([0.75 * keys, torch.full((2, 40), 3.0)]), torch.cat([queries, torch.randn(2, 60)])
    elif kind == "nearly codes":
        keys[1] += 0.25 * keys[3]
        keys[4] += 0.1 * torch.randn(40, generator=generator)
    elif kind == "gaps in the queries":
        queries[2:, ::3] = 0.0
    elif kind == "numbers":
        keys = torch.randn(5, 40, generator=generator).double()
    elif kind == "zeros":
        queries[:, 7:] = 0.0
    found = winners.find(keys, queries, reach)
    scores = keys.T @ queries.double()
    near = scores >= scores.amax(0) - reach
    for query in range(60):
        expected = near[:, query].nonzero().squeeze(1).tolist()
        if len(expected) <= winners.MOST_WINNERS:
            assert sorted(k for k in found.keys[:, query].tolist() if k >= 0) == expected
            assert found.shared[query] == -1
        else:
            same = (queries == queries[:, query : query + 1]).all(0)
            assert torch.equal(found.shared == found.shared[query], same)
            assert bool((found.keys[:, query] == -1).all())


def test_codes_are_looked_up_and_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """65,536 codes of 16 bits: all pairs would be 4 thousand million scores."""
    def refuse(*_: object) -> None:
        raise AssertionError("all scores were computed")

    monkeypatch.setattr(winners, "_by_score", refuse)
    keys = encode_bits(torch.arange(1 << 16), 16)
    nearly = keys.clone()
    nearly[2] += 0.0625 * keys[9]  # as one wrong weight makes it
    for held, reach in ((keys, 1.7), (nearly, 1.5)):
        found = winners.find(0.875 * held, keys.flip(1), reach)
        assert torch.equal(found.keys, torch.arange(1 << 16).flip(0).unsqueeze(0))
        assert bool((found.shared == -1).all())


def test_the_reach_of_a_hard_head_is_that_of_the_number_format() -> None:
    bits = encode_bits(torch.arange(8), 3)
    for name in ("float32", "float64", "bfloat16"):
        dtype = getattr(torch, name)
        exact = winners.reach_of(bits.to(dtype), 0.875 * bits.to(dtype), 512.0, 100)
        assert exact == hard_product(name) / 512.0
        assert winners.reach_of(bits.to(dtype), bits.to(dtype) / 3, 512.0, 100) > exact, "sums may be rounded"
        assert winners.reach_of(bits.to(dtype), 0.875 * bits.to(dtype), 500.0, 100) > hard_product(name) / 500.0
    assert winners.reach_of(bits, bits, 0.0, 100) == torch.inf
