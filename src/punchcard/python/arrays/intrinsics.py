"""The functions that a program may call: those of punchcard, of NumPy under their own names, and a few of Python's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from punchcard import arrays as functions
from punchcard.python.arrays.arithmetic import Arithmetic
from punchcard.python.arrays.dtypes import TRUTH
from punchcard.python.arrays.ir import Const
from punchcard.python.arrays.values import ArrayValue, Refusal, shown

ENTRYWISE = ("sqrt", "exp", "log", "sin", "cos", "tanh", "sigmoid", "relu", "abs")
PAIRS = ("maximum", "minimum")
MAKERS = ("eye", "zeros", "ones", "identity", "full", "arange", "array", "asarray", "diag", "linspace")
"""Functions of constants alone: NumPy makes the array when the function is compiled."""


@cache
def named() -> dict[Any, str]:
    """Function objects by what they are called here."""
    found: dict[Any, str] = {getattr(functions, name): name for name in functions.NAMES}
    found |= {getattr(np, name): name for name in (
        "sum", "dot", "outer", "sqrt", "exp", "log", "sin", "cos", "tanh", "maximum", "minimum", "abs", "where", "mean",
        "transpose", "square", "zeros_like", "ones_like", "copy", "trace", "inner", "matmul", "add", "subtract", "multiply",
        "divide", "negative", "max", "min", *MAKERS)}
    found |= {np.absolute: "abs", np.linalg.norm: "norm", np.vdot: "inner", np.float64: "float", np.amax: "max",
              np.amin: "min"}
    found |= {getattr(math, name): name for name in ("sqrt", "exp", "log", "sin", "cos", "tanh")}
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


class Intrinsics:
    """Each method is a function of programs; arguments are arrays, or Python's own constants where it says so."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self.a = arithmetic

    def call(self, name: str, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        if name in ENTRYWISE:
            _count(name, values, 1, options)
            if name != "abs" and values[0].kinds & TRUTH:
                raise Refusal(f"{name} of a comparison: NumPy computes it in 16 bits", "multiply it by 1.0 first")
            return self.a.entrywise(name, values[0])
        if name in PAIRS:
            _count(name, values, 2, options)
            return self.a.elementwise(name, values[0], values[1], name)
        return getattr(self, f"_{name}")(values, options)  # type: ignore[no-any-return]

    def _sum(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        keep, axis = _kept(options), _axis("sum", values, options)
        return _as_axis(self.a.sum(values[0], axis), values[0], axis, keep)

    def _mean(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        keep, axis = _kept(options), _axis("mean", values, options)
        total = self.a.sum(values[0], axis)
        count = math.prod(values[0].shape) if axis is None else values[0].shape[axis]
        return _as_axis(self.a.scaled(Const.of(1.0 / count), total), values[0], axis, keep)

    def _max(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        keep, axis = _kept(options), _axis("max", values, options)
        return _as_axis(self.a.extreme("maximum", values[0], axis), values[0], axis, keep)

    def _min(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        keep, axis = _kept(options), _axis("min", values, options)
        return _as_axis(self.a.extreme("minimum", values[0], axis), values[0], axis, keep)

    def _builtin_max(self, values: list[ArrayValue], options: dict[str, Any], name: str = "maximum") -> ArrayValue:
        """Python's max, of scalars."""
        if options or len(values) < 2 or not all(value.is_scalar for value in values):
            raise Refusal(f"Python's {name[:3]} takes two or more scalars", f"write pc.{name}(a, b), or x.{name[:3]}()")
        found = values[0]
        for value in values[1:]:
            found = self.a.elementwise(name, found, value, name)
        return replace(found, kinds=frozenset().union(*(value.kinds for value in values)))  # it is one of them

    def _builtin_min(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        return self._builtin_max(values, options, "minimum")

    def _dot(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        _count("dot", values, 2, options)
        a, b = values
        return self.a.mul(a, b) if a.is_scalar or b.is_scalar else self.a.matmul(a, b, "dot")

    def _inner(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        _count("inner", values, 2, options)
        if any(len(value.shape) != 1 for value in values):
            raise Refusal("inner takes two vectors", "write a @ b.T")
        return self.a.matmul(values[0], values[1], "inner")

    def _matmul(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        _count("matmul", values, 2, options)
        return self.a.matmul(values[0], values[1], "matmul")

    def _outer(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        _count("outer", values, 2, options)
        return self.a.outer(*values)

    def _norm(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        _count("norm", values, 1, options)
        return self.a.norm(values[0])

    def _trace(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        _count("trace", values, 1, options)
        (a,) = values
        if len(a.shape) != 2 or a.shape[0] != a.shape[1]:
            raise Refusal(f"trace of {shown(a.shape)}: it must be a square matrix")
        diagonal = self.a.elementwise("hadamard", a, ArrayValue(Const.of(np.eye(a.shape[0])), a.shape), "trace")
        return self.a.sum(replace(diagonal, kinds=a.kinds), None)

    def _diag(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        """The diagonal of a square matrix, or a matrix with a vector on its diagonal: a product with the identity."""
        _count("diag", values, 1, options)
        (a,) = values
        if not a.shape or a.shape[0] != a.shape[-1]:
            raise Refusal(f"diag of {shown(a.shape)}: it must be a vector or a square matrix")
        size = a.shape[0]
        whole = self.a.mul(a, ArrayValue(Const.of(np.eye(size)), (size, size)))
        return replace(whole if len(a.shape) == 1 else self.a.sum(whole, 1), kinds=a.kinds)

    def _where(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        _count("where", values, 3, options)
        if not values[0].boolean:
            raise Refusal("where takes a comparison first", "write np.where(x > 0, a, b)")
        return self.a.where(*values)

    def _softmax(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        axis = _axis("softmax", values, options)
        return self.a.softmax(values[0], -1 if axis is None else axis)

    def _transpose(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        _count("transpose", values, 1, options)
        (a,) = values
        return replace(a, operand=a.operand.flip, shape=a.shape[::-1]) if len(a.shape) == 2 else a

    def _square(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        _count("square", values, 1, options)
        return self.a.power(values[0], 2)

    def _zeros_like(self, values: list[ArrayValue], options: dict[str, Any], fill: float = 0.0) -> ArrayValue:
        _count("zeros_like", values, 1, options)
        return ArrayValue(Const.of(np.full(values[0].shape, fill)), values[0].shape, kinds=values[0].kinds)

    def _ones_like(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        return self._zeros_like(values, options, 1.0)

    def _copy(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        _count("copy", values, 1, options)
        return replace(values[0], buffers=frozenset())

    def _float(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        _count("float", values, 1, options)
        if math.prod(values[0].shape) != 1:
            raise Refusal(f"float of {shown(values[0].shape)}: it must be a scalar")
        return ArrayValue(values[0].operand, ())

    def _add(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        _count("add", values, 2, options)
        return self.a.add(*values)

    def _subtract(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        _count("subtract", values, 2, options)
        return self.a.sub(*values)

    def _multiply(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        _count("multiply", values, 2, options)
        return self.a.mul(*values)

    def _divide(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        _count("divide", values, 2, options)
        return self.a.div(*values)

    def _negative(self, values: list[ArrayValue], options: dict[str, Any]) -> ArrayValue:
        _count("negative", values, 1, options)
        return self.a.negative(values[0])


METHODS = {"sum": "sum", "dot": "dot", "mean": "mean", "copy": "copy", "max": "max", "min": "min", "transpose": "transpose",
           "trace": "trace"}
"""Methods of arrays, by the function that each is."""


def _count(name: str, values: list[ArrayValue], count: int, options: dict[str, Any]) -> None:
    if len(values) != count or options:
        given = f"{len(values)} given" if not options else f"{', '.join(options)}= is not"
        raise Refusal(f"{name} takes {count} argument{'s' * (count != 1)}: {given}")


def _kept(options: dict[str, Any]) -> bool:
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


def _axis(name: str, values: list[ArrayValue], options: dict[str, Any]) -> int | None:
    """The axis along which something is added up; the second argument, or axis=."""
    extra = [key for key in options if key != "axis"]
    if extra or len(values) not in (1, 2) or (len(values) == 2 and options):
        raise Refusal(f"{name} takes an array and an axis" + (f": {extra[0]}= is not known" if extra else ""))
    axis = options.get("axis")
    if len(values) == 2:
        operand = values[1].operand
        axis = int(operand.value[0, 0]) if isinstance(operand, Const) else "?"
    if axis is not None and (not isinstance(axis, int) or not -len(values[0].shape) <= axis < len(values[0].shape)):
        raise Refusal(f"{name}: axis={axis!r} of {shown(values[0].shape)}")
    return axis
