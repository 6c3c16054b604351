"""Precision travels as a value: the number format, the temperature and the gate of a machine.

A head is *hard* when the softmax weights of all columns but the best are exactly 0 in the machine's number format.
With `gap` the least difference between the best score and any other, the weights are exp(-lambda * gap) or less, and
the exponential is rounded to exactly 0 once

    lambda * gap > ln(2 / eta),         eta the smallest positive number of the format

and a little more, for roundings: `softmax` has the rule.

The weights of the columns that share the best score are then exactly 1 (one column) or 1/2 (two). The bound is stated
with its consequences in docs/precision.md.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

from punchcard.card.formats import FORMATS, FormatName, NumberFormat, name_of
from punchcard.errors import PrecisionError, did_you_mean
from punchcard.transformer.grids import grid_of_number
from punchcard.transformer.softmax import hard_product

if TYPE_CHECKING:
    import torch

MIN_GATE = 8.0
DTYPES = tuple(FORMATS)


@dataclass(frozen=True, init=False)
class Precision:
    """The number format of a machine, and the temperature of its attention.

        punchcard.build(program, precision=Precision("float32"))

    dtype         "float64", "float32", "float16" or "bfloat16"
    temperature   default: for each head, the least power of two that makes its softmax exactly one-hot. A number is used for
                  every head instead; then the softmax may not be one-hot, and no result is guaranteed
    gate          the constant that keeps a ReLU at 0 in columns where a formula must not act: a power of two, at least 8
    """

    name: str
    temperature: float | None
    gate: float

    def __init__(self, dtype: FormatName = "float64", temperature: float | None = None, gate: float = MIN_GATE) -> None:
        if temperature is not None and not (_is_finite(temperature) and temperature > 0):
            raise PrecisionError(f"temperature {temperature}: it must be a positive number")
        if not (_is_finite(gate) and gate >= MIN_GATE and grid_of_number(float(gate)) == gate):
            raise PrecisionError(f"gate {gate}: it must be a power of two, {MIN_GATE:g} or more")
        name = dtype.removeprefix("torch.") if isinstance(dtype, str) else name_of(dtype)
        if name not in FORMATS:
            raise PrecisionError(f"{dtype} is not a number format for a machine: use {', '.join(FORMATS)}")
        for field, value in (("name", name), ("temperature", temperature), ("gate", gate)):
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        by_hand = f", temperature={self.temperature:g}" if self.temperature is not None else ""
        return f"Precision({self.name!r}{by_hand}{f', gate={self.gate:g}' * (self.gate != MIN_GATE)})"

    @property
    def dtype(self) -> torch.dtype:
        """The number format as a `torch.dtype`."""
        import torch

        found: torch.dtype = getattr(torch, self.name)
        return found

    @property
    def format(self) -> NumberFormat:
        """The number format and its limits, without torch."""
        return FORMATS[self.name]

    @property
    def unit(self) -> float:
        """The unit roundoff: the largest relative error of rounding."""
        return self.format.eps / 2

    @property
    def significand(self) -> int:
        """Bits of the significand, with the hidden bit. Integers up to 2^significand are exact."""
        return self.format.significand

    def describe(self) -> dict[str, str | float | None]:
        """The precision as plain data, for saving."""
        return {"dtype": self.name, "temperature": self.temperature, "gate": self.gate}

    def temperature_for(self, gap: float) -> float:
        """The temperature of a head whose best score exceeds all others by `gap`."""
        if self.temperature is not None:
            return self.temperature
        return 2.0 ** math.ceil(math.log2(hard_product(self.name) / gap))


def _is_finite(value: object) -> bool:
    """Whether a value is a number that a float holds, and not infinite."""
    return isinstance(value, Real) and not isinstance(value, bool) and abs(value) <= sys.float_info.max  # type: ignore[operator]


def as_precision(value: Precision | FormatName) -> Precision:
    """A precision from a number format or its name."""
    if isinstance(value, Precision):
        return value
    if isinstance(value, str) and value not in FORMATS:
        raise PrecisionError(f"unknown number format {value!r}{did_you_mean(value, FORMATS)}: use {', '.join(FORMATS)}")
    return Precision(value)
