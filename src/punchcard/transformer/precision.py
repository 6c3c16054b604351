"""Precision travels as a value: the number format, the temperature and the gate of a machine.

A head is *hard* when the softmax weights of all columns but the best are exactly 0 in the machine's number format.
With `gap` the least difference between the best score and any other, the weights are exp(-lambda * gap) or less, and
the exponential is rounded to exactly 0 once

    lambda * gap > ln(2 / eta),         eta the smallest positive number of the format.

The weights of the columns that share the best score are then exactly 1 (one column) or 1/2 (two). The bound is stated
with its consequences in docs/precision.md.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import torch

from punchcard.arguments import is_number
from punchcard.errors import PrecisionError, did_you_mean

MIN_GATE = 8.0
DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}


@dataclass(frozen=True)
class Precision:
    """The number format, and how sharp the attention is.

    `temperature` None means that every head gets the least power of two that makes it hard. A number sets it by hand
    for every head: then the softmax leaves a tail, nothing is guaranteed, and the designs' flat steps do what they can.
    `gate` closes a ReLU in the columns where a formula must not act; it exceeds every gated form (see `gated`).
    """

    dtype: torch.dtype = torch.float64
    temperature: float | None = None
    gate: float = MIN_GATE

    def __post_init__(self) -> None:
        if isinstance(self.dtype, str):
            object.__setattr__(self, "dtype", DTYPES.get(self.dtype, self.dtype))
        if self.dtype not in DTYPES.values():
            raise PrecisionError(f"{self.dtype} is not a number format for a machine: use {', '.join(DTYPES)}")
        if self.temperature is not None and not (_is_finite(self.temperature) and self.temperature > 0):
            raise PrecisionError(f"temperature {self.temperature}: it must be a positive number")
        if not (_is_finite(self.gate) and self.gate >= MIN_GATE and math.log2(self.gate).is_integer()):
            raise PrecisionError(f"gate {self.gate}: it must be a power of two, {MIN_GATE:g} or more")

    @property
    def name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    @property
    def significand(self) -> int:
        """Bits of the significand, the hidden one included: integers up to 2^significand are exact."""
        return 1 - round(math.log2(torch.finfo(self.dtype).eps))

    def describe(self) -> dict[str, str | float | None]:
        """The precision as plain data, for saving."""
        return {"dtype": self.name, "temperature": self.temperature, "gate": self.gate}

    def temperature_for(self, gap: float) -> float:
        """The temperature of a head whose best score exceeds all others by `gap`."""
        if self.temperature is not None:
            return self.temperature
        return 2.0 ** math.ceil(math.log2(hard_product(self.dtype) / gap))


def _is_finite(value: Any) -> bool:
    """Whether a value is a number that a float holds, and not infinite."""
    return is_number(value) and abs(value) <= sys.float_info.max


def hard_product(dtype: torch.dtype) -> float:
    """ln(2 / eta): the least lambda * gap whose softmax tail is exactly 0."""
    info = torch.finfo(dtype)
    eta = info.tiny * info.eps
    return math.log(2.0) - math.log(eta)


def as_precision(value: Precision | torch.dtype | str) -> Precision:
    """A precision from a number format or its name."""
    if isinstance(value, Precision):
        return value
    if isinstance(value, torch.dtype):
        return Precision(value)
    if value not in DTYPES:
        raise PrecisionError(f"unknown number format {value!r}{did_you_mean(value, DTYPES)}: use {', '.join(DTYPES)}")
    return Precision(DTYPES[value])
