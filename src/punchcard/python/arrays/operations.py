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
class Operation:
    """`limited`: the function is fitted over a domain, so it must not be computed where the source does not."""

    compute: Callable[..., Array]
    limited: bool = False


def _silent(function: Callable[..., Array]) -> Callable[..., Array]:
    def compute(*operands: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(*operands), dtype=np.float64)

    return compute


OPERATIONS: Mapping[str, Operation] = {
    "matmul": Operation(_silent(np.matmul)),
    "add": Operation(_silent(np.add)),
    "sub": Operation(_silent(np.subtract)),
    "hadamard": Operation(_silent(np.multiply)),
    "scale": Operation(_silent(lambda s, a: s[0, 0] * a)),
    "maximum": Operation(_silent(np.maximum)),
    "minimum": Operation(_silent(np.minimum)),
    "relu": Operation(_silent(lambda a: np.maximum(a, 0.0))),
    "abs": Operation(_silent(np.abs)),
    "sigmoid": Operation(sigmoid),
    "positive": Operation(_silent(lambda a: (a > 0).astype(np.float64))),
    "copy": Operation(lambda a: a),
    "inverse": Operation(_silent(np.reciprocal), limited=True),
    "sqrt": Operation(_silent(np.sqrt), limited=True),
    "exp": Operation(_silent(np.exp), limited=True),
    "log": Operation(_silent(np.log), limited=True),
    "sin": Operation(_silent(np.sin), limited=True),
    "cos": Operation(_silent(np.cos), limited=True),
    "tanh": Operation(_silent(np.tanh), limited=True),
}
FITTED = tuple(name for name, operation in OPERATIONS.items() if operation.limited)
INTEGRAL = ("matmul", "add", "sub", "hadamard", "scale", "maximum", "minimum", "relu", "abs", "copy", "column", "update")
"""What gives integers from integers."""
EXACT = ("add", "sub", "relu", "abs", "positive", "copy", "column", "update")
"""What the machine computes to the last bit, in float64, where its operands are exact."""
COMMUTE = ("add", "hadamard", "maximum", "minimum")
