"""Attributes and calls: functions of arrays, arrays of constants, and a few of Python's own functions."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce

import numpy as np

from punchcard import arrays as functions
from punchcard.python.arrays.expressions import combine
from punchcard.python.arrays.frame import Frame, Handlers, described
from punchcard.python.arrays.intrinsics import METHODS, Primitive, call, named
from punchcard.python.arrays.ir import Const
from punchcard.python.arrays.makers import MAKERS, make_array
from punchcard.python.arrays.statements import compile_function
from punchcard.python.arrays.values import (
    REAL,
    ArrayValue,
    Known,
    LoopVariable,
    NeedsConstant,
    TupleValue,
    Value,
    items_of,
)
from punchcard.python.front_end import PythonProgram, default_values
from punchcard.python.limits import MOST_BITS, Refusal
from punchcard.python.program import machine_for
from punchcard.python.source import FunctionSource, bind_arguments, parameters_of


def _attribute(frame: Frame, node: ast.Attribute) -> Value:
    value = frame.evaluate(node.value)
    if isinstance(value, Known):
        given = value.value
        if isinstance(given, types.ModuleType):
            if not hasattr(given, node.attr):
                frame.fail(node, f"{given.__name__} has no {node.attr!r}")
            return Known(frame.limits.known(getattr(given, node.attr), f"{given.__name__}.{node.attr}"))
        if isinstance(given, np.ndarray) and node.attr in ("T", "shape", "ndim", "size"):
            return Known(getattr(given, node.attr))
        frame.fail(node, f".{node.attr} of {described(given)}")
    if isinstance(value, TupleValue):
        frame.fail(node, f".{node.attr} of a tuple")
    real = frame.real(value, node)
    if node.attr == "T":
        return replace(real, operand=real.operand.flip, shape=real.shape[::-1]) if len(real.shape) == 2 else real
    known: dict[str, object] = {"shape": real.shape, "ndim": len(real.shape), "size": int(np.prod(real.shape))}
    if node.attr in known:
        return Known(known[node.attr])
    raise Refusal(f".{node.attr} is not in the subset",
                  f"an array has .T, .shape, .ndim, .size and the methods {', '.join(METHODS)}")


def _call(frame: Frame, node: ast.Call) -> Value:
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        frame.fail(node, "* and ** in a call are not in the subset", "write the arguments one by one")
    owner = _owner(frame, node.func)
    function = None if owner is not None else frame.evaluate(node.func)
    values = [frame.evaluate(argument) for argument in node.args]
    options = {str(keyword.arg): frame.evaluate(keyword.value) for keyword in node.keywords}
    frame.at(node)
    if owner is not None:
        return _intrinsic(frame, node, getattr(node.func, "attr", ""), [owner, *values], options)
    if not isinstance(function, Known):
        frame.fail(node, "a call of something that is not a function")
    return _called(frame, node, function.value, values, options)


def _owner(frame: Frame, function: ast.expr) -> Value | None:
    """The array whose method is called, or None if it is not a method of an array."""
    owner = frame.evaluate(function.value) if isinstance(function, ast.Attribute) else None
    if owner is None or (isinstance(owner, Known) and not isinstance(owner.value, np.ndarray | float | int)):
        return None
    name = getattr(function, "attr", "")
    if name not in METHODS:
        frame.fail(function, f".{name}() is not in the subset", f"an array has the methods {', '.join(METHODS)}")
    return owner


def _called(frame: Frame, node: ast.Call, function: object, values: list[Value], options: dict[str, Value]) -> Value:
    if isinstance(function, Primitive):
        return function.emit(frame.arithmetic, [frame.real(value, node) for value in values])
    if isinstance(function, FunctionSource) and machine_for(function) == "fleq":  # of a file that is not executed
        return _program(frame, node, function, default_values(function), values, options)
    if isinstance(function, PythonProgram) and function.machine_kind == "fleq":
        return _program(frame, node, function.source, function.defaults, values, options)
    if function is len:
        return _len(frame, node, values)
    if function is sum and values and not options:
        return _builtin_sum(frame, node, values)
    if function in (int, float, bool, max, min, abs, round, tuple) and all(isinstance(v, Known) for v in values):
        return _python(frame, node, function, values)
    try:
        name = named().get(function)
    except TypeError:
        name = None
    if name is not None and name in MAKERS and not (name == "diag" and values and not isinstance(values[0], Known)):
        return _made(frame, node, name, values, options)
    if name is not None:
        return _intrinsic(frame, node, name, values, options, ours=getattr(functions, name, None) is function)
    called = getattr(function, "name", None) or getattr(function, "__name__", None) or described(function)
    raise Refusal(f"a call of {called!r}, which is not a function of array programs",
                  "call pc.* or np.* functions, or another function under @pc.program")


def _program(frame: Frame, node: ast.Call, source: FunctionSource, defaults: Mapping[str, object], values: list[Value],
             options: dict[str, Value]) -> Value:
    found = bind_arguments(source, values, options, defaults, lambda why: frame.fail(node, why))
    arguments = {p.arg: found[p.arg] if p.arg in found else Known(defaults[p.arg]) for p in parameters_of(source)}
    inner = Frame(source, frame.builder, frame.frames, frame.handlers)
    return compile_function(inner, {
        name: value if isinstance(value, ArrayValue | Known | TupleValue) else frame.real(value, node)
        for name, value in arguments.items()})


def _python(frame: Frame, node: ast.AST, function: Callable[..., object], values: list[Value]) -> Value:
    given = [frame.limits.known(value.value) for value in values if isinstance(value, Known)]
    if function is round and len(given) == 2 and isinstance(given[1], int) and given[1] < -MOST_BITS:
        frame.fail(node, f"round to {given[1]} digits: Python would compute 10 ** {-given[1]}", "round to fewer")
    try:
        return Known(frame.limits.known(function(*given)))
    except Refusal:
        raise
    except Exception as error:
        frame.fail(node, f"{function.__name__}: {error}")


def _builtin_sum(frame: Frame, node: ast.Call, values: list[Value]) -> Value:
    (first, *rest) = values
    if rest:
        frame.fail(node, "Python's sum with a start", "add it yourself")
    items = items_of(first)
    if items is not None:
        zero: Value = Known(0)
        return reduce(lambda total, item: combine(frame, node, ast.Add, total, item), items, zero)
    real = frame.real(first, node)
    if real.is_scalar:
        frame.fail(node, "sum of a scalar")
    return frame.arithmetic.sum(real, 0 if len(real.shape) == 2 else None)


def _len(frame: Frame, node: ast.Call, values: list[Value]) -> Value:
    if len(values) != 1:
        frame.fail(node, f"len takes 1 argument: {len(values)} given")
    (value,) = values
    if isinstance(value, TupleValue):
        return Known(len(value.items))
    if isinstance(value, Known):
        return _python(frame, node, len, values)
    real = frame.real(value, node)
    if real.is_scalar:
        frame.fail(node, "len of a scalar", "it is for vectors and matrices")
    return Known(real.shape[0])


def _made(frame: Frame, node: ast.Call, name: str, values: list[Value], options: dict[str, Value]) -> Value:
    """An array of constants, which NumPy makes when the function is compiled."""
    for value in (*values, *options.values()):
        if isinstance(value, LoopVariable):
            raise NeedsConstant(value.loop, name)
        if not isinstance(value, Known):
            frame.fail(node, f"{name} of something that is computed", "its arguments are constants, or sizes such as len(A)")
    found = make_array(frame.limits, name, [v.value for v in values if isinstance(v, Known)],
                 {k: v.value for k, v in options.items() if isinstance(v, Known)})
    return ArrayValue(Const.of(found), found.shape, kinds=frame.kinds(found, node))


def _intrinsic(
    frame: Frame, node: ast.Call, name: str, values: list[Value], options: dict[str, Value], *, ours: bool = False
) -> Value:
    """A function of arrays; `ours`, in punchcard, makes real numbers of its arguments, NumPy's keep their types."""
    for key, value in options.items():
        if not isinstance(value, Known):
            frame.fail(node, f"{key}= must be a constant")
    plain = {key: value.value for key, value in options.items() if isinstance(value, Known)}
    if len(values) == 2 and name in ("sum", "mean", "max", "min", "softmax") and isinstance(values[1], Known):
        plain["axis"] = values[1].value
        values = values[:1]
    reals = [frame.real(value, node) for value in values]
    if ours:
        reals = [each if name == "where" and at == 0 else replace(each, kinds=REAL) for at, each in enumerate(reals)]
    return call(frame.arithmetic, name, reals, plain)


HANDLERS: Handlers = {ast.Attribute: _attribute, ast.Call: _call}
