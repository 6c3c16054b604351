"""The functions of FLEQ, declared: name, arity, shape rule and NumPy reference. Assembler and interpreter read this half.

The other half of a function is its block of weights, in `machines.fleq.blocks`. Anybody can declare a function of
their own:

    MAXIMUM = Function("maximum", arity=2, shape=same_shape, reference=np.maximum)

A name of some tells the domain that they hold over, as exp_m16_4 does, for -16 to 4:

    fitted_function("inverse", 2**-4, 16)      1 / x for 1/16 <= |x| <= 16, named inverse_0d0625_16

It is enough to find the declaration, and the block of weights. So a text that calls such a function needs nothing else, and
a machine that has it can be saved and loaded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from punchcard.errors import ProgramError, did_you_mean

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
Smooth: TypeAlias = Callable[[Any], Any]
"""A function on numbers of python-flint, which has no types."""


@dataclass(frozen=True)
class Function:
    """What a function is called, takes and gives.

    `shape(a)` or `shape(a, b)` gives the result's shape or raises ShapeMismatch. `reference(a)` or `reference(a, b)`
    is the exact function on float64 arrays. `domain` limits the operand's entries, as (low, high), where the block is
    an approximation; `least` is how far they are from 0 at least. A `steep` function has an infinite slope where its
    domain begins: an operand below that is refused, however near it is. `refuse(a, b)` says what else is wrong with the
    operands, or None. `smooth` is the function of a number again, on intervals and Taylor series of python-flint: with it
    the error of a fit is proven over the whole domain.
    """

    name: str
    arity: int
    shape: ShapeRule
    reference: Callable[..., Array]
    domain: tuple[float, float] | None = None
    least: float = 0.0
    steep: bool = False
    refuse: Callable[..., str | None] | None = None
    smooth: Smooth | None = None


def _rule(result: Callable[..., Shape], fits: Callable[..., bool], wanted: str) -> ShapeRule:
    """A rule that gives the result's shape where the operands fit, and else says what is wanted."""

    def rule(*shapes: Shape) -> Shape:
        if not fits(*shapes):
            raise ShapeMismatch(f"{' and '.join(map(str, shapes))}: {wanted}")
        return result(*shapes)

    return rule


same_shape = _rule(lambda a, b=None: a, lambda a, b=None: b in (None, a), "the operands must have the same shape")
"""The operands have one shape, and so has the result."""
product_shape = _rule(lambda a, b: Shape(a.columns, b.columns), lambda a, b: a.rows == b.rows,
                      "mul(a, b) is a^T b, so the operands must have equally many rows")
scalar_only = _rule(lambda a: a, lambda a: a == Shape(1, 1), "the operand must be a scalar")
"""The function takes a scalar."""
vectors_only = _rule(lambda a, b: a, lambda a, b: a.columns == 1 and a == b,
                     "the operands must be vectors of the same length")
"""The function takes two vectors, or scalars, of the same length."""
scalar_first = _rule(lambda a, b: b, lambda a, b: a == Shape(1, 1), "the first operand must be a scalar")
"""The first operand is a scalar; the result is as the second."""


def fitting_shapes(function: Function, size: int) -> list[tuple[Shape, ...]]:
    """The shapes of operands and result that fit a function, of at most so many rows and columns."""
    found, some = list[tuple[Shape, ...]](), [Shape(*sides) for sides in product(range(1, size + 1), repeat=2)]
    for operands in product(some, repeat=function.arity):
        with suppress(ShapeMismatch):
            found.append((*operands, function.shape(*operands)))
    return [shapes for shapes in found if max(shapes[-1].rows, shapes[-1].columns) <= size]


def transposed(a: Shape) -> Shape:
    """Rows become columns."""
    return Shape(a.columns, a.rows)


def scaled_rows(a: Shape, b: Shape) -> Shape:
    """The first operand is a vector with an entry for each row of the second."""
    if a.columns != 1 or a.rows != b.rows:
        hint = "; the product of two matrices entry by entry is entrywise(a, b)" if a == b else ""
        raise ShapeMismatch(f"{a} and {b}: the first operand must be a vector, an entry for each row of the second{hint}")
    return b


def vector_of(entries: int, choices: int | None = None) -> ShapeRule:
    """The function takes a vector of so many entries, and an indicator of `choices` entries if any; it gives a number."""

    def rule(a: Shape, b: Shape | None = None) -> Shape:
        if a != Shape(entries, 1):
            raise ShapeMismatch(f"{a}: the operand must be a vector of {entries} entries")
        if choices is not None and b != Shape(choices, 1):
            raise ShapeMismatch(f"{b}: the indicator must be a vector of {choices} entries")
        return Shape(1, 1)

    return rule


def no_indicator(a: Array, b: Array) -> str | None:
    """What is wrong with b as an indicator: one entry is 1 and the others are 0, exactly."""
    entries = b[:, 0].tolist()
    if sorted(entries) == [0.0] * (len(entries) - 1) + [1.0]:
        return None
    return f"the indicator is {' '.join(f'{x:g}' for x in entries)}: one of its entries must be 1, the others 0"


def vector_function(
    name: str, function: Callable[[Array], Array], entries: int, domain: tuple[float, float]
) -> Function:
    """A function of a vector with entries in a domain. `function` takes points in rows and gives a number for each."""
    return Function(name, 1, vector_of(entries), lambda a: np.asarray(function(a.T)).reshape(1, 1), domain)


def chosen_function(
    name: str, functions: Sequence[Callable[[Array], Array]], entries: int, domain: tuple[float, float]
) -> Function:
    """name(x, e): the function of a vector x that the indicator e names, by the place of its 1."""

    def reference(a: Array, b: Array) -> Array:
        values = np.array([np.asarray(f(a.T)).reshape(()) for f in functions])
        return np.asarray(b.T @ values[:, None])

    return Function(name, 2, vector_of(entries, len(functions)), reference, domain, refuse=no_indicator)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow: the exponent is never positive."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, small) / (1.0 + small))


def square_root(x: Any) -> Any:
    """The square root on numbers of python-flint. Of an interval that reaches below 0: that of its part from 0 on."""
    if hasattr(x, "mid") and not x > 0:
        return (x + abs(x)).sqrt() * type(x)(0.5, 0.5)
    return x.sqrt()


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
PERCENTAGE = Function("percentage", 1, same_shape, lambda a: a * 0.01)
INVERSE = Function("inverse", 1, scalar_only, np.reciprocal, domain=(0.1, 10.0), smooth=lambda x: 1 / x)
SQRT = Function("sqrt", 1, scalar_only, np.sqrt, domain=(0.0, 16.0), steep=True, smooth=square_root)
LOSS_SLOPES: Mapping[str, Callable[[Array], Array]] = {
    "squared": lambda v: v[:, 0] - v[:, 1],
    "huber": lambda v: np.clip(v[:, 0] - v[:, 1], -1.0, 1.0),
    "logcosh": lambda v: np.tanh(v[:, 0] - v[:, 1]),
    "logistic": lambda v: sigmoid(v[:, 0]) - v[:, 1],
}
"""Derivatives of losses by the output, of the vector (output, label)."""
LOSS_SLOPE = chosen_function("loss_slope", tuple(LOSS_SLOPES.values()), 2, domain=(-8.0, 8.0))

BUILT_IN: Mapping[str, Function] = {
    f.name: f for f in (ADD, SUB, MUL, TRANSPOSE, SIGMOID, HADAMARD, PERCENTAGE, INVERSE, SQRT)
}
ARRAY_FUNCTIONS: Mapping[str, Function] = {
    f.name: f for f in (ENTRYWISE, SCALE, RELU, ABS, MAXIMUM, MINIMUM, POSITIVE, TANH)
}
"""Functions for programs over arrays. One of the user's own may take such a name."""
KNOWN: Mapping[str, Function] = {**BUILT_IN, **ARRAY_FUNCTIONS, LOSS_SLOPE.name: LOSS_SLOPE}
Field: TypeAlias = Literal["a", "b", "c", "flag", "p"]
POINTERS: tuple[Field, ...] = ("a", "b", "c", "flag", "p")
"""The pointers of an instruction: the first of its rows, in this order."""
POINTER_FUNCTIONS = ("incr_pointer", "reset_pointer")
STANDARD_FUNCTIONS = ("add", "sub", "mul", "transpose", "sigmoid", "hadamard", *POINTER_FUNCTIONS)
"""The functions of a machine on which the linear algebra and the learning programs run without a change to its weights."""
ALIASES: Mapping[str, str] = {"mul_ba": "b^T a, mul with its operands exchanged", "mul_aa": "a^T a", "mul_bb": "b^T b"}
NUMBER = r"(?:m?\d+(?:d\d+)?(?:e[mp]?\d+)?)"
NAMED = re.compile(rf"([a-z]+)_({NUMBER})_({NUMBER})")


@dataclass(frozen=True)
class Fitted:
    """A function of one number: its reference in NumPy and on intervals, and the least operand of all.

    `both`: it holds for negative operands too, of which `low` and `high` limit the size.
    """

    reference: Callable[[Array], Array]
    smooth: Smooth
    least: float = -math.inf
    both: bool = False


FITTED: dict[str, Fitted] = {
    "exp": Fitted(np.exp, lambda x: x.exp()),
    "log": Fitted(np.log, lambda x: x.log(), least=np.nextafter(0.0, 1.0)),
    "sqrt": Fitted(np.sqrt, square_root, least=0.0),
    "inverse": Fitted(np.reciprocal, lambda x: 1 / x, least=np.nextafter(0.0, 1.0), both=True),
    "sin": Fitted(np.sin, lambda x: x.sin()),
    "cos": Fitted(np.cos, lambda x: x.cos()),
}
UNLIMITED = {function.name: function for function in (TANH, SIGMOID)}
"""Functions that a softmax computes for any operand."""


@cache
def fitted_function(name: str, low: float, high: float) -> Function:
    """The function of this name for operands from low to high, entry by entry; inverse for sizes from low to high."""
    if name in UNLIMITED:
        return UNLIMITED[name]
    if name not in FITTED:
        known = (*FITTED, *UNLIMITED)
        raise ProgramError(f"unknown function {name!r}{did_you_mean(name, known)}: there are {', '.join(known)}")
    rule = FITTED[name]
    if not (math.isfinite(low) and math.isfinite(high) and rule.least <= low < high):
        least = "" if rule.least == -math.inf else f", and low is {'positive' if rule.least else 'not negative'}"
        raise ProgramError(f"{name} from {low:g} to {high:g}: low must be less than high, both finite{least}")
    full = f"{name}_{_written(low)}_{_written(high)}"
    if fitted_domain(full) != (name, low, high):
        raise ProgramError(f"{name} from {low!r} to {high!r}: the ends are in its name: they have at most 6 digits")
    domain = (-high, high) if rule.both else (low, high)
    return Function(full, 1, same_shape, rule.reference, domain=domain, least=low if rule.both else 0.0,
                    smooth=rule.smooth)


def fitted_domain(name: str) -> tuple[str, float, float] | None:
    """What a name like exp_m16_4 says: the function, low and high."""
    found = NAMED.fullmatch(name)
    if found is None or found[1] not in FITTED:
        return None
    low, high = (float(end.replace("m", "-").replace("d", ".").replace("p", "+")) for end in found.groups()[1:])
    return found[1], low, high


def known_function(name: str) -> Function | None:
    """A function that the language has without a declaration, by its name."""
    domain = fitted_domain(name)
    return KNOWN.get(name) if domain is None else fitted_function(*domain)


def _written(x: float) -> str:
    """A number as a part of a name: letters, digits and no sign."""
    return f"{x:g}".replace("-", "m").replace("+", "p").replace(".", "d")
