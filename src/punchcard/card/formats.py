"""Number formats by name: what NumPy holds their numbers in, and their limits. Torch is not needed to know them.

A grid is a power of two that numbers are multiples of. Sums of multiples of a grid are exact if they are short enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch

AnyArray: TypeAlias = npt.NDArray[Any]
FormatName: TypeAlias = Union[str, "torch.dtype"]
"""A format by its name, `"float32"`, or by torch's type."""


@dataclass(frozen=True)
class NumberFormat:
    """A number format. NumPy has no bfloat16: its numbers are held, and rounded, as float32."""

    name: str
    array: np.dtype[Any]
    eps: float
    tiny: float
    max: float

    @property
    def significand(self) -> int:
        """Bits of the significand, with the hidden bit. Integers up to 2^significand are exact."""
        return 1 - round(math.log2(self.eps))

    def rounded(self, values: AnyArray) -> AnyArray:
        """The numbers of the format nearest to `values`. Narrow formats are reached by way of float32, as torch does it."""
        if self.name in ("float64", "float32"):
            return values.astype(self.array)
        single = values.astype(np.float32)
        return _as_bfloat16(single) if self.name == "bfloat16" else single.astype(self.array)


def _as_bfloat16(single: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The upper half of the bits, rounded to nearest, ties to even."""
    bits = np.ascontiguousarray(single).view(np.uint32)
    nearest = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return np.where(np.isfinite(single), nearest.astype(np.uint32).view(np.float32), single)


def _known(name: str) -> NumberFormat:
    info = np.finfo(name)
    return NumberFormat(name, np.dtype(name), float(info.eps), float(info.tiny), float(info.max))


FORMATS = {
    "float64": _known("float64"),
    "float32": _known("float32"),
    "float16": _known("float16"),
    "bfloat16": NumberFormat("bfloat16", np.dtype(np.float32), 2.0**-7, 2.0**-126, (2 - 2.0**-7) * 2.0**127),
}


def name_of(dtype: object) -> str:
    """`float32` for the name, NumPy's type or torch's."""
    return str(np.dtype(dtype)) if isinstance(dtype, type) else str(dtype).removeprefix("torch.")


def as_array(values: Any) -> AnyArray:
    """A tensor, or what NumPy takes, as an array; of a tensor on the CPU without a copy, where NumPy has its format."""
    if isinstance(values, np.ndarray) or not hasattr(values, "detach"):
        return np.asarray(values)
    tensor = values.detach().cpu()
    return np.asarray((tensor.float() if name_of(tensor.dtype) == "bfloat16" else tensor).numpy())


def powers_of_two(values: AnyArray) -> AnyArray:
    """The largest power of two that divides each value; infinite for 0."""
    grids, used = np.full(values.shape, np.inf), values != 0  # most are 0
    mantissa, exponent = np.frexp(values[used])
    integer = np.abs(mantissa * 2.0**53).astype(np.int64)
    grids[used] = np.ldexp((integer & -integer).astype(np.float64), exponent - 53)
    return grids


def grid_of(values: AnyArray) -> float:
    """The largest power of two that divides every value; 1 where all are 0."""
    return float(powers_of_two(values[values != 0]).min(initial=np.inf)) if values.any() else 1.0
