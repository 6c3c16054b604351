"""When a losing key's weight is exactly 0: the one rule, against softmaxes as libraries compute them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from punchcard.card.formats import FORMATS, AnyArray
from punchcard.transformer.precision import DTYPES
from punchcard.transformer.softmax import Scores, hard_lead, hard_product
from punchcard.transformer.sparse import SparseMatrix
from punchcard.transformer.sums import HeadMatrices


def plain_softmax(scores: AnyArray) -> AnyArray:
    """A softmax whose every operation is rounded to the format of the scores."""
    powers = np.exp(scores - scores.max())
    return np.asarray(powers / powers.sum(dtype=scores.dtype))


@pytest.mark.parametrize("name", DTYPES)
def test_every_number_from_the_lead_on_leaves_nothing(name: str) -> None:
    """All numbers of narrow formats, and for the others those next to the lead and many beyond."""
    dtype, least = getattr(torch, name), hard_product(name)
    if name in ("float16", "bfloat16"):
        scores = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int16).view(dtype)
        scores = scores[torch.isfinite(scores) & (scores.double() <= -least)]
    else:
        near = torch.full((4096,), -least, dtype=dtype)
        for i in range(1, len(near)):
            near[i] = torch.nextafter(near[i - 1], near[0] * 2)
        beyond = torch.rand(100_000, dtype=dtype, generator=torch.Generator().manual_seed(1))
        scores = torch.cat([near, -least * (1 + beyond)])
    assert len(scores) > 1000
    assert bool((torch.exp(scores) == 0).all())
    weights = torch.softmax(torch.stack([torch.zeros_like(scores), scores]), 0)
    assert bool((weights[0] == 1).all() & (weights[1] == 0).all())
    if name != "bfloat16":
        assert bool((np.exp(scores.numpy()) == 0).all())


@pytest.mark.parametrize("name", DTYPES)
def test_a_little_less_than_the_lead_leaves_something(name: str) -> None:
    limits = FORMATS[name]
    exact = math.log(2) - math.log(limits.tiny * limits.eps)
    assert exact < hard_product(name) <= exact * (1 + 4 * limits.eps) * (1 + 2**-50)
    score = torch.tensor(-exact + 2.0, dtype=torch.float64)
    assert float(torch.exp(score).to(getattr(torch, name))) > 0


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_keys_that_lose_by_the_lead_have_no_weight(name: str) -> None:
    """Random keys and queries, with scores in the format; the leads are those of exact scores."""
    rng, array, lost, kept = np.random.default_rng(3), FORMATS[name].array, 0, 0
    for trial in range(400):
        size, count = int(rng.integers(1, 9)), int(rng.integers(2, 30))
        if trial % 2:
            keys, query = rng.choice([-1.0, 1.0], (size, count)), rng.choice([-1.0, -0.5, 0.75, 1.0], size)
        else:
            keys, query = rng.normal(size=(size, count)).astype(array).astype(float), rng.normal(size=size).astype(array)
        temperature = float(2.0 ** rng.integers(0, 12)) * (1.0 if trial % 4 < 2 else float(rng.uniform(0.5, 1)))
        temperature = float(array.type(temperature))
        largest = float(np.abs(keys).max(axis=1) @ np.abs(query.astype(float)))
        lead = hard_lead(name, temperature, Scores(largest, size))
        if math.isinf(lead):
            continue
        exact = [sum(a.as_integer_ratio()[0] * (2**200 // a.as_integer_ratio()[1]) * b for a, b in zip(
            key.tolist(), [int(q * 2.0**60) for q in query.astype(float).tolist()], strict=True)) for key in keys.T]
        losing = np.array([max(exact) - each >= lead * 2.0**60 * 2**200 for each in exact])
        scores = keys.astype(array).T @ query.astype(array)
        scaled = (scores * array.type(temperature)).astype(array)
        for weights in (plain_softmax(scaled), torch.softmax(torch.from_numpy(scaled), 0).numpy()):
            assert not weights[losing].any()
        lost, kept = lost + int(losing.sum()), kept + int((~losing).sum())
    assert lost > 300
    assert kept > 300


def test_what_has_no_lead() -> None:
    assert math.isinf(hard_lead("float64", 0.0, Scores(1.0)))
    assert math.isinf(hard_lead("float64", math.nan, Scores(1.0)))
    assert math.isinf(hard_lead("float16", 1024.0, Scores(100.0))), "a product would be infinite"
    assert math.isinf(hard_lead("float16", 0.25, Scores(1e5))), "a score would be infinite before it is multiplied"
    assert math.isinf(hard_lead("bfloat16", 1.0, Scores(1.0, 100))), "so many roundings may change everything"
    exact = hard_lead("float32", 64.0, Scores(8.0))
    assert hard_lead("float32", 64.0, Scores(8.0, 20, 0.25)) == exact, "all terms are quarters"
    assert hard_lead("float32", 64.0, Scores(8.0, 20)) > exact


def test_roundings_of_scores() -> None:
    key, query = np.array([[0.5, 0.0, 3.0], [0.0, 0.0, 0.0]]), np.array([[2.0, 0.0, 0.0], [0.0, 7.0, 0.0]])
    assert HeadMatrices(SparseMatrix(key), SparseMatrix(query), SparseMatrix(key), 1.0, 1).roundings == 5
