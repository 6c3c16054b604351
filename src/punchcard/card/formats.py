"""Number formats by name: what NumPy holds their numbers in, and their limits. Torch is not needed to know them."""

from __future__ import annotations

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
    """A number format. NumPy has no bfloat16: its numbers are stored, and rounded, as float32."""

    name: str
    array: np.dtype[Any]
    eps: float
    tiny: float
    max: float
    significand: int
    """Bits of the significand, with the hidden bit. Integers up to 2^significand are exact."""

    @property
    def least(self) -> float:
        """The smallest positive number, below the normal ones."""
        return self.tiny * self.eps

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
    return NumberFormat(name, np.dtype(name), float(info.eps), float(info.tiny), float(info.max), info.nmant + 1)


FORMATS = {
    "float64": _known("float64"),
    "float32": _known("float32"),
    "float16": _known("float16"),
    "bfloat16": NumberFormat("bfloat16", np.dtype(np.float32), 2.0**-7, 2.0**-126, (2 - 2.0**-7) * 2.0**127, 8),
}


def name_of(dtype: object) -> str:
    """`float32` for the name, NumPy's type or torch's."""
    return str(np.dtype(dtype)) if isinstance(dtype, type) else str(dtype).removeprefix("torch.")


def as_array(values: object) -> AnyArray:
    """A tensor, or what NumPy takes, as an array; of a tensor on the CPU without a copy, where NumPy has its format."""
    if isinstance(values, np.ndarray) or not hasattr(values, "detach"):
        return np.asarray(values)
    tensor = values.detach().cpu()
    return np.asarray((tensor.float() if name_of(tensor.dtype) == "bfloat16" else tensor).numpy())
