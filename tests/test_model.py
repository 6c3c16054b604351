"""The model is equation (TF), entry by entry; its weights are arrays before they are a module, and the same numbers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from punchcard.card.formats import FORMATS, as_array
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.transformer import model as model_file
from punchcard.transformer.model import LayerShape, LoopedTransformer, TransformerLayer
from punchcard.transformer.weights import Weights, as_module


def random_model(width: int = 6, dtype: torch.dtype = torch.float64) -> LoopedTransformer:
    torch.manual_seed(3)
    model = LoopedTransformer(width, [LayerShape(2, 3, 5), LayerShape(0, 0, 4), LayerShape(1, 6, 0)], dtype)
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.7, 0.7)
    return model


def equation(layer: TransformerLayer, x: np.ndarray) -> np.ndarray:
    """(TF) with loops and plain exponentials."""
    w = {name: tensor.numpy() for name, tensor in layer.state_dict().items()}
    attended = x.copy()
    for h in range(len(w["key"])):
        scores = x.T @ w["key"][h].T @ w["query"][h] @ x
        weights = np.exp(w["temperature"][h] * scores)
        weights /= weights.sum(axis=0, keepdims=True)
        attended += w["value"][h] @ x @ weights
    hidden = np.maximum(w["w1"] @ attended + w["b1"], 0)
    return np.asarray(attended + w["w2"] @ hidden + w["b2"])


def test_forward_is_the_equation() -> None:
    model = random_model()
    x = torch.randn(6, 9, dtype=torch.float64)
    expected = x.numpy()
    for layer in model.layers:
        assert isinstance(layer, TransformerLayer)
        expected = equation(layer, expected)
    assert np.abs(model(x).numpy() - expected).max() < 1e-13


def test_batches_over_leading_dimensions() -> None:
    model = random_model()
    x = torch.randn(2, 3, 6, 9, dtype=torch.float64)
    for i in range(2):
        for j in range(3):
            assert torch.allclose(model(x)[i, j], model(x[i, j]), rtol=0, atol=1e-14)


def test_softmax_is_stable_at_any_temperature() -> None:
    model = random_model()
    for layer in model.layers:
        assert isinstance(layer, TransformerLayer)
        layer.temperature.fill_(1e6)
    assert torch.isfinite(model(torch.randn(6, 9, dtype=torch.float64) * 100)).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_any_float_dtype(dtype: torch.dtype) -> None:
    out = random_model(dtype=dtype)(torch.randn(6, 9, dtype=dtype))
    assert out.dtype == dtype
    assert torch.isfinite(out).all()


def test_state_dict_round_trips() -> None:
    model = random_model()
    other = LoopedTransformer(6, model.shapes)
    other.load_state_dict(model.state_dict())
    x = torch.randn(6, 9, dtype=torch.float64)
    assert torch.equal(model(x), other(x))


def test_weights_are_frozen() -> None:
    assert not any(p.requires_grad for p in random_model().parameters())


def test_it_runs_without_the_package(tmp_path: Path) -> None:
    """The file alone, copied elsewhere, with the package out of reach."""
    (tmp_path / "alone.py").write_text(Path(model_file.__file__).read_text())
    code = ("import sys; sys.path.insert(0, '.'); sys.modules['punchcard'] = None\n"
            "import torch, alone\n"
            "m = alone.LoopedTransformer(2, [alone.LayerShape(1, 1, 3)])\n"
            "assert m(torch.ones(2, 4, dtype=torch.float64)).shape == (2, 4)")
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


# Weights as arrays


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
