"""Options of calls that write a FLEQ program and run it: linear algebra and learning."""

from __future__ import annotations

from typing import TypedDict

from punchcard.machines.base import AsPrecision
from punchcard.machines.fleq.machine import FleqMachine

DEFAULT_HEADS = 3


class FleqRunOptions(TypedDict, total=False):
    """How a program is run.

    machine        a FLEQ machine, default: built for the program
    heads          heads of a product, default: 3
    precision      "float64" or "float32";  design   a design of the FLEQ machine
    engine         the engine that applies the model, default: the fastest
    """

    machine: FleqMachine | None
    heads: int | None
    precision: AsPrecision | None
    design: str | None
    engine: str | None
