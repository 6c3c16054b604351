"""A model that was learned: its network and weights, the names and scales of its data; saved to one safetensors file.

Beside the tensors the file has a description, plain data: every field of one that is read is checked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
from numpy.typing import ArrayLike

from punchcard.card.formats import name_of
from punchcard.errors import PunchcardError, StorageError
from punchcard.formatting import format_value, join_some
from punchcard.learning.programs.network import Network, Weights
from punchcard.learning.programs.rules import ACTIVATIONS, LOSSES, huber
from punchcard.machines import storage
from punchcard.machines.fleq.isa import Array

KEY = "punchcard-model"
FORMAT = 2
MOST_UNITS = 1 << 32


@dataclass(frozen=True)
class Scaling:
    """Means and deviations of the data: values become (value - mean) / deviation. A constant column's deviation is 1."""

    mean: Array
    deviation: Array

    @classmethod
    def of(cls, values: Array) -> Scaling:
        with np.errstate(over="ignore", invalid="ignore"):
            mean, deviation = values.mean(axis=0), values.std(axis=0)
        for column, (middle, width) in enumerate(zip(mean, deviation, strict=True), start=1):
            if not (np.isfinite(middle) and np.isfinite(width)):
                most = np.abs(values[:, column - 1]).max()
                raise PunchcardError(f"column {column} of {len(mean)} holds values up to {most:g}: that is too large to "
                                     "standardize, scale them first")
        return cls(mean, np.where(deviation > 0, deviation, 1.0))

    def check(self, name: str, columns: int) -> None:
        """Refuse what is not a finite mean and a positive deviation for each column."""
        for what, values in (("mean", self.mean), ("deviation", self.deviation)):
            if np.shape(values) != (columns,):
                raise PunchcardError(f"the {what} of {name} has the shape {np.shape(values)}: it must be {(columns,)}")
            if not np.isfinite(values).all():
                raise PunchcardError(f"the {what} of {name} holds NaN or infinity: it must be finite")
        if not (self.deviation > 0).all():
            raise PunchcardError(f"the deviation of {name} is {self.deviation.min():g}: it must be positive")

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

    def __post_init__(self) -> None:
        network = self.network
        check_names(network, self.feature_names, self.target_names)
        network.checked(self.weights)
        if self.inputs is not None:
            self.inputs.check("inputs", network.features)
        if self.outputs is not None:
            self.outputs.check("outputs", network.outputs)

    def __repr__(self) -> str:
        weights = join_some([f"{name} {format_value(array)}" for name, array in self.weights.items()], most=4)
        return f"<Model: {self.network!r}; {weights}>"

    def features(self, values: ArrayLike) -> Array:
        """Points in rows, checked and scaled as the network takes them."""
        points = as_matrix(values, "features")
        if points.shape[1] != self.network.features:
            raise PunchcardError(f"points with {points.shape[1]} features: the model has {self.network.features}")
        return points if self.inputs is None else self.inputs.apply(points)

    def save(self, path: str | Path) -> None:
        """Write the model to one safetensors file, whole or not at all."""
        arrays = dict(self.weights)
        for name, scaling in (("inputs", self.inputs), ("outputs", self.outputs)):
            if scaling is not None:
                arrays |= {f"{name}_mean": scaling.mean, f"{name}_deviation": scaling.deviation}
        storage.write(path, arrays, KEY, describe(self))

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """A model from its file; nothing in the file is executed, and all that it says is checked."""
        try:
            description, tensors = storage.read_sealed(path, KEY, "model", FORMAT)
        except StorageError as error:
            if os.path.isfile(path) and is_zipfile(path):
                raise StorageError(f"{str(path)!r} is a .npz file, as older versions wrote models: learn it again with "
                                   "`punchcard learn --save`") from None
            raise error from None
        try:
            network = network_of(description)
            for name, tensor in tensors.items():
                if name_of(tensor.dtype) != "float64":
                    raise StorageError(f"{name!r} is of {name_of(tensor.dtype)}: it must be of float64")
            arrays = dict(tensors)
            scalings = [_take_scaling(arrays, name) for name in ("inputs", "outputs")]
            return cls(network, arrays, tuple(description["feature_names"]), tuple(description["target_names"]), *scalings)
        except PunchcardError as error:
            raise StorageError(f"{str(path)!r} is not a model that can be used: {error}") from None


def _take_scaling(arrays: dict[str, Array], name: str) -> Scaling | None:
    """The scaling of a name, taken out of the arrays; half of one stays, and is refused as a weight."""
    names = f"{name}_mean", f"{name}_deviation"
    return Scaling(*map(arrays.pop, names)) if all(part in arrays for part in names) else None


def check_names(network: Network, features: Sequence[str], targets: Sequence[str]) -> None:
    """Refuse names of columns that are not text, twice the same, or not as many as the columns; there may be none."""
    for what, names, columns in (("feature", features, network.features), ("target", targets, network.outputs)):
        for name in names:
            if not isinstance(name, str) or not name or name.encode(errors="ignore").decode() != name:
                raise PunchcardError(f"{what} name {name!r}: a name is text, and not empty")
        if len(set(names)) != len(names):
            raise PunchcardError(f"{what} names {', '.join(names)}: column names must differ")
        if names and len(names) != columns:
            raise PunchcardError(f"{len(names)} {what} names: the network has {columns} {what}{'s' * (columns != 1)}")


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


# The description


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_UNITS


def _all(right: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(right, value))


def _one_of(names: Mapping[str, object]) -> tuple[Callable[[object], bool], str]:
    return lambda value: isinstance(value, str) and value in names, f"one of {', '.join(names)}"


_NAMES = _all(lambda value: isinstance(value, str)), "a list of text"
FIELDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "format": (lambda value: value == FORMAT, str(FORMAT)),
    "features": (_is_count, "an integer, 1 or more"),
    "hidden": (_all(_is_count), "a list of integers, 1 or more"),
    "outputs": (_is_count, "an integer, 1 or more"),
    "activation": _one_of(ACTIVATIONS),
    "loss": _one_of(LOSSES),
    "limit": (lambda value: value is None or isinstance(value, float), "a number, or null"),
    "bias": (lambda value: isinstance(value, bool), "true or false"),
    "feature_names": _NAMES,
    "target_names": _NAMES,
}
"""What a field must be: a test, and the rule in words."""


def describe(model: Model) -> dict[str, Any]:
    """What a file says of a model, beside its tensors. Code of one's own is not in a file."""
    network = model.network
    if ACTIVATIONS.get(network.activation.name) is not network.activation:
        raise StorageError(f"activation {network.activation.name!r} is code of your own, which no file holds")
    if network.loss.name not in LOSSES:
        raise StorageError(f"loss {network.loss.name!r} is code of your own, which no file holds")
    return {
        "format": FORMAT, "features": network.features, "hidden": list(network.hidden), "outputs": network.outputs,
        "activation": network.activation.name, "loss": network.loss.name, "bias": network.bias,
        "limit": None if network.loss.limit is None else float(network.loss.limit),
        "feature_names": list(model.feature_names), "target_names": list(model.target_names),
    }


def network_of(description: Mapping[str, Any]) -> Network:
    """The network that a description is of; whatever is not as `describe` writes it is named."""
    for name in description.keys() ^ FIELDS.keys():
        raise StorageError(f"the description {'lacks' if name in FIELDS else 'has a field'} {name!r}")
    for name, (right, rule) in FIELDS.items():
        if not right(description[name]):
            raise StorageError(f"{name} is {repr(description[name])[:60]}: it must be {rule}")
    limit, loss = description["limit"], LOSSES[description["loss"]]
    if (limit is None) != (loss.limit is None):
        raise StorageError(f"limit is {limit}: the huber loss has a limit, and no other has one")
    return Network(description["features"], tuple(description["hidden"]), description["outputs"],
                   ACTIVATIONS[description["activation"]], loss if limit is None else huber(limit), description["bias"])
