"""Arrays of constants, which NumPy makes when a function is compiled: their sizes are looked at before NumPy is asked."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from punchcard.errors import shortened
from punchcard.python.limits import Limits, Refusal


def make_array(limits: Limits, name: str, values: Sequence[Any], options: Mapping[str, Any]) -> np.ndarray:
    """The array that a function of NumPy makes of constants; what it would not take is refused, as what is too large is."""
    try:
        for given in (*values, options.get("dtype")):
            if isinstance(given, str | type | np.dtype) and np.dtype(given).kind not in KINDS:
                raise Refusal(f"{name}: an array of {shortened(given)}: real numbers, integers and truths are in the subset",
                              "write dtype=float")
        limits.make(MAKERS[name](*values, **options), f"np.{name}")
        found = np.asarray(getattr(np, name)(*values, **options))
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise Refusal(f"{name}: {str(error).replace(MAKERS[name].__name__, f'np.{name}')}") from None
    if found.dtype.kind not in KINDS or found.ndim > 2 or not found.size:
        raise Refusal(f"{name} gives an array of the shape {found.shape}: real numbers in one or two dimensions are wanted")
    return found


def _in_shape(
    shape: tuple[SupportsIndex, ...] | list[SupportsIndex] | SupportsIndex, *others: object, **options: object,
) -> int:
    sizes = [*map(operator.index, shape)] if isinstance(shape, tuple | list) else [operator.index(shape)]
    return math.prod(sizes) if min(sizes, default=1) >= 0 else 0


def _in_square(n: SupportsIndex, *others: object, **options: object) -> int:
    return _in_shape((n, n))


def _in_eye(N: SupportsIndex, M: SupportsIndex | None = None, *others: object, **options: object) -> int:
    return _in_shape((N, N if M is None else M))


def _in_arange(start: float, stop: float | None = None, step: float = 1, *others: object, **options: object) -> int:
    first, last = (0, start) if stop is None else (start, stop)
    return max(0, math.ceil((last - first) / step))


def _in_linspace(start: ArrayLike, stop: ArrayLike, num: SupportsIndex = 50, *others: object, **options: object) -> int:
    return int(operator.index(num) * max(1, np.size(start)) * max(1, np.size(stop)))


def _in_diag(v: ArrayLike, k: SupportsIndex = 0) -> int:
    return int((np.size(v) + abs(operator.index(k))) ** 2) if np.ndim(v) == 1 else int(np.size(v))


def _in_array(object: ArrayLike, *others: Any, **options: Any) -> int:
    return int(np.size(object))  # its items are known, so that they are not too many


KINDS = "buif"
MAKERS: Mapping[str, Callable[..., int]] = {
    "eye": _in_eye, "zeros": _in_shape, "ones": _in_shape, "identity": _in_square, "full": _in_shape, "arange": _in_arange,
    "array": _in_array, "asarray": _in_array, "diag": _in_diag, "linspace": _in_linspace}
"""Functions of constants alone, and how many entries at most their arrays have."""
