"""The functions that a program may call: those of punchcard, of NumPy under their own names, and a few of Python's."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial, reduce
from typing import TypeAlias

import numpy as np

from punchcard import arrays as functions
from punchcard.python.arrays.arithmetic import Arithmetic
from punchcard.python.arrays.ir import Const
from punchcard.python.arrays.makers import MAKERS
from punchcard.python.arrays.operation_builder import ENTRYWISE
from punchcard.python.arrays.values import TRUTH, ArrayValue, dims, filled
from punchcard.python.limits import Refusal

Options: TypeAlias = dict[str, object]


@cache
def named() -> dict[Hashable, str]:
    """Function objects by what they are called here."""
    found: dict[Hashable, str] = {getattr(functions, name): name for name in functions.NAMES}
    for name in (*ENTRYWISE, *FUNCTIONS, *REDUCTIONS, *MAKERS):
        for module in (np, math):
            if hasattr(module, name) and (module is np or name in ENTRYWISE):
                found[getattr(module, name)] = name
    found |= {np.absolute: "abs", np.linalg.norm: "norm", np.vdot: "inner", np.float64: "float", np.amax: "max",
              np.amin: "min"}
    return found | {abs: "abs", float: "float", max: "builtin_max", min: "builtin_min", math.fabs: "abs"}


@dataclass(frozen=True)
class Primitive:
    """An operation of one or two operands that another front end adds, and replaces in a pass of its own."""

    name: str

    def emit(self, arithmetic: Arithmetic, operands: Sequence[ArrayValue]) -> ArrayValue:
        """f(a), f(a, b), and f(a, f(b, c)) for more."""
        *others, found = operands
        if not others:
            return arithmetic.entrywise(self.name, found)
        for other in reversed(others):
            found = arithmetic.elementwise(self.name, other, found, self.name)
        return found


def call(arithmetic: Arithmetic, name: str, values: list[ArrayValue], options: Options) -> ArrayValue:
    """The value of a function of programs. Arguments are arrays; options are Python's own constants."""
    if name in ENTRYWISE:
        _count(name, values, 1, options)
        if name != "abs" and values[0].kinds & TRUTH:
            raise Refusal(f"{name} of a comparison: NumPy computes it in 16 bits", "multiply it by 1.0 first")
        return arithmetic.entrywise(name, values[0])
    if name in REDUCTIONS:
        keep, axis = _kept(options), _axis(name, values, options)
        return _as_axis(REDUCTIONS[name](arithmetic, values[0], axis), values[0], axis, keep)
    if name in EXTREMES:
        return _extreme_of_scalars(arithmetic, EXTREMES[name], values, options)
    if name == "softmax":
        axis = _axis(name, values, options)
        return arithmetic.softmax(values[0], -1 if axis is None else axis)
    arity, compute = FUNCTIONS[name]
    _count(name, values, arity, options)
    return compute(arithmetic, *values)


def _mean(arithmetic: Arithmetic, a: ArrayValue, axis: int | None) -> ArrayValue:
    count = math.prod(a.shape) if axis is None else a.shape[axis]
    return arithmetic.scaled(Const.of(1.0 / count), arithmetic.sum(a, axis))


def _extreme_of_scalars(arithmetic: Arithmetic, name: str, values: list[ArrayValue], options: Options) -> ArrayValue:
    """Python's max or min, of scalars."""
    if options or len(values) < 2 or not all(value.is_scalar for value in values):
        raise Refusal(f"Python's {name[:3]} takes two or more scalars", f"write np.{name}(a, b), or x.{name[:3]}()")
    found = reduce(lambda one, other: arithmetic.elementwise(name, one, other, name), values)
    return replace(found, kinds=frozenset().union(*(value.kinds for value in values)))  # it is one of them


def _dot(arithmetic: Arithmetic, a: ArrayValue, b: ArrayValue) -> ArrayValue:
    return arithmetic.mul(a, b) if a.is_scalar or b.is_scalar else arithmetic.matmul(a, b, "dot")


def _inner(arithmetic: Arithmetic, a: ArrayValue, b: ArrayValue) -> ArrayValue:
    if len(a.shape) != 1 or len(b.shape) != 1:
        raise Refusal("inner takes two vectors", "write a @ b.T")
    return arithmetic.matmul(a, b, "inner")


def _trace(arithmetic: Arithmetic, a: ArrayValue) -> ArrayValue:
    if len(a.shape) != 2 or a.shape[0] != a.shape[1]:
        raise Refusal(f"trace of {dims(a.shape)}: it must be a square matrix")
    diagonal = arithmetic.elementwise("hadamard", a, ArrayValue(arithmetic.identity(a.shape[0]), a.shape), "trace")
    return arithmetic.sum(replace(diagonal, kinds=a.kinds), None)


def _diag(arithmetic: Arithmetic, a: ArrayValue) -> ArrayValue:
    """The diagonal of a square matrix, or a matrix with a vector on its diagonal: a product with the identity."""
    if not a.shape or a.shape[0] != a.shape[-1]:
        raise Refusal(f"diag of {dims(a.shape)}: it must be a vector or a square matrix")
    size = a.shape[0]
    whole = arithmetic.mul(a, ArrayValue(arithmetic.identity(size), (size, size)))
    return replace(whole if len(a.shape) == 1 else arithmetic.sum(whole, 1), kinds=a.kinds)


def _where(arithmetic: Arithmetic, mask: ArrayValue, a: ArrayValue, b: ArrayValue) -> ArrayValue:
    if not mask.boolean:
        raise Refusal("where takes a comparison first", "write np.where(x > 0, a, b)")
    return arithmetic.where(mask, a, b)


def _transpose(arithmetic: Arithmetic, a: ArrayValue) -> ArrayValue:
    return replace(a, operand=a.operand.flip, shape=a.shape[::-1]) if len(a.shape) == 2 else a


def _float(arithmetic: Arithmetic, a: ArrayValue) -> ArrayValue:
    if math.prod(a.shape) != 1:
        raise Refusal(f"float of {dims(a.shape)}: it must be a scalar")
    return ArrayValue(a.operand, ())


FUNCTIONS: Mapping[str, tuple[int, Callable[..., ArrayValue]]] = {
    "maximum": (2, lambda arithmetic, a, b: arithmetic.elementwise("maximum", a, b, "maximum")),
    "minimum": (2, lambda arithmetic, a, b: arithmetic.elementwise("minimum", a, b, "minimum")),
    "add": (2, Arithmetic.add), "subtract": (2, Arithmetic.sub), "multiply": (2, Arithmetic.mul),
    "divide": (2, Arithmetic.div), "negative": (1, Arithmetic.negative),
    "square": (1, partial(Arithmetic.power, exponent=2)),
    "dot": (2, _dot), "inner": (2, _inner), "matmul": (2, partial(Arithmetic.matmul, sign="matmul")),
    "outer": (2, Arithmetic.outer), "norm": (1, Arithmetic.norm), "trace": (1, _trace), "diag": (1, _diag),
    "where": (3, _where), "transpose": (1, _transpose),
    "zeros_like": (1, lambda arithmetic, a: replace(filled(0.0, a.shape), kinds=a.kinds)),
    "ones_like": (1, lambda arithmetic, a: replace(filled(1.0, a.shape), kinds=a.kinds)),
    "copy": (1, lambda arithmetic, a: replace(a, buffers=frozenset())),
    "float": (1, _float),
}
"""Functions of arrays alone: how many they take, and what they give."""
REDUCTIONS: Mapping[str, Callable[[Arithmetic, ArrayValue, int | None], ArrayValue]] = {
    "sum": Arithmetic.sum, "mean": _mean,
    "max": lambda arithmetic, a, axis: arithmetic.extreme("maximum", a, axis),
    "min": lambda arithmetic, a, axis: arithmetic.extreme("minimum", a, axis),
}
"""Functions that take axis= and keepdims=."""
EXTREMES = {"builtin_max": "maximum", "builtin_min": "minimum"}
METHODS = ("sum", "dot", "mean", "copy", "max", "min", "transpose", "trace")
"""Methods of arrays, each the function of its name."""


def _count(name: str, values: list[ArrayValue], count: int, options: Options) -> None:
    if len(values) != count or options:
        given = f"{len(values)} given" if not options else f"{', '.join(options)}= is not"
        raise Refusal(f"{name} takes {count} argument{'s' * (count != 1)}: {given}")


def _kept(options: Options) -> bool:
    """Whether keepdims= is given, which is taken out of the options."""
    keep = options.pop("keepdims", False)
    if not isinstance(keep, bool):
        raise Refusal(f"keepdims={keep!r}: it must be True or False")
    return keep


def _as_axis(found: ArrayValue, a: ArrayValue, axis: int | None, keep: bool) -> ArrayValue:
    """What one axis became, or all; where the axis is kept, with a length of 1."""
    if not keep:
        return found
    if axis is None or len(a.shape) < 2:
        return replace(found, shape=(1,) * len(a.shape))
    column = axis % 2 == 1
    return ArrayValue(found.operand if column else found.operand.flip, (a.shape[0], 1) if column else (1, a.shape[1]),
                      kinds=found.kinds)


def _axis(name: str, values: list[ArrayValue], options: Options) -> int | None:
    """The axis along which something is added up; the second argument, or axis=."""
    extra = [key for key in options if key != "axis"]
    if extra or len(values) not in (1, 2) or (len(values) == 2 and options):
        raise Refusal(f"{name} takes an array and an axis" + (f": {extra[0]}= is not known" if extra else ""))
    axis = options.get("axis")
    if len(values) == 2:
        operand = values[1].operand
        axis = int(operand.value[0, 0]) if isinstance(operand, Const) else "?"
    if axis is None:
        return None
    if not isinstance(axis, int) or not -len(values[0].shape) <= axis < len(values[0].shape):
        raise Refusal(f"{name}: axis={axis!r} of {dims(values[0].shape)}")
    return axis
