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

import numpy as np

from punchcard.card.formats import AnyArray, as_array, name_of
from punchcard.card.layout import Card, as_tensor
from punchcard.card.packed import PackedCard
from punchcard.engines import check_engine
from punchcard.errors import PunchcardError, StorageError
from punchcard.files import sweep
from punchcard.machines import storage
from punchcard.machines.base import Machine
from punchcard.machines.judging import Check
from punchcard.machines.registry import Registry, installed
from punchcard.machines.running import DEFAULT_ENGINE, Mark
from punchcard.machines.streams import Traffic
from punchcard.transformer.weights import Weights, raw_bytes

FORMAT = 2
KEY = "punchcard-checkpoint"
CARD = "card"
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
            "format": FORMAT, "machine": machine.describe(), "weights": _weights_digest(machine.weights),
            "program": machine.store(program), "plan": asdict(plan),
        }
        sweep(path)

    def write(self, mark: Mark, found: Mapping[str, Any] | None = None) -> None:
        """Replace the file by one of this mark."""
        traffic = mark.traffic
        description = {**self._fixed, "loops": mark.loops, "engine": mark.engine, "ended": mark.ended,
                       "waiting": traffic.waiting,
                       "input_ended": traffic.input_ended, "found": None if found is None else dict(found)}
        tensors = {**_fields(mark.held), "read": _as_array(traffic.read), "written": _as_array(traffic.written)}
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
        if _weights_digest(machine.weights) != description["weights"]:
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


def _fields(card: Card) -> dict[str, Any]:
    """A card as tensors: one, or one for each field of a packed card."""
    if isinstance(card, PackedCard):
        return {f"{CARD}.{name}": field for name, field in card.fields.items()}
    return {CARD: card}


def _card(tensors: Mapping[str, Any], machine: Machine[Any, Any], source: str) -> Card:
    """The card of a checkpoint: dense, or packed."""
    blank = PackedCard.blank(machine.layout, machine.precision.name)
    names = {CARD} if CARD in tensors else set(_fields(blank))
    if set(tensors) != {*names, "read", "written"}:
        raise StorageError(f"{source!r} is not a whole checkpoint: its tensors are {', '.join(sorted(tensors)) or 'none'}, "
                           "not the card and what was read and written")
    if CARD in tensors:
        card, wanted = tensors[CARD], (machine.layout.width, machine.layout.columns)
        if tuple(card.shape) != wanted or name_of(card.dtype) != machine.precision.name:
            raise StorageError(f"{source!r}: the card is {tuple(card.shape)} of {name_of(card.dtype)}, the machine's is "
                               f"{wanted} of {machine.precision.name}")
        return as_tensor(card)
    for name, field in blank.fields.items():
        found = tensors[f"{CARD}.{name}"]
        if (found.shape, found.dtype) != (field.shape, field.dtype):
            raise StorageError(f"{source!r}: the card's {name} is {found.shape} of {found.dtype}, the machine's is "
                               f"{field.shape} of {field.dtype}")
        blank.fields[name] = found
    for wrong in machine.layout.violations(blank):
        raise StorageError(f"{source!r} holds a card that is not what its layout declares: {wrong}")
    return blank


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"loops={value!r}: it must be an integer, 0 or more")
    return value


def _as_array(data: bytes) -> AnyArray:
    return np.frombuffer(data, dtype=np.uint8)


def _as_bytes(array: AnyArray) -> bytes:
    return bytes(array.tolist())


def seal(description: Mapping[str, Any], tensors: Mapping[str, Any]) -> str:
    """A fingerprint of all that a checkpoint holds: no damage may turn it into another run."""
    return hashlib.sha256((json.dumps(description, sort_keys=True) + _digest(tensors)).encode()).hexdigest()


def _digest(tensors: Mapping[str, Any], dtype: str | None = None) -> str:
    """A fingerprint of names, shapes, number formats and bits."""
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        array, kind = as_array(tensor), dtype or name_of(tensor.dtype)
        found.update(f"{name} {array.shape} torch.{kind}\n".encode())
        found.update(raw_bytes(array, kind))
    return found.hexdigest()


def _weights_digest(weights: Weights) -> str:
    return _digest(dict(weights.state()), weights.dtype)
