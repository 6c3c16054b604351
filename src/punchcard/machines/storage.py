"""Machines as files: weights and a description in one safetensors file. Loading executes no code.

`write` and `read` serve checkpoints as well.
"""

from __future__ import annotations

import glob
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
PART = ".part"


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
    """Write tensors, and plain data under a key. The file appears whole or not at all, even when the machine goes down:

    it is written beside its place, brought to the disk, and only then given its name.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise StorageError(f"cannot write {str(path)!r}: it is a folder")
    part = target.with_name(f".{target.name}.{os.getpid()}{PART}")
    try:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, part,
                  metadata={key: json.dumps(description)})
        _to_disk(part)
        os.replace(part, target)
        _to_disk(target.parent)
    except (OSError, SafetensorError) as error:
        raise StorageError(f"cannot write {str(path)!r}: {error}") from None
    finally:
        part.unlink(missing_ok=True)


def sweep(path: str | Path) -> None:
    """Remove what processes that are no more left behind when they were killed while they wrote this file."""
    target = Path(os.path.realpath(path))
    for part in target.parent.glob(f".{glob.escape(target.name)}.*{PART}"):
        writer = part.name.removeprefix(f".{target.name}.").removesuffix(PART)
        if writer.isdecimal() and not _is_alive(int(writer)):
            part.unlink(missing_ok=True)


def read(path: str | Path, key: str, what: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The plain data under a key, and the tensors of a file. `what` the file should be is named in errors."""
    if not Path(path).is_file():
        raise StorageError(f"no such file: {str(path)!r}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise StorageError(f"{str(path)!r} is no safetensors file: {error}") from None
    try:
        description = json.loads(metadata[key])
        if not isinstance(description, dict):
            raise ValueError("no object")
    except (KeyError, ValueError):
        raise StorageError(f"{str(path)!r} is no {what}: its metadata has no {key!r} description") from None
    return description, tensors


def _to_disk(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


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
    machine = rebuild(description, kind, build, str(path))
    fill(machine.model, tensors, str(path))
    return machine


def rebuild(
    description: Mapping[str, Any], kind: str, build: Callable[[dict[str, Any], Precision], Built], source: str
) -> Built:
    """A machine of one kind from its description alone: the weights are what the formulas give."""
    if description.get("machine") != kind:
        raise StorageError(f"{source!r} holds a {description.get('machine')!r} machine, not {kind!r}")
    try:
        saved = dict(description["precision"])
        machine = build(dict(description), Precision(DTYPES[saved.pop("dtype")], **saved))
    except (KeyError, TypeError, ValueError, PunchcardError) as error:
        raise StorageError(f"{source!r} describes a machine that cannot be built: {error}") from None
    if description.get("layout") != machine.layout.describe():
        raise StorageError(f"{source!r} has another layout than this version gives the machine it describes")
    return machine
