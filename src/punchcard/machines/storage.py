"""Machines as files: weights and a description in one safetensors file. Loading executes no code.

`write` and `read_sealed` serve checkpoints and learned models as well. A file is sealed: damage does not turn it into
another one. A seal is not a signature. Whoever forges a file can seal it, so all that it says is checked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from punchcard.card.formats import as_array, name_of
from punchcard.errors import PunchcardError, StorageError
from punchcard.files import check_readable, write_atomic
from punchcard.transformer.precision import Precision
from punchcard.transformer.weights import NAMES, LayerArrays, Weights, raw_bytes, shared_tensor

if TYPE_CHECKING:
    from punchcard.machines.base import AnyMachine

FORMAT = 3
KEY = "punchcard"
ONLY_IN_TORCH = "BF16"
Built = TypeVar("Built", bound="AnyMachine")


def save(path: str | Path, weights: Weights, description: Mapping[str, Any]) -> None:
    """Write the weights of a model and its description."""
    tensors = weights.module.state_dict() if weights.dtype == "bfloat16" else dict(weights.state())
    write(path, tensors, KEY, {"format": FORMAT, **description})


def load(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The description and the tensors of a saved machine."""
    return read_sealed(path, KEY, "saved machine", FORMAT)


def write(path: str | Path, tensors: Mapping[str, Any], key: str, description: Mapping[str, Any]) -> None:
    """Write arrays, or tensors where NumPy lacks the number format, and plain data under a key, sealed."""
    metadata = {key: json.dumps({**description, "seal": seal(description, tensors)})}
    if all(name_of(tensor.dtype) != "bfloat16" for tensor in tensors.values()):
        plain = {name: np.ascontiguousarray(as_array(tensor)) for name, tensor in tensors.items()}
        write_atomic(path, to_bytes(plain, metadata=metadata))
        return
    from safetensors.torch import save as tensors_to_bytes

    held = {name: shared_tensor(tensor).contiguous() for name, tensor in tensors.items()}
    write_atomic(path, tensors_to_bytes(held, metadata))


def read_sealed(path: str | Path, key: str, what: str, form: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `write` wrote, of one format, without the seal."""
    description, tensors = read(path, key, what)
    if description.get("format") != form:
        raise StorageError(f"{str(path)!r} is a {what} of another format than {form}, the one that this version reads: "
                           "make it again")
    if description.pop("seal", None) != seal(description, tensors):
        raise StorageError(f"{str(path)!r} is not as it was written: the file is damaged")
    return description, tensors


def read(path: str | Path, key: str, what: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The plain data under a key, the seal among it, and the tensors: arrays, or torch's where NumPy lacks their format.

    `what` the file should be is named in errors.
    """
    check_readable(path, what)
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            formats = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118
            known = [name for name, kind in formats.items() if kind != ONLY_IN_TORCH]
            tensors = {name: file.get_tensor(name) for name in known}
        if len(known) < len(formats):
            with safe_open(path, framework="pt") as file:
                tensors |= {name: file.get_tensor(name) for name in formats if name not in known}
    except (OSError, ValueError, TypeError, AttributeError, KeyError, SafetensorError) as error:
        raise StorageError(f"{str(path)!r} is not a safetensors file: {error}") from None
    try:
        description = json.loads(metadata[key])
        if not isinstance(description, dict):
            raise ValueError("not an object")
    except (KeyError, ValueError, RecursionError):
        raise StorageError(f"{str(path)!r} is not a {what}: its metadata has no {key!r} description") from None
    return description, tensors


def fill(weights: Weights, tensors: Mapping[str, Any], source: str) -> None:
    """Check that saved tensors are those of a machine built from its description, one by one.

    So what is loaded is exactly what the bounds were computed for. Weights of your own go in by `model.load_state_dict`.
    """
    for (name, found), (_, want) in zip(in_shape(weights, tensors, source).state(), weights.state(), strict=True):
        if raw_bytes(found, weights.dtype) != raw_bytes(want, weights.dtype):
            raise StorageError(f"{source!r}: tensor {name!r} is not what the machine's formulas give")


def in_shape(weights: Weights, tensors: Mapping[str, Any], source: str) -> Weights:
    """Saved tensors as weights: with the names, shapes and number format of these weights, and with numbers of any value."""
    expected = dict(weights.state())
    if missing := sorted(expected.keys() - tensors.keys()):
        raise StorageError(f"{source!r} lacks the tensor {missing[0]!r}")
    if extra := sorted(tensors.keys() - expected.keys()):
        raise StorageError(f"{source!r} has the tensor {extra[0]!r}, which the machine does not")
    for name, tensor in tensors.items():
        want, found = expected[name], as_array(tensor)
        if found.shape != want.shape or name_of(tensor.dtype) != weights.dtype:
            raise StorageError(f"{source!r}: tensor {name!r} is {found.shape} of {name_of(tensor.dtype)}, "
                               f"the machine's is {want.shape} of {weights.dtype}")
        if not np.isfinite(found).all():
            raise StorageError(f"{source!r}: tensor {name!r} holds an entry that is not finite")
    return Weights(weights.width, weights.dtype, [
        LayerArrays(**{name: as_array(tensors[f"layers.{number}.{name}"]) for name in NAMES})
        for number in range(len(weights.layers))])


def load_weights(path: str | Path, machine: AnyMachine) -> Weights:
    """The weights in a saved machine's file, as they are: changed ones too, which `Machine.load` refuses."""
    description, tensors = load(path)
    if description != json.loads(json.dumps({"format": FORMAT, **machine.describe()})):
        raise StorageError(f"{str(path)!r} holds the weights of another machine than {machine!r}")
    return in_shape(machine.weights, tensors, str(path))


def seal(description: Mapping[str, Any], tensors: Mapping[str, Any]) -> str:
    """A fingerprint of all that a file holds."""
    return hashlib.sha256((json.dumps(description, sort_keys=True) + digest(tensors)).encode()).hexdigest()


def digest(tensors: Mapping[str, Any], dtype: str | None = None) -> str:
    """A fingerprint of names, shapes, number formats and bits: a -0.0 is not 0.0 here.

    `dtype` is the format of all of them, where it is not the one that NumPy holds them in.
    """
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        kind = dtype or name_of(tensor.dtype)
        found.update(f"{name} {tuple(tensor.shape)} torch.{kind}\n".encode())
        found.update(raw_bytes(as_array(tensor), kind))
    return found.hexdigest()


def rebuild(description: Mapping[str, Any], kind: str, build: Callable[..., Built], source: str) -> Built:
    """A machine of one kind from its description alone: the weights are what the formulas give."""
    if description.get("machine") != kind:
        raise StorageError(f"{source!r} holds a {description.get('machine')!r} machine, not {kind!r}")
    try:
        saved = dict(description["precision"])
        precision = Precision(str(saved.pop("dtype")), **saved)
        machine = build(**description["sizes"], design=description["design"], precision=precision)
    except (KeyError, TypeError, ValueError, PunchcardError) as error:
        raise StorageError(f"{source!r} describes a machine that cannot be built: {error}") from None
    if description.get("layout") != machine.layout.describe():
        raise StorageError(f"{source!r} has another layout than this version gives the machine it describes")
    if {**description, "format": FORMAT} != {**machine.describe(), "format": FORMAT}:
        raise StorageError(f"{source!r} describes {machine!r} in other words than this version does")
    return machine
