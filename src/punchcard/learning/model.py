"""A model that was learned: its network and weights, the names and scales of its data; saved to one .npz file."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from punchcard.errors import PunchcardError, StorageError
from punchcard.learning.files import whole_file
from punchcard.learning.programs.network import Array, Network, Weights
from punchcard.learning.programs.rules import ACTIVATIONS, LOSSES, huber

FORMAT = "punchcard model 1"
HEADER = "about"


@dataclass(frozen=True)
class Scaling:
    """Means and deviations of the data: values become (value - mean) / deviation. A constant column's deviation is 1."""

    mean: Array
    deviation: Array

    @classmethod
    def of(cls, values: Array) -> Scaling:
        deviation = values.std(axis=0)
        return cls(values.mean(axis=0), np.where(deviation > 0, deviation, 1.0))

    def apply(self, values: Array) -> Array:
        return np.asarray((values - self.mean) / self.deviation)

    def undo(self, values: Array) -> Array:
        return np.asarray(values * self.deviation + self.mean)


@dataclass(frozen=True)
class Model:
    """A network with its weights.

    W1 is features by units: an output of the first layer is x W1 + b1. `inputs` and `outputs` scale the data around the
    network, where it was learned from standardised data.
    """

    network: Network
    weights: Weights = field(repr=False)
    feature_names: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    inputs: Scaling | None = field(default=None, repr=False)
    outputs: Scaling | None = field(default=None, repr=False)

    def features(self, values: ArrayLike) -> Array:
        """Points in rows, checked and scaled as the network takes them."""
        points = as_matrix(values, "features")
        if points.shape[1] != self.network.features:
            raise PunchcardError(f"points with {points.shape[1]} features: the model has {self.network.features}")
        return points if self.inputs is None else self.inputs.apply(points)

    def save(self, path: str | Path) -> None:
        """Write the model to a .npz file, whole or not at all."""
        network = self.network
        if ACTIVATIONS.get(network.activation.name) is not network.activation:
            raise StorageError(f"activation {network.activation.name!r} is code of your own, which no file holds")
        if network.loss.name not in LOSSES:
            raise StorageError(f"loss {network.loss.name!r} is code of your own, which no file holds")
        about = {
            "format": FORMAT, "features": network.features, "hidden": list(network.hidden), "outputs": network.outputs,
            "activation": network.activation.name, "loss": network.loss.name, "bias": network.bias,
            "limit": network.loss.limit, "feature_names": list(self.feature_names),
            "target_names": list(self.target_names),
        }
        arrays = {HEADER: np.array(json.dumps(about)), **self.weights}
        for name, scaling in (("inputs", self.inputs), ("outputs", self.outputs)):
            if scaling is not None:
                arrays |= {f"{name}_mean": scaling.mean, f"{name}_deviation": scaling.deviation}
        with whole_file(path) as part, part.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # names of arrays, none of them `allow_pickle`

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """A model from its file; nothing in the file is executed."""
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            about = json.loads(str(arrays.pop(HEADER)))
            if about["format"] != FORMAT:
                raise KeyError
            return cls._restored(about, arrays)
        except OSError as error:
            raise StorageError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
        except (KeyError, ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile):
            raise StorageError(f"{str(path)!r} is not a model that `punchcard learn` saved") from None
        except PunchcardError as error:
            raise StorageError(f"{str(path)!r}: {error}") from None

    @classmethod
    def _restored(cls, about: dict[str, Any], arrays: dict[str, Array]) -> Model:
        loss = huber(about["limit"]) if about["loss"] == "huber" else LOSSES[about["loss"]]
        network = Network(about["features"], tuple(about["hidden"]), about["outputs"], ACTIVATIONS[about["activation"]],
                          loss, about["bias"])
        scalings = {
            name: Scaling(arrays.pop(f"{name}_mean"), arrays.pop(f"{name}_deviation")) if f"{name}_mean" in arrays else None
            for name in ("inputs", "outputs")
        }
        return cls(network, network.checked(arrays), tuple(about["feature_names"]), tuple(about["target_names"]),
                   scalings["inputs"], scalings["outputs"])


def as_matrix(values: ArrayLike, what: str) -> Array:
    """Finite numbers, a point a row; a list of numbers is a column."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise PunchcardError(f"{what}: not an array of numbers; give a list of rows of equal length") from None
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.size == 0:
        raise PunchcardError(f"{what} of the shape {array.shape}: give a matrix with a row for each point")
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise PunchcardError(f"{what}: row {row}, column {column} is {array[row, column]}: all must be finite")
    return array
