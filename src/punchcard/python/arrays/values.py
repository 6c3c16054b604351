"""The value of an expression while it is compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from punchcard.python.arrays.dtypes import REAL, TRUTH, Kinds
from punchcard.python.arrays.ir import Const, Loop, Operand

Shape: TypeAlias = tuple[int, ...]


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


class Refusal(Exception):
    """An operation that cannot be done, with a message; the caller adds the place in the source."""

    def __init__(self, message: str, instead: str = "") -> None:
        super().__init__(message)
        self.message, self.instead = message, instead


class NeedsConstant(Exception):
    """The variable of a loop is used where a constant is needed: the loop must be unrolled."""

    def __init__(self, loop: Loop, message: str) -> None:
        super().__init__(message)
        self.loop, self.message = loop, message


def shown(shape: Shape) -> str:
    """A shape in words."""
    return "a scalar" if shape == () else f"shape {shape}"


def constant(value: ArrayLike, shape: Shape) -> ArrayValue:
    return ArrayValue(Const.of(value), shape)
