"""One job of a sweep, as plain data: a program, a machine for it, a change of the machine, and a run.

A job has a key made of its content: two jobs of one key are the same job, wherever and whenever they are made.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

KEY_BYTES = 16
FORMAT = 1
"""Part of every key: another meaning of the same fields gives other keys."""


def content_key(content: object) -> str:
    """A name for plain data."""
    text = json.dumps([FORMAT, content], sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[: 2 * KEY_BYTES]


@dataclass(frozen=True)
class ProgramFile:
    """A program as its file has it."""

    name: str
    data: bytes = field(repr=False)

    def describe(self) -> dict[str, str]:
        return {"name": self.name, "sha256": hashlib.sha256(self.data).hexdigest()}


@dataclass(frozen=True, eq=False)
class Setup:
    """What is built and run: a program with its first values and input, and the options of a machine.

    options       design, dtype, sizes: as `punchcard run` takes them
    temperature   of every head, default: as the machine chooses it
    gate          default: as the machine chooses it
    machines      "module:Class" of machines of your own
    """

    program: ProgramFile
    options: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    input: str = ""
    temperature: float | None = None
    gate: float | None = None
    machines: tuple[str, ...] = ()

    def describe(self) -> dict[str, Any]:
        return {"program": self.program.describe(), "options": dict(self.options), "values": dict(self.values),
                "input": self.input, "temperature": self.temperature, "gate": self.gate, "machines": list(self.machines)}

    @cached_property
    def key(self) -> str:
        return content_key(self.describe())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Setup) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True)
class Change:
    """What is done to a machine before or while it runs: see `changes.py`, which has the kinds.

    amount   how much: the size of noise, a number of flips
    to       of rounding: the number format
    layer    the only layer that is changed, counted from 1; default: all
    tensor   the only tensors that are changed, by the names of the equation; default: all
    where    "all" weights, or those that are not 0: "nonzero"
    bits     of flips: "any", "sign", "exponent" or "mantissa"
    """

    kind: str = "none"
    amount: float = 0.0
    to: str = ""
    layer: int | None = None
    tensor: str = ""
    where: str = "all"
    bits: str = "any"


@dataclass(frozen=True)
class SweepJob:
    """A run of a sweep. `number` is its place there, which is not part of the key."""

    setup: Setup
    change: Change = Change()
    seed: int = 0
    loops: int = 1000
    engine: str = "dense"
    number: int = 0

    @property
    def group(self) -> str:
        """Jobs of one group share a machine."""
        return self.setup.key

    @cached_property
    def key(self) -> str:
        return content_key({"setup": self.setup.describe(), "change": asdict(self.change), "seed": self.seed,
                            "loops": self.loops, "engine": self.engine})
