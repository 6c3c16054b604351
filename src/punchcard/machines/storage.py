"""Machines as files: weights and a description in one safetensors file. Loading executes no code."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from punchcard.card.layout import Layout
from punchcard.errors import PunchcardError, StorageError
from punchcard.transformer.model import LoopedTransformer
from punchcard.transformer.precision import DTYPES, Precision

FORMAT = 1
KEY = "punchcard"


def save(path: str | Path, model: LoopedTransformer, description: Mapping[str, Any]) -> None:
    """Write a model and its description. The file appears whole or not at all."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise StorageError(f"cannot write {str(path)!r}: it is a folder")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    try:
        save_file(tensors, part, metadata={KEY: json.dumps({"format": FORMAT, **description})})
        os.replace(part, target)
    except (OSError, SafetensorError) as error:
        raise StorageError(f"cannot write {str(path)!r}: {error}") from None
    finally:
        part.unlink(missing_ok=True)


def load(path: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The description and the tensors of a file."""
    if not Path(path).is_file():
        raise StorageError(f"no such file: {str(path)!r}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise StorageError(f"{str(path)!r} is no safetensors file: {error}") from None
    try:
        description = json.loads(metadata[KEY])
    except (KeyError, ValueError):
        raise StorageError(f"{str(path)!r} is no saved machine: its metadata has no {KEY!r} description") from None
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise StorageError(f"{str(path)!r} is not of format {FORMAT}, the one that this version reads")
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


class Machine(Protocol):
    """What is needed of a machine to restore it."""

    layout: Layout
    model: LoopedTransformer


Built = TypeVar("Built", bound=Machine)


def restore(path: str | Path, kind: str, build: Callable[[dict[str, Any], Precision], Built]) -> Built:
    """A machine of one kind, built from the description in a file and filled with the file's tensors."""
    description, tensors = load(path)
    if description.get("machine") != kind:
        raise StorageError(f"{str(path)!r} holds a {description.get('machine')!r} machine, not {kind!r}")
    try:
        saved = dict(description["precision"])
        machine = build(description, Precision(DTYPES[saved.pop("dtype")], **saved))
    except (KeyError, TypeError, ValueError, PunchcardError) as error:
        raise StorageError(f"{str(path)!r} describes a machine that cannot be built: {error}") from None
    if description.get("layout") != machine.layout.describe():
        raise StorageError(f"{str(path)!r} has another layout than this version gives the machine it describes")
    fill(machine.model, tensors, str(path))
    return machine
