"""Checkpoints: a run as a file, from which it goes on to the same last card, bit for bit.

    saved = checkpoint.load("long.checkpoint")
    saved.mark.loops, saved.program, saved.machine

A loop depends on nothing but the card and the weights, and the weights on nothing but the machine's description. So the
file holds the card as it is, the description, the program, the number of loops, and how the run was asked for. It is one
safetensors file that appears whole or not at all; a run that is killed leaves the one before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from punchcard.errors import PunchcardError, StorageError
from punchcard.machines import storage
from punchcard.machines.fleq.blocks.block import Block
from punchcard.machines.fleq.functions import BUILT_IN, POINTER_FUNCTIONS
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text import assembler as fleq_language
from punchcard.machines.running import Mark
from punchcard.machines.subleq.isa import Program
from punchcard.machines.subleq.machine import SubleqMachine

FORMAT = 1
KEY = "punchcard-checkpoint"
DEFAULT_EVERY = 1_000_000
"""Loops between two checkpoints: less than a second of a compiled engine, and some minutes of the dense one."""


@dataclass(frozen=True)
class Plan:
    """How a run was asked for: when it ends, how often it is kept, whether it is compared with the interpreter."""

    max_steps: int
    every: int = DEFAULT_EVERY
    check: bool = True

    def __post_init__(self) -> None:
        for name, least in (("max_steps", 0), ("every", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise PunchcardError(f"{name}={value!r}: it must be an integer, {least} or more")
        if not isinstance(self.check, bool):
            raise PunchcardError(f"check={self.check!r}: it must be true or false")


@dataclass(frozen=True)
class Audit:
    """What the comparison of single instructions has found so far, relative to the machine's range."""

    max_step_error: float = 0.0
    bound: float = 0.0
    worst: str = ""
    why: str = ""


@dataclass(frozen=True)
class Checkpoint:
    """A run that can go on: its machine, program and mark, how it was asked for, and what an audit has found so far."""

    machine: SubleqMachine | FleqMachine
    program: Program | FleqProgram
    mark: Mark
    plan: Plan
    audit: Audit | None = None


class Writer:
    """Writes the checkpoints of one run to one file, each over the last."""

    def __init__(
        self, path: str | Path, machine: SubleqMachine | FleqMachine, program: Program | FleqProgram, plan: Plan,
        engine: str,
    ) -> None:
        """`engine` is the one asked for; a mark names the one that ran."""
        self.path, self.engine = Path(path), engine
        self._fixed = {
            "format": FORMAT, "machine": machine.describe(), "weights": _digest(machine.model.state_dict()),
            "program": fleq_language.disassemble(program) if isinstance(program, FleqProgram) else program.to_json(),
            "plan": asdict(plan),
        }
        storage.sweep(path)

    def write(self, mark: Mark, audit: Audit | None = None) -> None:
        """Replace the file by one of this mark."""
        description = {
            **self._fixed, "loops": mark.loops, "engine": mark.engine or self.engine, "ended": mark.ended,
            "audit": None if audit is None else asdict(audit),
        }
        tensors = {"card": mark.card}
        storage.write(self.path, tensors, KEY, {**description, "seal": seal(description, tensors)})


def load(
    path: str | Path,
    machine: SubleqMachine | FleqMachine | None = None,
    *,
    blocks: Sequence[Block] = (),
) -> Checkpoint:
    """The run in a file.

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
        built = machine or _machine(description["machine"], blocks, source)
        if built.describe() != description["machine"]:
            raise StorageError(f"{source!r} is a checkpoint of another machine than the one given: {built!r}")
        if _digest(built.model.state_dict()) != description["weights"]:
            raise StorageError(f"{source!r} was made with other weights than {built!r} has: give the machine that made it")
        program = _program(description["program"], built)
        mark = Mark(_card(tensors, built, source), _count(description["loops"]),
                    str(description["engine"]), bool(description["ended"]))
        audit = None if description["audit"] is None else Audit(**description["audit"])
        return Checkpoint(built, program, mark, Plan(**description["plan"]), audit)
    except StorageError:
        raise
    except KeyError as error:
        raise StorageError(f"{source!r} is no whole checkpoint: it has no {error}") from None
    except (TypeError, ValueError, AttributeError, PunchcardError) as error:
        raise StorageError(f"{source!r} describes a run that cannot go on: {error}") from None


def _machine(description: dict[str, Any], blocks: Sequence[Block], source: str) -> SubleqMachine | FleqMachine:
    if description.get("machine") == "fleq":
        return FleqMachine.from_description(description, blocks, source)
    return SubleqMachine.from_description(description, source)


def _program(text: str, machine: SubleqMachine | FleqMachine) -> Program | FleqProgram:
    """The program; it must fit the machine."""
    if isinstance(machine, SubleqMachine):
        program = Program.from_json(text)
        machine.punch(program)
        return program
    own = {name: block.function for name, block in machine.blocks.items() if name not in (*BUILT_IN, *POINTER_FUNCTIONS)}
    written = fleq_language.assemble(text, functions=own)
    machine.punch(written)
    return written


def _card(tensors: Mapping[str, Tensor], machine: SubleqMachine | FleqMachine, source: str) -> Tensor:
    if set(tensors) != {"card"}:
        raise StorageError(f"{source!r} is no whole checkpoint: its tensors are {', '.join(sorted(tensors)) or 'none'}, "
                           "not the card")
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
