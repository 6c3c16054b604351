"""A run that is compared with the plain interpreter and kept in a file, from which it continues to the same last card.

    start = begin(program, machine)              a run before its first loop
    report = resume(start, "long.checkpoint")    its loops
    saved = load("long.checkpoint")              the run as it was last kept

A loop depends on nothing but the card and the weights, and the weights on nothing but the machine's description. So the
file holds the card as it is, the description, the program as text, the number of loops, what was read and written, and how
the run was asked for. It is one safetensors file that appears whole or not at all; a run that is killed leaves the one
before.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from punchcard.card.formats import as_array, name_of
from punchcard.card.layout import Card, as_tensor
from punchcard.card.packed import PackedCard
from punchcard.engines import NO_CONTROLS, Controls, NoCopyWatch, check_engine
from punchcard.errors import PunchcardError, StorageError
from punchcard.files import check_regular, check_writable, sweep
from punchcard.machines import storage
from punchcard.machines.base import NO_LIMIT, AnyMachine
from punchcard.machines.comparison import Check
from punchcard.machines.registry import Registry, installed
from punchcard.machines.result import Report
from punchcard.machines.running import DEFAULT_ENGINE, Mark, PeriodicAction, in_turn
from punchcard.machines.streams import Input, Output, Traffic, reader, writer
from punchcard.transformer.weights import Weights

FORMAT = 4
KEY = "punchcard-checkpoint"
CARD = "card"
DEFAULT_EVERY = 1_000_000
"""Loops between two checkpoints: less than a second of a compiled engine, and some minutes of the dense one."""

_TRUTH = (bool,), "true or false"
_TEXT = (str,), "text"
_OBJECT = (dict,), "an object"
FIELDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "format": ((int,), "an integer"), "machine": _OBJECT, "weights": _TEXT, "program": _TEXT, "plan": _OBJECT,
    "loops": ((int,), "an integer, 0 or more"), "engine": _TEXT, "ended": _TRUTH, "waiting": _TRUTH,
    "input_ended": _TRUTH, "kept": ((list,), "a list of integers"), "found": ((dict, type(None)), "an object, or null"),
}
"""The fields of a description: their types, and the rule for messages."""


@dataclass(frozen=True)
class Plan:
    """The plan of a run: its last instruction or None, loops between checkpoints, when it is compared, and the engine."""

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
    """A run that can continue: its machine, program and mark, its plan, and what the comparison has found so far."""

    machine: AnyMachine
    program: Any
    mark: Mark
    plan: Plan
    found: Mapping[str, Any] | None = None
    kept: tuple[int, ...] | None = None
    """The file that has just this run, and this plan, by `_identity`."""

    def planned(
        self, *, engine: str | None = None, max_steps: int | None = None, check: bool | Check | None = None,
        every: int | None = None,
    ) -> Checkpoint:
        """The same with another plan. Default: as before."""
        before = self.plan
        plan = Plan(before.max_steps if max_steps is None else max_steps, before.every if every is None else every,
                    before.check if check is None else self.machine.check_mode(check), engine or before.engine)
        return replace(self, plan=plan, kept=self.kept if plan == before else None)

    def __repr__(self) -> str:
        return f"<Checkpoint: {self.mark!r} of {self.program!r} on {self.machine!r}>"


class CheckpointFile:
    """Writes the checkpoints of one run to one file, each over the last."""

    def __init__(self, path: str | Path, machine: AnyMachine, program: object, plan: Plan) -> None:
        check_regular(path, "checkpoint")
        self.path = Path(path)
        self._fixed = {
            "format": FORMAT, "machine": machine.describe(), "weights": _digest(machine.weights),
            "program": machine.store(program), "plan": asdict(plan),
        }
        sweep(path)

    def write(self, mark: Mark, found: Mapping[str, Any] | None = None) -> None:
        """Replace the file by one of this mark."""
        traffic = mark.traffic
        description = {**self._fixed, "loops": mark.loops, "engine": mark.engine, "ended": mark.ended,
                       "waiting": traffic.waiting,
                       "input_ended": traffic.input_ended, "kept": list(traffic.kept),
                       "found": None if found is None else dict(found)}
        tensors = {**_fields(mark.raw_card), "read": np.frombuffer(traffic.read, dtype=np.uint8),
                   "written": np.frombuffer(traffic.written, dtype=np.uint8)}
        storage.write(self.path, tensors, KEY, description)


def begin(
    program: object, machine: AnyMachine, *, engine: str = DEFAULT_ENGINE, max_steps: int | None = None,
    check: bool | Check | None = None, every: int = DEFAULT_EVERY,
) -> Checkpoint:
    """A run before its first loop; `resume` makes its loops."""
    machine.check_type(program)
    machine.check_room(engine)
    plan = Plan(machine.default_max_steps if max_steps is None else max_steps, every, machine.check_mode(check), engine)
    return Checkpoint(machine, program, Mark(machine.pack(program)), plan)


def resume(
    start: Checkpoint, path: str | Path | None = None, *, input: Input = b"", output: Output | None = None,
    controls: Controls = NO_CONTROLS,
) -> Report[Any]:
    """Continue from a checkpoint as its plan says; `path` is the file that the run is kept in."""
    machine, program, plan, mark = start.machine, start.program, start.plan, start.mark
    comparison = None if plan.check is None else machine.comparison(program, mark, plan.check, start.found)
    read, write = reader(input, len(mark.traffic.read)), writer(output)
    keep: PeriodicAction | None = None
    if path is not None:
        file = CheckpointFile(path, machine, program, plan)
        if start.kept is not None and start.kept == _identity(path):
            check_writable(path)
        else:
            file.write(mark, start.found)  # so that a file that cannot be written is known before a long run
        keep = PeriodicAction(plan.every, lambda now: file.write(now, None if comparison is None else
                                                                 comparison.saved_state()))
    if comparison is not None:
        read, write = comparison.reading(read), writer(comparison.writing(write))
        asked = controls.is_interrupted
        controls = replace(controls, interrupted=lambda: comparison.stops or asked())
        if comparison.watches:
            look = NoCopyWatch(comparison.watch)
            controls = replace(controls, watch=look if controls.watch is None else in_turn(look, controls.watch))
    result = machine.run(program, engine=plan.engine, max_steps=plan.max_steps, begin=mark, input=read, output=write,
                         controls=controls, keep=keep, guarded=comparison is None or not comparison.guards)
    if comparison is None:
        return Report(result)
    return comparison.report(replace(result, reason="stopped") if comparison.stops else result)


def load(
    path: str | Path, machine: AnyMachine | None = None, *, machines: Registry | None = None, **objects: Any
) -> Checkpoint:
    """The run in a file, on a machine of one of the kinds in `machines`.

    Function blocks of your own are code, which no file holds: give them again as `blocks`. Weights of your own are not
    kept either, only their digest: give the machine.
    """
    source, kept = str(path), _identity(path)
    description, tensors = storage.read_sealed(path, KEY, "checkpoint", FORMAT)
    try:
        _check_fields(description)
        if machine is None:
            kind = (machines or installed()).kind(str(description["machine"].get("machine")))
            machine = kind.machine_class().from_description(description["machine"], source, **objects)
        if machine.describe() != description["machine"]:
            raise StorageError(f"{source!r} is a checkpoint of another machine than the one given: {machine!r}")
        if _digest(machine.weights) != description["weights"]:
            raise StorageError(f"{source!r} was made with other weights than {machine!r} has: give the machine that made it")
        program = machine.restore(description["program"])
        machine.check_fits(program)
        mark = _mark(description, tensors, machine)
        machine.check_mark(program, mark)
        return Checkpoint(machine, program, mark, Plan(**description["plan"]), description["found"], kept)
    except StorageError:
        raise
    except (TypeError, ValueError, PunchcardError) as error:
        raise StorageError(f"{source!r} describes a run that cannot continue: {error}") from None


def _identity(path: str | Path) -> tuple[int, ...] | None:
    """Which file is at a path now, or None: each that is written is another."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _check_fields(description: Mapping[str, Any]) -> None:
    """Refuse a description that has not all fields, another one, or one of another type."""
    for name in description.keys() ^ FIELDS.keys():
        raise PunchcardError(f"it {'has no' if name in FIELDS else 'has a field'} {name!r}")
    for name, (kinds, rule) in FIELDS.items():
        if type(description[name]) not in kinds:
            raise PunchcardError(f"{name}={repr(description[name])[:60]}: it must be {rule}")
    if not 0 <= description["loops"] < NO_LIMIT:
        raise PunchcardError(f"loops={description['loops']}: it must be an integer, 0 or more, and less than 2^62")
    if description["engine"]:
        check_engine(description["engine"])


def _fields(card: Card) -> dict[str, Any]:
    """A card as tensors: one, or one for each field of a packed card, of the columns where it holds anything."""
    if isinstance(card, PackedCard):
        return {f"{CARD}.{name}": part for name, part in card.parts().items()}
    return {CARD: card}


def _card(tensors: Mapping[str, Any], machine: AnyMachine) -> Card:
    """The card of a checkpoint, dense or packed, of the machine's own shape and number format."""
    blank = PackedCard.blank(machine.layout, machine.precision.name)
    parts = _fields(blank)
    names = {CARD} if CARD in tensors else set(parts)
    if set(tensors) != {*names, "read", "written"}:
        raise PunchcardError(f"its tensors are {', '.join(sorted(tensors)) or 'none'}, not the card and what was read and "
                             "written")
    if CARD in tensors:
        card, wanted = tensors[CARD], (machine.layout.width, machine.layout.columns)
        if tuple(card.shape) != wanted or name_of(card.dtype) != machine.precision.name:
            raise PunchcardError(f"the card is {tuple(card.shape)} of {name_of(card.dtype)}, the machine's is {wanted} of "
                                 f"{machine.precision.name}")
        return as_tensor(card)
    for key, part in parts.items():
        found, name = tensors[key], key.removeprefix(f"{CARD}.")
        if (tuple(found.shape), name_of(found.dtype)) != (part.shape, name_of(part.dtype)):
            raise PunchcardError(f"the card's {name} is {tuple(found.shape)} of {name_of(found.dtype)}, the machine's is "
                                 f"{part.shape} of {part.dtype}")
        blank.put_part(name, as_array(found))
    for wrong in machine.layout.violations(blank):
        raise PunchcardError(f"the card is not what its layout declares: {wrong}")
    return blank


def _mark(description: Mapping[str, Any], tensors: Mapping[str, Any], machine: AnyMachine) -> Mark:
    """The mark of a checkpoint."""
    card = _card(tensors, machine)
    traffic = Traffic(_as_bytes("read", tensors), _as_bytes("written", tensors), description["waiting"],
                      description["input_ended"], _integers(description["kept"]))
    if traffic != Traffic() and not machine.has_ports:
        raise PunchcardError(f"a {machine.kind.name} machine reads and writes nothing, and the run has read or written")
    return Mark(card, description["loops"], description["engine"], description["ended"], traffic)


def _integers(given: list[Any]) -> tuple[int, ...]:
    for item in given:
        if type(item) is not int:
            raise PunchcardError(f"kept={repr(given)[:60]}: it must be a list of integers")
    return tuple(given)


def _as_bytes(name: str, tensors: Mapping[str, Any]) -> bytes:
    found = tensors[name]
    if found.ndim != 1 or name_of(found.dtype) != "uint8":
        raise PunchcardError(f"what was {name} is {tuple(found.shape)} of {name_of(found.dtype)}: it must be a row of bytes")
    return as_array(found).tobytes()


def _digest(weights: Weights) -> str:
    """A fingerprint of the weights, the same whether there is a module or not."""
    return weights.name("checkpoint", lambda: storage.digest(dict(weights.state()), weights.dtype))
