"""The value of an expression while it is compiled, and the types that its entries have in NumPy.

The machine has real numbers alone. NumPy cuts off what is stored in an array of integers, adds comparisons as `or`, and
has no minus for them; so every value knows which types its entries may have, and what would mean something else is
refused. A value that is an integer on one way of control flow and a real number on another may have both types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from punchcard.python.arrays.ir import Const, Loop, Operand

Shape: TypeAlias = tuple[int, ...]
Kinds: TypeAlias = frozenset[str]
"""The types that entries may have: b, i and f, as NumPy calls them."""
REAL: Kinds = frozenset("f")
WHOLE: Kinds = frozenset("i")
TRUTH: Kinds = frozenset("b")
ORDER = "bif"
"""Of two types together, the later one is the result's."""
NAMES = {"b": "comparisons", "i": "integers", "f": "real numbers"}


@dataclass(frozen=True)
class ArrayValue:
    """A scalar, vector or matrix on the card, with NumPy's shape.

    buffers    the arrays of NumPy that it may share its entries with;  kinds  the types that its entries may have there
    """

    operand: Operand
    shape: Shape
    buffers: frozenset[int] = frozenset()
    kinds: Kinds = REAL

    @property
    def boolean(self) -> bool:
        """The entries are False and True."""
        return self.kinds == TRUTH

    @property
    def is_scalar(self) -> bool:
        return self.shape == ()


@dataclass(frozen=True, eq=False)
class Known:
    """A Python object that is known when the function is compiled: a number, a text, a function, a module."""

    value: Any


@dataclass(frozen=True)
class LoopVariable:
    """A loop variable: `first` in the first round, then `step` more in each."""

    loop: Loop
    first: int
    step: int


@dataclass(frozen=True)
class TupleValue:
    """A tuple."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class Missing:
    """A variable that has a value on some paths to this place only, or values that do not fit; `why` is the message."""

    why: str


Value: TypeAlias = ArrayValue | Known | LoopVariable | TupleValue | Missing


class NeedsConstant(Exception):
    """The variable of a loop is used where a constant is needed: the loop must be unrolled."""

    def __init__(self, loop: Loop, message: str) -> None:
        super().__init__(message)
        self.loop, self.message = loop, message


def items_of(value: Value) -> tuple[Value, ...] | None:
    """The items of a tuple, or None if a value is not one."""
    if isinstance(value, Known) and isinstance(value.value, tuple):
        return tuple(map(Known, value.value))
    return value.items if isinstance(value, TupleValue) else None


def dims(shape: Shape) -> str:
    """A shape in words."""
    return "a scalar" if shape == () else f"shape {shape}"


def matrix_shape(shape: Shape) -> tuple[int, int]:
    """Rows and columns of what is stored: a vector is a column."""
    return (1, 1) if shape == () else (shape[0], 1) if len(shape) == 1 else (shape[0], shape[1])


def filled(fill: float, shape: Shape) -> ArrayValue:
    """An array of equal numbers."""
    return ArrayValue(Const.of(np.full(shape, fill)), shape)


def promoted(a: Kinds, b: Kinds) -> Kinds:
    """The types of a sum or product."""
    return frozenset(max(x, y, key=ORDER.index) for x in a for y in b)


def counted(kinds: Kinds) -> Kinds:
    """The types of a sum of entries: comparisons are counted."""
    return frozenset("i" if kind == "b" else kind for kind in kinds)


def keeps(old: Kinds, new: Kinds) -> bool:
    """Whether an array holds new entries as they are, on every way."""
    return max(map(ORDER.index, new)) <= min(map(ORDER.index, old))


def least(kinds: Kinds) -> str:
    """The type that holds the fewest numbers, in words."""
    return NAMES[min(kinds, key=ORDER.index)]


def kinds_of(value: object) -> Kinds | None:
    """The types of a number or an array; None where NumPy would round its results, or wrap them around."""
    dtype = np.asarray(value).dtype
    if isinstance(value, int | np.integer):
        return TRUTH if isinstance(value, bool) else WHOLE
    return {np.dtype(bool): TRUTH, np.dtype(np.int64): WHOLE, np.dtype(np.float64): REAL}.get(dtype)
