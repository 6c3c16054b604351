"""The operations of the intermediate form on matrices: FLEQ's functions, and those that differ from its own or are added."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from punchcard.machines.fleq.fitted import FITTED as FITTED_BY_NAME
from punchcard.machines.fleq.fitted import UNLIMITED
from punchcard.machines.fleq.functions import ABS, ADD, MAXIMUM, MINIMUM, POSITIVE, RELU, SIGMOID, SUB, Array

LIMITED = (*FITTED_BY_NAME, *(name for name in UNLIMITED if name != SIGMOID.name))
"""Functions that are fitted over a domain, or are among them: they must not be computed where the source does not."""


def _silent(function: Callable[..., Array]) -> Callable[..., Array]:
    def compute(*operands: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(*operands), dtype=np.float64)

    return compute


OPERATIONS: Mapping[str, Callable[..., Array]] = {
    "matmul": _silent(np.matmul),
    "hadamard": _silent(np.multiply),
    "scale": _silent(lambda s, a: s[0, 0] * a),
    "copy": lambda a: a,
    **{function.name: _silent(function.reference)
       for function in (ADD, SUB, MAXIMUM, MINIMUM, RELU, ABS, POSITIVE, *UNLIMITED.values())},
    **{name: _silent(rule.reference) for name, rule in FITTED_BY_NAME.items()},
}
ENTRYWISE = (*(name for name in LIMITED if name != "inverse"), SIGMOID.name, RELU.name, ABS.name)
"""Functions of every entry that a program may call."""
INTEGRAL = ("matmul", "add", "sub", "hadamard", "scale", "maximum", "minimum", "relu", "abs", "copy", "column", "update")
"""What gives integers from integers."""
EXACT = ("add", "sub", "relu", "abs", "positive", "copy", "column", "update")
"""What the machine computes to the last bit, in float64, where its operands are exact."""
COMMUTE = ("add", "hadamard", "maximum", "minimum")
