"""Array functions for use in `@punchcard.program`. Outside of a program they compute with NumPy.

    @pc.program
    def length(x):
        return pc.arrays.sqrt(x @ x)

NumPy's own functions may be used as well: `np.sqrt(x)` and `pc.arrays.sqrt(x)` become the same instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from punchcard.arguments import checked
from punchcard.errors import ProgramError

NAMES = ("eye", "zeros", "ones", "sum", "dot", "outer", "norm", "sqrt", "exp", "log", "sin", "cos", "tanh", "sigmoid",
         "relu", "maximum", "minimum", "abs", "where", "softmax")
"""Every function here that a program may call."""
Array = NDArray[np.float64]
"""An array. A function of numbers gives NumPy's number, which behaves like an array without dimensions."""


def _real(value: ArrayLike) -> Array:
    return np.asarray(value, dtype=np.float64)


def _length(name: str, value: int) -> int:
    if not 1 <= value <= 1 << 16:
        raise ProgramError(f"{name}({value}): a size is 1 to 65536")
    return int(value)


def _lengths(name: str, shape: int | tuple[int, ...]) -> tuple[int, ...]:
    return (_length(name, shape),) if isinstance(shape, int) else tuple(_length(name, n) for n in shape)


@checked
def eye(size: int) -> Array:
    """The identity matrix."""
    return np.eye(_length("eye", size))


@checked
def zeros(shape: int | tuple[int, ...]) -> Array:
    """An array of zeros."""
    return np.zeros(_lengths("zeros", shape))


@checked
def ones(shape: int | tuple[int, ...]) -> Array:
    """An array of ones."""
    return np.ones(_lengths("ones", shape))


@checked
def sum(a: ArrayLike, axis: int | None = None) -> Array:
    """The sum of all entries, of each column (axis 0) or of each row (axis 1)."""
    array = _real(a)
    if axis is not None and not -array.ndim <= axis < array.ndim:
        raise ProgramError(f"sum: axis={axis} of an array of the shape {array.shape}")
    return cast(Array, np.sum(array, axis=axis))


@checked
def dot(a: ArrayLike, b: ArrayLike) -> Array:
    """The product a @ b of two vectors or matrices."""
    return _fitting("dot", np.dot, a, b)


@checked
def outer(a: ArrayLike, b: ArrayLike) -> Array:
    """The outer product of two vectors."""
    return np.outer(_real(a), _real(b))


@checked
def norm(a: ArrayLike) -> Array:
    """The Euclidean norm: the square root of the sum of squares."""
    return cast(Array, np.sqrt(np.sum(np.square(_real(a)))))


@checked
def sqrt(a: ArrayLike) -> Array:
    """The square root of each entry."""
    return np.sqrt(_real(a))


@checked
def exp(a: ArrayLike) -> Array:
    """e to the power of each entry."""
    return np.exp(_real(a))


@checked
def log(a: ArrayLike) -> Array:
    """The natural logarithm of each entry."""
    return np.log(_real(a))


@checked
def sin(a: ArrayLike) -> Array:
    """The sine of each entry."""
    return np.sin(_real(a))


@checked
def cos(a: ArrayLike) -> Array:
    """The cosine of each entry."""
    return np.cos(_real(a))


@checked
def tanh(a: ArrayLike) -> Array:
    """The hyperbolic tangent of each entry."""
    return np.tanh(_real(a))


@checked
def sigmoid(a: ArrayLike) -> Array:
    """1 / (1 + exp(-a)) of each entry, without overflow."""
    array = _real(a)
    small = np.exp(-np.abs(array))
    return np.where(array >= 0, 1.0, small) / (1.0 + small)


@checked
def relu(a: ArrayLike) -> Array:
    """max(a, 0) of each entry."""
    return np.maximum(_real(a), 0.0)


@checked
def maximum(a: ArrayLike, b: ArrayLike) -> Array:
    """The larger of each pair of entries."""
    return _fitting("maximum", np.maximum, a, b)


@checked
def minimum(a: ArrayLike, b: ArrayLike) -> Array:
    """The smaller of each pair of entries."""
    return _fitting("minimum", np.minimum, a, b)


@checked
def abs(a: ArrayLike) -> Array:
    """The absolute value of each entry."""
    return np.abs(_real(a))


@checked
def where(condition: ArrayLike, a: ArrayLike, b: ArrayLike) -> Array:
    """Entries of a where the condition is true, and entries of b elsewhere."""
    try:
        return np.where(np.asarray(condition), _real(a), _real(b))
    except ValueError as error:
        raise ProgramError(f"where: {error}") from None


@checked
def softmax(a: ArrayLike, axis: int = -1) -> Array:
    """The softmax along an axis, default: the last."""
    array = _real(a)
    if array.size == 0 or not -array.ndim <= axis < array.ndim:
        raise ProgramError(f"softmax: axis={axis} of an array of the shape {array.shape}")
    grown = np.exp(array - array.max(axis=axis, keepdims=True))
    return np.asarray(grown / grown.sum(axis=axis, keepdims=True))


def _fitting(name: str, function: Callable[[Array, Array], Array], a: ArrayLike, b: ArrayLike) -> Array:
    try:
        return function(_real(a), _real(b))
    except ValueError as error:
        raise ProgramError(f"{name}: {error}") from None
