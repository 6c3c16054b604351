"""What learning and predicting share: options, a machine for a program, and a run of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

import torch
from torch import Tensor

from punchcard.api import build
from punchcard.card.encoding import encode_unsigned
from punchcard.card.layout import Pattern
from punchcard.engines import ENGINES, Run, find_engine
from punchcard.errors import PunchcardError
from punchcard.learning.blocks import blocks_of
from punchcard.learning.programs.network import Network
from punchcard.machines.fleq.isa import Array, FleqProgram
from punchcard.machines.fleq.machine import FleqMachine
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


@dataclass(frozen=True)
class Session:
    """A program on a machine, run until it halts; at a label the memory is looked at."""

    machine: FleqMachine
    program: FleqProgram
    loops: int
    """As many as the program makes."""
    options: Options

    def run(
        self, look: Callable[[int, dict[str, Array]], None] | None = None, label: str = "",
        progress: Callable[[int], None] | None = None,
    ) -> Run:
        """Run to the end. Each time the labelled instruction is next, `look` is given the loops made and the memory."""
        def port(loop: int, card: Tensor) -> bool:
            if look is not None:
                look(loop, self.memory(card))
            return True

        ran = find_engine(self.options.get("engine") or fastest())(
            self.machine.model, self.machine.punch(self.program), self.loops, facts=self.machine.layout,
            until=self.machine.halting, ports=None if look is None else {self._next_is(label): port},
            interrupted=self.options.get("interrupted"), progress=progress)
        if ran.reason == "loops" or (ran.reason == "matched" and ran.loops != self.loops):
            raise PunchcardError(f"the run made {ran.loops:,} loops where the program has {self.loops:,}: a value left the "
                                 "range, or a flag is no integer")
        return ran

    def memory(self, card: Tensor) -> dict[str, Array]:
        """The variables on a card, by name."""
        return self.program.named(self.machine.read(card).memory)

    def _next_is(self, label: str) -> Pattern:
        """What stands on the card when the labelled instruction is next."""
        column = self.machine.sizes.instruction_column + dict(self.program.labels)[label]
        bits = encode_unsigned(column, self.machine.sizes.pointer_bits)[:, 0]
        return Pattern("program_counter", "scratchpad", tuple(int(b) for b in bits))
