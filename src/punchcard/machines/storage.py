"""Machines as files: weights and a description in one safetensors file. Loading executes no code.

`write` and `read_sealed` serve checkpoints and learned models as well. A file is sealed: damage does not turn it into
another one. A seal is not a signature. Whoever forges a file can seal it, so all that it says is checked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from punchcard.errors import PunchcardError, StorageError
from punchcard.files import check_readable, write_whole
from punchcard.transformer.model import LoopedTransformer
from punchcard.transformer.precision import DTYPES, Precision

if TYPE_CHECKING:
    from punchcard.machines.base import Machine

FORMAT = 3
KEY = "punchcard"
Built = TypeVar("Built", bound="Machine[Any, Any]")


def save(path: str | Path, model: LoopedTransformer, description: Mapping[str, Any]) -> None:
    """Write a model and its description."""
    write(path, model.state_dict(), KEY, {"format": FORMAT, **description})


def load(path: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The description and the tensors of a saved machine."""
    return read_sealed(path, KEY, "saved machine", FORMAT)


def write(path: str | Path, tensors: Mapping[str, Tensor], key: str, description: Mapping[str, Any]) -> None:
    """Write tensors, and plain data under a key, sealed."""
    plain = dict(_apart(tensors))
    write_whole(path, to_bytes(plain, metadata={key: json.dumps({**description, "seal": seal(description, plain)})}))


def _apart(tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Each in memory of its own, as the format wants them: a scaling may serve twice."""
    taken = set[int]()
    for name, tensor in tensors.items():
        place = tensor.untyped_storage().data_ptr()
        yield name, tensor.clone(memory_format=torch.contiguous_format) if place in taken else tensor.contiguous()
        taken.add(place)


def read_sealed(path: str | Path, key: str, what: str, form: int) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What `write` wrote, of one format, without the seal."""
    description, tensors = read(path, key, what)
    if description.get("format") != form:
        raise StorageError(f"{str(path)!r} is a {what} of another format than {form}, the one that this version reads: "
                           "make it again")
    if description.pop("seal", None) != seal(description, tensors):
        raise StorageError(f"{str(path)!r} is not as it was written: the file is damaged")
    return description, tensors


def read(path: str | Path, key: str, what: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The plain data under a key, the seal among it, and the tensors. `what` the file should be is named in errors."""
    check_readable(path, what)
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, ValueError, SafetensorError) as error:
        raise StorageError(f"{str(path)!r} is not a safetensors file: {error}") from None
    try:
        description = json.loads(metadata[key])
        if not isinstance(description, dict):
            raise ValueError("not an object")
    except (KeyError, ValueError, RecursionError):
        raise StorageError(f"{str(path)!r} is not a {what}: its metadata has no {key!r} description") from None
    return description, tensors


def fill(model: LoopedTransformer, tensors: Mapping[str, Tensor], source: str) -> None:
    """Put saved tensors into a model built from its description; they must be the same one by one.

    So what is loaded is exactly what the bounds were computed for. Weights of your own go in by `model.load_state_dict`.
    """
    expected = model.state_dict()
    if missing := sorted(expected.keys() - tensors.keys()):
        raise StorageError(f"{source!r} lacks the tensor {missing[0]!r}")
    if extra := sorted(tensors.keys() - expected.keys()):
        raise StorageError(f"{source!r} has the tensor {extra[0]!r}, which the machine does not")
    for name, tensor in tensors.items():
        want = expected[name]
        if tensor.shape != want.shape or tensor.dtype != want.dtype:
            raise StorageError(f"{source!r}: tensor {name!r} is {tuple(tensor.shape)} of {tensor.dtype}, "
                               f"the machine's is {tuple(want.shape)} of {want.dtype}")
        if not bool(torch.isfinite(tensor).all()):
            raise StorageError(f"{source!r}: tensor {name!r} holds an entry that is not finite")
        if bits_of(tensor) != bits_of(want):
            raise StorageError(f"{source!r}: tensor {name!r} is not what the machine's formulas give")
    model.load_state_dict(dict(tensors))


def seal(description: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """A fingerprint of all that a file holds."""
    return hashlib.sha256((json.dumps(description, sort_keys=True) + digest(tensors)).encode()).hexdigest()


def digest(tensors: Mapping[str, Tensor]) -> str:
    """A fingerprint of names, shapes and bits."""
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        found.update(bits_of(tensor))
    return found.hexdigest()


def bits_of(tensor: Tensor) -> bytes:
    """The bytes of a tensor's entries: a -0.0 is not 0.0 here."""
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def rebuild(description: Mapping[str, Any], kind: str, build: Callable[..., Built], source: str) -> Built:
    """A machine of one kind from its description alone: the weights are what the formulas give."""
    if description.get("machine") != kind:
        raise StorageError(f"{source!r} holds a {description.get('machine')!r} machine, not {kind!r}")
    try:
        saved = dict(description["precision"])
        precision = Precision(DTYPES[saved.pop("dtype")], **saved)
        machine = build(**description["sizes"], design=description["design"], precision=precision)
    except (KeyError, TypeError, ValueError, PunchcardError) as error:
        raise StorageError(f"{source!r} describes a machine that cannot be built: {error}") from None
    if description.get("layout") != machine.layout.describe():
        raise StorageError(f"{source!r} has another layout than this version gives the machine it describes")
    if {**description, "format": FORMAT} != {**machine.describe(), "format": FORMAT}:
        raise StorageError(f"{source!r} describes {machine!r} in other words than this version does")
    return machine
