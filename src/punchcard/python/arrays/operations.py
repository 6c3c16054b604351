"""The operations of the intermediate form: what each computes on matrices, and how many operands have the result's shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from punchcard.machines.fleq.functions import sigmoid

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class ArrayOperation:
    """`limited`: the function is fitted over a domain, so it must not be computed where the source does not."""

    compute: Callable[..., Array]
    limited: bool = False


def _silent(function: Callable[..., Array]) -> Callable[..., Array]:
    def compute(*operands: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(*operands), dtype=np.float64)

    return compute


OPERATIONS: Mapping[str, ArrayOperation] = {
    "matmul": ArrayOperation(_silent(np.matmul)),
    "add": ArrayOperation(_silent(np.add)),
    "sub": ArrayOperation(_silent(np.subtract)),
    "hadamard": ArrayOperation(_silent(np.multiply)),
    "scale": ArrayOperation(_silent(lambda s, a: s[0, 0] * a)),
    "maximum": ArrayOperation(_silent(np.maximum)),
    "minimum": ArrayOperation(_silent(np.minimum)),
    "relu": ArrayOperation(_silent(lambda a: np.maximum(a, 0.0))),
    "abs": ArrayOperation(_silent(np.abs)),
    "sigmoid": ArrayOperation(sigmoid),
    "positive": ArrayOperation(_silent(lambda a: (a > 0).astype(np.float64))),
    "copy": ArrayOperation(lambda a: a),
    "inverse": ArrayOperation(_silent(np.reciprocal), limited=True),
    "sqrt": ArrayOperation(_silent(np.sqrt), limited=True),
    "exp": ArrayOperation(_silent(np.exp), limited=True),
    "log": ArrayOperation(_silent(np.log), limited=True),
    "sin": ArrayOperation(_silent(np.sin), limited=True),
    "cos": ArrayOperation(_silent(np.cos), limited=True),
    "tanh": ArrayOperation(_silent(np.tanh), limited=True),
}
FITTED = tuple(name for name, operation in OPERATIONS.items() if operation.limited)
INTEGRAL = ("matmul", "add", "sub", "hadamard", "scale", "maximum", "minimum", "relu", "abs", "copy", "column", "update")
"""What gives integers from integers."""
EXACT = ("add", "sub", "relu", "abs", "positive", "copy", "column", "update")
"""What the machine computes to the last bit, in float64, where its operands are exact."""
COMMUTE = ("add", "hadamard", "maximum", "minimum")
