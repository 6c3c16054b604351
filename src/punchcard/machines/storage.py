"""Machines as files: weights and a description in one safetensors file. Loading executes no code.

`write` and `read` serve checkpoints as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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

FORMAT = 2
KEY = "punchcard"
Built = TypeVar("Built", bound="Machine[Any, Any]")


def save(path: str | Path, model: LoopedTransformer, description: Mapping[str, Any]) -> None:
    """Write a model and its description."""
    write(path, model.state_dict(), KEY, {"format": FORMAT, **description})


def load(path: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The description and the tensors of a saved machine."""
    description, tensors = read(path, KEY, "saved machine")
    if description.get("format") != FORMAT:
        raise StorageError(f"{str(path)!r} is not of format {FORMAT}, the one that this version reads")
    return description, tensors


def write(path: str | Path, tensors: Mapping[str, Tensor], key: str, description: Mapping[str, Any]) -> None:
    """Write tensors, and plain data under a key."""
    plain = {name: tensor.contiguous() for name, tensor in tensors.items()}
    write_whole(path, to_bytes(plain, metadata={key: json.dumps(description)}))


def read(path: str | Path, key: str, what: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The plain data under a key, and the tensors of a file. `what` the file should be is named in errors."""
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
        if not torch.equal(tensor, want):
            raise StorageError(f"{source!r}: tensor {name!r} is not what the machine's formulas give")
    model.load_state_dict(dict(tensors))


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
    return machine
