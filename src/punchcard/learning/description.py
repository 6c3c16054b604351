"""A model's network and names as plain data, and back: every field of a description that is read is checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from punchcard.errors import StorageError
from punchcard.learning.programs.network import Network
from punchcard.learning.programs.rules import ACTIVATIONS, LOSSES, huber

if TYPE_CHECKING:
    from punchcard.learning.model import Model

FORMAT = 2
MOST_UNITS = 1 << 32


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
