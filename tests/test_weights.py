"""Weights are arrays before they are a module, and the same numbers either way."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from punchcard.card.formats import FORMATS, as_array
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.transformer.weights import Weights, as_module


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_are_rounded_as_torch_rounds_them(name: str) -> None:
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(size=2000) * 2.0 ** rng.integers(-30, 15, 2000), [0.0, -0.0, 1.0, 65504.0, 1e-30],
                             1 + np.arange(64) / 1024])
    expected = torch.from_numpy(values).to(getattr(torch, name))
    found = FORMATS[name].rounded(values)
    assert np.array_equal(found, as_array(expected))
    limits = torch.finfo(expected.dtype)
    assert (limits.eps, limits.tiny, limits.max) == (FORMATS[name].eps, FORMATS[name].tiny, FORMATS[name].max)


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16"])
def test_the_module_has_the_numbers_of_the_arrays(name: str) -> None:
    machine = SubleqMachine(word_bits=2, memory=2, instructions=2, design="paper", precision=name)
    weights, before = machine.weights, machine.weights.digest()
    arrays, counted = dict(weights.state()), weights.parameter_count()
    assert not weights.has_module
    state = machine.model.state_dict()
    assert list(state) == list(arrays)
    for key, tensor in state.items():
        assert tensor.dtype == getattr(torch, name)
        assert np.array_equal(as_array(tensor), arrays[key])
    assert machine.model.parameter_count() == counted
    assert machine.model is weights.module is as_module(weights)
    assert before == weights.digest() == Weights.of(machine.model).digest()
    assert [layer.hidden for layer in weights.layers] == [shape.hidden for shape in machine.model.shapes]


def test_hooks_are_seen_only_where_there_is_a_module() -> None:
    machine = SubleqMachine(word_bits=2, memory=2, instructions=2)
    assert not machine.weights.is_observed
    assert not machine.weights.has_module, "looking makes no module"
    with machine.observe():
        assert machine.weights.is_observed
    assert not machine.weights.is_observed
