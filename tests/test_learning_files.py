"""Saved models that are not good: older, damaged or forged. All are refused in one line, and none becomes another model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save

from punchcard.errors import PunchcardError, StorageError
from punchcard.learning import Model, learn
from punchcard.learning.model import KEY, Scaling
from punchcard.learning.programs.network import Network
from punchcard.learning.programs.rules import huber
from punchcard.machines import storage
from tests.command_line import assert_refused
from tests.forgeries import accepted_flips, forge

NETWORK = Network(2, (2,), 1, loss=huber(0.5))
SCALING = Scaling(np.array([1.0, 2.0]), np.array([0.5, 3.0]))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    Model(NETWORK, NETWORK.initial(7), ("p", "q"), ("y",), SCALING).save(path)
    return path


def deep(levels: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


def test_what_is_saved_comes_back(saved: Path) -> None:
    again = Model.load(saved)
    assert (again.feature_names, again.target_names, again.network.loss.limit) == (("p", "q"), ("y",), 0.5)
    assert all(np.array_equal(again.weights[name], value) for name, value in NETWORK.initial(7).items())
    assert again.inputs is not None
    assert np.array_equal(again.inputs.deviation, SCALING.deviation)
    assert again.outputs is None
    one = Scaling(np.array([1.0]), np.array([0.5]))  # may serve twice
    Model(Network(1), Network(1).initial(7), inputs=one, outputs=one).save(saved)
    for scaling in (Model.load(saved).inputs, Model.load(saved).outputs):
        assert scaling is not None
        assert (scaling.mean.tolist(), scaling.deviation.tolist()) == ([1.0], [0.5])


@pytest.mark.parametrize(("change", "message"), [
    ({"format": 3}, "is a model of another format than 2"),
    ({"format": "punchcard model 1"}, "is a model of another format than 2"),
    ({"features": ...}, "the description lacks 'features'"),
    ({"more": 1}, "the description has a field 'more'"),
    ({"features": "2"}, "features is '2': it must be an integer, 1 or more"),
    ({"features": True}, "features is True"),
    ({"features": 2.0}, r"features is 2\.0"),
    ({"features": -1}, "features is -1"),
    ({"features": 10**30}, "features is 1000000"),
    ({"features": 3}, "2 feature names: the network has 3 features"),
    ({"hidden": 2}, "hidden is 2: it must be a list of integers, 1 or more"),
    ({"hidden": [0]}, r"hidden is \[0\]"),
    ({"hidden": deep(900)}, r"hidden is \[\[\[\["),
    ({"hidden": [10**9]}, r"weights 'W1' have the shape \(2, 2\): the network needs \(2, 1000000000\)"),
    ({"hidden": []}, r"weights 'W2': the network has W1, b1"),
    ({"outputs": 2}, "1 target names: the network has 2 targets"),
    ({"activation": ["tanh"]}, "activation is .* one of sigmoid, tanh"),
    ({"activation": "sin"}, "activation is 'sin': it must be one of sigmoid, tanh"),
    ({"loss": "own"}, "loss is 'own': it must be one of squared, huber"),
    ({"loss": "squared"}, "the huber loss has a limit, and no other has one"),
    ({"limit": None}, "the huber loss has a limit"),
    ({"limit": "1"}, "limit is '1'"),
    ({"limit": float("nan")}, "huber limit nan: it must be positive"),
    ({"limit": -1.0}, "huber limit -1: it must be positive"),
    ({"bias": 1}, "bias is 1: it must be true or false"),
    ({"bias": False}, "weights 'b1': the network has W1, W2"),
    ({"feature_names": ["p", "p"]}, "column names must differ"),
    ({"feature_names": ["p", 2]}, "feature_names is .* a list of text"),
    ({"feature_names": "pq"}, "feature_names is 'pq': it must be a list of text"),
    ({"feature_names": ["p", ""]}, "a name is text, and not empty"),
    ({"feature_names": ["p", "\ud800"]}, "a name is text"),
    ({"target_names": ["y", "z", "y"]}, "column names must differ"),
    ({"target_names": None}, "target_names is None"),
])
def test_forged_descriptions(saved: Path, change: dict[str, Any], message: str) -> None:
    forge(saved, KEY, change)
    with pytest.raises(StorageError, match=message) as caught:
        Model.load(saved)
    assert str(saved) in str(caught.value)
    assert "\n" not in str(caught.value)


W1 = torch.zeros(2, 2, dtype=torch.float64)


@pytest.mark.parametrize(("tensors", "message"), [
    ({"W1": ...}, "weights without 'W1'"),
    ({"W3": W1}, "weights 'W3': the network has W1, b1, W2, b2"),
    ({"W1": torch.zeros(5, 5, dtype=torch.float64)}, r"'W1' have the shape \(5, 5\): the network needs \(2, 2\)"),
    ({"W1": torch.full_like(W1, torch.nan)}, "weights 'W1' hold NaN or infinity"),
    ({"W1": W1.to(torch.complex64)}, "'W1' is of complex64: it must be of float64"),
    ({"W1": W1.to(torch.bool)}, "'W1' is of bool"),
    ({"W1": W1.to(torch.bfloat16)}, "'W1' is of bfloat16"),
    ({"inputs_mean": ...}, "weights 'inputs_deviation': the network has"),
    ({"inputs_mean": torch.full((2,), torch.inf, dtype=torch.float64)}, "the mean of inputs holds NaN or infinity"),
    ({"inputs_deviation": torch.tensor([1.0, 0.0], dtype=torch.float64)}, "the deviation of inputs is 0"),
    ({"inputs_deviation": torch.ones(3, dtype=torch.float64)}, r"the deviation of inputs has the shape \(3,\)"),
])
def test_forged_tensors(saved: Path, tensors: dict[str, Any], message: str) -> None:
    forge(saved, KEY, {}, tensors)
    with pytest.raises(StorageError, match=message):
        Model.load(saved)


def test_files_that_are_no_models(tmp_path: Path) -> None:
    np.savez(tmp_path / "old.npz", about=np.array("{}"), W1=np.ones((2, 1)))
    (tmp_path / "text").write_text("weights")
    storage.write(tmp_path / "other", {"W1": W1}, "other", {"format": 2})
    (tmp_path / "deep").write_bytes(save({"W1": W1}, metadata={KEY: "[" * 100_000}))  # more than Python's parser takes
    for name, message in (
        ("none", "no such file"), ("x" * 300, "cannot read .*: File name too long"),
        ("text", "is not a safetensors file"), ("other", "is not a model"),
        ("deep", "is not a model: its metadata has no"),
        ("old.npz", "is a .npz file, as older versions wrote models: learn it again with `punchcard learn --save`"),
    ):
        with pytest.raises(StorageError, match=message):
            Model.load(tmp_path / name)


def test_damage_does_not_turn_a_model_into_another(saved: Path) -> None:
    assert accepted_flips(saved, Model.load, 300) == []


def test_a_model_without_names_is_not_for_tables(tmp_path: Path) -> None:
    Model(NETWORK, NETWORK.initial(7)).save(tmp_path / "m")
    assert_refused("has no column names", "predict", tmp_path / "m", tmp_path / "table.csv")


@pytest.mark.parametrize(("names", "message"), [
    (("a",), "1 feature names: the network has 2 features"),
    (("a", 5), "feature_names=.*5.*: it must be a list, each item a text"),
    (("a", "a"), "feature names a, a: column names must differ")])
def test_names_are_checked_before_anything_is_learned(names: tuple[Any, ...], message: str) -> None:
    with pytest.raises(PunchcardError, match=message):
        learn([[1.0, 2.0]], [1.0], epochs=1, feature_names=names, engine="no engine would be found")
