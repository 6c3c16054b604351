"""Checkpoints: a run as a file, from which it goes on to the same last card, bit for bit.

    saved = checkpoint.load("long.checkpoint")
    saved.mark.loops, saved.program, saved.machine

A loop depends on nothing but the card and the weights, and the weights on nothing but the machine's description. So the
file holds the card as it is, the description, the program as text, the number of loops, what was read and written, and how
the run was asked for. It is one safetensors file that appears whole or not at all; a run that is killed leaves the one
before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor

from punchcard.engines import check_engine
from punchcard.errors import PunchcardError, StorageError
from punchcard.files import sweep
from punchcard.machines import storage
from punchcard.machines.base import Machine
from punchcard.machines.judging import Check
from punchcard.machines.registry import Registry, installed
from punchcard.machines.running import DEFAULT_ENGINE, Mark
from punchcard.machines.streams import Traffic

FORMAT = 2
KEY = "punchcard-checkpoint"
DEFAULT_EVERY = 1_000_000
"""Loops between two checkpoints: less than a second of a compiled engine, and some minutes of the dense one."""


@dataclass(frozen=True)
class Plan:
    """How a run was asked for: when it ends (None: never), how often it is kept, when it is compared, on which engine."""

    max_steps: int | None = None
    every: int = DEFAULT_EVERY
    check: Check | None = None
    engine: str = DEFAULT_ENGINE

    def __post_init__(self) -> None:
        for name, least in (("max_steps", 0), ("every", 1)):
            value = getattr(self, name)
            if value is None and name == "max_steps":
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise PunchcardError(f"{name}={value!r}: it must be an integer, {least} or more")
        check_engine(self.engine)
        if self.check is not None and self.check not in get_args(Check):
            raise PunchcardError(f"check={self.check!r}: it must be {' or '.join(map(repr, get_args(Check)))}, or None")


@dataclass(frozen=True)
class Checkpoint:
    """A run that can go on: its machine, program and mark, how it was asked for, and what a judge has found so far."""

    machine: Machine[Any, Any]
    program: Any
    mark: Mark
    plan: Plan
    found: Mapping[str, Any] | None = None


class CheckpointFile:
    """Writes the checkpoints of one run to one file, each over the last."""

    def __init__(self, path: str | Path, machine: Machine[Any, Any], program: Any, plan: Plan) -> None:
        self.path = Path(path)
        self._fixed = {
            "format": FORMAT, "machine": machine.describe(), "weights": _digest(machine.model.state_dict()),
            "program": machine.store(program), "plan": asdict(plan),
        }
        sweep(path)

    def write(self, mark: Mark, found: Mapping[str, Any] | None = None) -> None:
        """Replace the file by one of this mark."""
        traffic = mark.traffic
        description = {**self._fixed, "loops": mark.loops, "engine": mark.engine, "ended": mark.ended,
                       "waiting": traffic.waiting,
                       "input_ended": traffic.input_ended, "found": None if found is None else dict(found)}
        tensors = {"card": mark.card, "read": _as_tensor(traffic.read), "written": _as_tensor(traffic.written)}
        storage.write(self.path, tensors, KEY, {**description, "seal": seal(description, tensors)})


def load(
    path: str | Path, machine: Machine[Any, Any] | None = None, *, machines: Registry | None = None, **objects: Any
) -> Checkpoint:
    """The run in a file, on a machine of one of the kinds in `machines`.

    Function blocks of your own are code, which no file holds: give them again as `blocks`. Weights of your own are not
    kept either, only their digest: give the machine.
    """
    source = str(path)
    description, tensors = storage.read(path, KEY, "checkpoint")
    if description.get("format") != FORMAT:
        raise StorageError(f"{source!r} is a checkpoint of another format than {FORMAT}, the one that this version reads")
    if description.pop("seal", None) != seal(description, tensors):
        raise StorageError(f"{source!r} is not as it was written: the file is damaged")
    try:
        if machine is None:
            kind = (machines or installed()).kind(description["machine"]["machine"])
            machine = kind.machine_class().from_description(description["machine"], source, **objects)
        if machine.describe() != description["machine"]:
            raise StorageError(f"{source!r} is a checkpoint of another machine than the one given: {machine!r}")
        if _digest(machine.model.state_dict()) != description["weights"]:
            raise StorageError(f"{source!r} was made with other weights than {machine!r} has: give the machine that made it")
        program = machine.restore(description["program"])
        machine.check_fits(program)
        if not isinstance(description["found"], dict | None):
            raise ValueError(f"found={description['found']!r}: it must be an object, or null")
        card = _card(tensors, machine, source)
        traffic = Traffic(_as_bytes(tensors["read"]), _as_bytes(tensors["written"]), bool(description["waiting"]),
                          bool(description["input_ended"]))
        mark = Mark(card, _count(description["loops"]), str(description["engine"]),
                    bool(description["ended"]), traffic)
        return Checkpoint(machine, program, mark, Plan(**description["plan"]), description["found"])
    except StorageError:
        raise
    except KeyError as error:
        raise StorageError(f"{source!r} is not a whole checkpoint: it has no {error}") from None
    except (TypeError, ValueError, AttributeError, PunchcardError) as error:
        raise StorageError(f"{source!r} describes a run that cannot go on: {error}") from None


def _card(tensors: Mapping[str, Tensor], machine: Machine[Any, Any], source: str) -> Tensor:
    if set(tensors) != {"card", "read", "written"}:
        raise StorageError(f"{source!r} is not a whole checkpoint: its tensors are {', '.join(sorted(tensors)) or 'none'}, "
                           "not the card and what was read and written")
    card = tensors["card"]
    wanted = (machine.layout.width, machine.layout.columns)
    if tuple(card.shape) != wanted or card.dtype != machine.precision.dtype:
        raise StorageError(f"{source!r}: the card is {tuple(card.shape)} of {card.dtype}, the machine's is {wanted} of "
                           f"{machine.precision.dtype}")
    return card


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"loops={value!r}: it must be an integer, 0 or more")
    return value


def _as_tensor(data: bytes) -> Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.zeros(0, dtype=torch.uint8)


def _as_bytes(tensor: Tensor) -> bytes:
    return bytes(tensor.tolist())


def seal(description: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """A fingerprint of all that a checkpoint holds: no damage may turn it into another run."""
    return hashlib.sha256((json.dumps(description, sort_keys=True) + _digest(tensors)).encode()).hexdigest()


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """A fingerprint of names, shapes and bits."""
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        found.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()
