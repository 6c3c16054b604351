"""What learning and predicting share: a program becomes a machine and a card, and runs until a marked instruction."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypedDict

import torch
from torch import Tensor

from punchcard.api import build
from punchcard.card.encoding import encode_unsigned
from punchcard.card.layout import Pattern
from punchcard.engines import ENGINES, Run, find_engine
from punchcard.errors import PunchcardError
from punchcard.isa.fleq import Array, FleqProgram
from punchcard.learning.blocks import blocks_of
from punchcard.machines.fleq import FleqMachine
from punchcard.programs.learning_network import Network
from punchcard.transformer.precision import Precision, as_precision

DEFAULT_HEADS = 3
MARGIN = 1.01
"""The range over the largest value of the same algorithm in NumPy: the machine's own errors must fit in between."""


class Options(TypedDict, total=False):
    """How a program is run.

    machine        one that is there already, in place of one built to the program's sizes
    heads          of the products, 3 by default;  precision  "float64" or "float32";  design  "compact" or "paper"
    size           d, by default the least that holds the network
    engine         what applies the model, by default the fastest
    range          every value stays within ±range; by default 1.01 times the largest that occurs in NumPy
    terms          sigmoids of a fitted function, by default as few as are near enough
    interrupted    asked now and then whether to stop
    """

    machine: FleqMachine | None
    heads: int | None
    precision: Precision | torch.dtype | str | None
    design: str | None
    size: int | None
    engine: str | None
    range: float | None
    terms: int | None
    interrupted: Callable[[], bool] | None


def fastest() -> str:
    """The engine that is used when none is named."""
    return "auto" if "auto" in ENGINES else "dense"


def range_for(largest: float, declared: float | None) -> float:
    """The declared range, if it holds what occurs; else the least that does, with a margin."""
    if declared is None:
        return max(1.0, MARGIN * largest)
    if not (isinstance(declared, int | float) and math.isfinite(declared) and declared >= largest):
        raise PunchcardError(f"range={declared}: values up to {largest:.6g} occur; declare {MARGIN * largest:.6g} or more, "
                             "or leave it out")
    return float(declared)


def machine_for(program: FleqProgram, network: Network, options: Options) -> FleqMachine:
    """The given machine, or one built to the program's sizes."""
    sizes = {name: options.get(name) for name in ("heads", "precision", "design", "size")}
    machine = options.get("machine")
    if machine is not None:
        if given := [name for name, value in sizes.items() if value is not None]:
            raise PunchcardError(f"{', '.join(given)}: options build a machine, and here one is given")
        return machine
    size, needed = options.get("size"), network.size
    if size is not None and size < needed:
        raise PunchcardError(f"size={size}: the network needs {needed}: {_widest(network)}")
    heads = options.get("heads") or DEFAULT_HEADS
    unit = torch.finfo(as_precision(options.get("precision") or "float64").dtype).eps / 2
    blocks = blocks_of(network, program.range, unit=unit, heads=heads, terms=options.get("terms"))
    return build(program, blocks=blocks, **{**sizes, "heads": heads})


def _widest(network: Network) -> str:
    if network.size == network.sizes[0]:
        return f"{network.features} features{' and the constant' * network.bias}"
    return f"its layers have {', '.join(map(str, network.sizes[1:]))} units"


@dataclass
class Session:
    """A program on a machine, run in stretches: each ends at a label, or when the program halts."""

    machine: FleqMachine
    program: FleqProgram
    engine: str
    interrupted: Callable[[], bool] | None = None
    loops: int = 0
    halted: bool = False
    card: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.card = self.machine.punch(self.program)

    def at(self, label: str) -> Pattern:
        """What stands on the card when the labelled instruction is next."""
        column = self.machine.sizes.instruction_column + dict(self.program.labels)[label]
        bits = encode_unsigned(column, self.machine.sizes.pointer_bits)[:, 0]
        return Pattern("program_counter", "scratchpad", tuple(int(b) for b in bits))

    def run_to(self, label: str | None, most: int, progress: Callable[[int], None] | None = None) -> Run:
        """Loop until the label is next, or the program has halted; `most` loops are enough for a sound run."""
        done = self.loops
        until = (self.machine.halting,) if label is None else (self.machine.halting, self.at(label))
        ran = find_engine(self.engine)(
            self.machine.model, self.card, most, facts=self.machine.layout, until=until, interrupted=self.interrupted,
            progress=None if progress is None else lambda loops: progress(done + loops))
        self.card, self.loops = ran.card, done + ran.loops
        self.halted = ran.matched == self.machine.halting
        if ran.reason == "loops":
            raise PunchcardError(f"the program has not come to {label or 'its end'} after {self.loops:,} loops: a value "
                                 "left the range, or a flag is no integer")
        return ran

    def memory(self) -> dict[str, Array]:
        """The variables on the card, by name."""
        return self.program.named(self.machine.read(self.card).memory)
