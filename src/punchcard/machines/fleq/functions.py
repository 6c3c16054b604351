"""The functions of FLEQ, declared: name, arity, shape rule and NumPy reference. Assembler and interpreter read this half.

The other half of a function is its block of weights, in `machines.fleq.blocks`. Anybody can declare a function of
their own:

    MAXIMUM = Function("maximum", arity=2, shape=same_shape, reference=np.maximum)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Shape:
    """Rows and columns; a vector has one column, a scalar one row and one column."""

    rows: int
    columns: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}"


class ShapeMismatch(ValueError):
    """Raised by a shape rule; its text says which shapes do not fit and why."""


ShapeRule: TypeAlias = Callable[..., Shape]


@dataclass(frozen=True)
class Function:
    """What a function is called, takes and gives.

    `shape(a)` or `shape(a, b)` gives the result's shape or raises ShapeMismatch. `reference(a)` or `reference(a, b)`
    is the exact function on float64 arrays. `domain` limits the operand's entries, as (low, high), where the block is
    an approximation; `least` is how far they are from 0 at least.
    """

    name: str
    arity: int
    shape: ShapeRule
    reference: Callable[..., Array]
    domain: tuple[float, float] | None = None
    least: float = 0.0


def same_shape(a: Shape, b: Shape | None = None) -> Shape:
    """The operands have one shape, and so has the result."""
    if b is not None and a != b:
        raise ShapeMismatch(f"{a} and {b}: the operands must have the same shape")
    return a


def product_shape(a: Shape, b: Shape) -> Shape:
    """a^T b: the operands have equally many rows."""
    if a.rows != b.rows:
        raise ShapeMismatch(f"{a} and {b}: mul(a, b) is a^T b, so the operands must have equally many rows")
    return Shape(a.columns, b.columns)


def transposed(a: Shape) -> Shape:
    """Rows become columns."""
    return Shape(a.columns, a.rows)


def scalar_only(a: Shape) -> Shape:
    """The function takes a scalar."""
    if a != Shape(1, 1):
        raise ShapeMismatch(f"{a}: the operand must be a scalar")
    return a


def vectors_only(a: Shape, b: Shape) -> Shape:
    """The function takes two vectors, or scalars, of the same length."""
    if a.columns != 1 or a != b:
        raise ShapeMismatch(f"{a} and {b}: the operands must be vectors of the same length")
    return a


def scaled_rows(a: Shape, b: Shape) -> Shape:
    """The first operand is a vector with an entry for each row of the second."""
    if a.columns != 1 or a.rows != b.rows:
        hint = "; the product of two matrices entry by entry is entrywise(a, b)" if a == b else ""
        raise ShapeMismatch(f"{a} and {b}: the first operand must be a vector, an entry for each row of the second{hint}")
    return b


def scalar_first(a: Shape, b: Shape) -> Shape:
    """The first operand is a scalar; the result is as the second."""
    if a != Shape(1, 1):
        raise ShapeMismatch(f"{a} and {b}: the first operand must be a scalar")
    return b


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow: the exponent is never positive."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, small) / (1.0 + small))


def hundredth(x: Array) -> Array:
    """x / 100 as the paper writes it, x * 0.01."""
    return np.asarray(x * 0.01)


ADD = Function("add", 2, same_shape, np.add)
SUB = Function("sub", 2, same_shape, np.subtract)
MUL = Function("mul", 2, product_shape, lambda a, b: a.T @ b)
TRANSPOSE = Function("transpose", 1, transposed, lambda a: a.T.copy())
SIGMOID = Function("sigmoid", 1, same_shape, sigmoid)
HADAMARD = Function("hadamard", 2, scaled_rows, np.multiply)
ENTRYWISE = Function("entrywise", 2, same_shape, np.multiply)
SCALE = Function("scale", 2, scalar_first, np.multiply)
RELU = Function("relu", 1, same_shape, lambda a: np.maximum(a, 0.0))
ABS = Function("abs", 1, same_shape, np.abs)
MAXIMUM = Function("maximum", 2, same_shape, np.maximum)
MINIMUM = Function("minimum", 2, same_shape, np.minimum)
POSITIVE = Function("positive", 1, same_shape, lambda a: (a > 0.0).astype(np.float64))
TANH = Function("tanh", 1, same_shape, np.tanh)
PERCENTAGE = Function("percentage", 1, same_shape, hundredth)
INVERSE = Function("inverse", 1, scalar_only, np.reciprocal, domain=(0.1, 10.0))
SQRT = Function("sqrt", 1, scalar_only, np.sqrt, domain=(0.01, 16.0))

BUILT_IN: Mapping[str, Function] = {
    f.name: f for f in (ADD, SUB, MUL, TRANSPOSE, SIGMOID, HADAMARD, PERCENTAGE, INVERSE, SQRT)
}
ARRAY_FUNCTIONS: Mapping[str, Function] = {
    f.name: f for f in (ENTRYWISE, SCALE, RELU, ABS, MAXIMUM, MINIMUM, POSITIVE, TANH)
}
"""Functions for programs over arrays. One of the user's own may take such a name."""
KNOWN: Mapping[str, Function] = {**BUILT_IN, **ARRAY_FUNCTIONS}
POINTER_FUNCTIONS = ("incr_pointer", "reset_pointer")
STANDARD_FUNCTIONS = ("add", "sub", "mul", "transpose", "sigmoid", "hadamard", *POINTER_FUNCTIONS)
"""The functions of a machine on which the linear algebra and the learning programs run without a change to its weights."""
ALIASES: Mapping[str, str] = {"mul_ba": "b^T a, mul with its operands exchanged", "mul_aa": "a^T a", "mul_bb": "b^T b"}
