"""Attributes and calls: functions of arrays, arrays of constants, and a few of Python's own functions."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from punchcard import arrays as functions
from punchcard.python.arrays.dtypes import REAL
from punchcard.python.arrays.expressions import ArrayExpressions, described
from punchcard.python.arrays.intrinsics import MAKERS, METHODS, Primitive, call, named
from punchcard.python.arrays.ir import Const
from punchcard.python.arrays.values import ArrayValue, Known, LoopVariable, NeedsConstant, TupleValue, Value
from punchcard.python.front_end import PythonProgram, default_values
from punchcard.python.program import machine_for
from punchcard.python.source import FunctionSource, bind_arguments, parameters_of


class ArrayCalls:
    """Attributes and calls in expressions; `compile_program` gives the value of another program for its arguments."""

    def __init__(self, expressions: ArrayExpressions,
                 compile_program: Callable[[FunctionSource, dict[str, Value]], Value]) -> None:
        self.expressions, self.frame, self.compile_program = expressions, expressions.frame, compile_program
        expressions.handlers |= {ast.Attribute: self._attribute, ast.Call: self._call}

    def _attribute(self, node: ast.Attribute) -> Value:
        value = self.expressions.evaluate(node.value)
        if isinstance(value, Known):
            given = value.value
            if isinstance(given, types.ModuleType):
                if not hasattr(given, node.attr):
                    self.frame.fail(node, f"{given.__name__} has no {node.attr!r}")
                found = getattr(given, node.attr)
                return Known(found)
            if isinstance(given, np.ndarray) and node.attr in ("T", "shape", "ndim", "size"):
                return Known(getattr(given, node.attr))
            self.frame.fail(node, f".{node.attr} of {described(given)}")
        if isinstance(value, TupleValue):
            self.frame.fail(node, f".{node.attr} of a tuple")
        real = self.expressions.real(value, node)
        if node.attr == "T":
            return replace(real, operand=real.operand.flip, shape=real.shape[::-1]) if len(real.shape) == 2 else real
        known: dict[str, object] = {"shape": real.shape, "ndim": len(real.shape), "size": int(np.prod(real.shape))}
        if node.attr in known:
            return Known(known[node.attr])
        raise self.frame.source.error(node, f".{node.attr} is not in the subset",
                                      f"an array has .T, .shape, .ndim, .size and the methods {', '.join(METHODS)}")

    def _call(self, node: ast.Call) -> Value:
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            self.frame.fail(node, "* and ** in a call are not in the subset", "write the arguments one by one")
        if isinstance(node.func, ast.Attribute):
            method = self._method(node, node.func)
            if method is not None:
                return method
        function = self.expressions.evaluate(node.func)
        if not isinstance(function, Known):
            self.frame.fail(node, "a call of something that is not a function")
        values = [self.expressions.evaluate(argument) for argument in node.args]
        options = {str(k.arg): self.expressions.evaluate(k.value) for k in node.keywords}
        self.frame.at(node)
        return self._called(node, function.value, values, options)

    def _method(self, node: ast.Call, function: ast.Attribute) -> Value | None:
        """A method of an array; None where it is not one."""
        owner = self.expressions.evaluate(function.value)
        if isinstance(owner, Known) and not isinstance(owner.value, np.ndarray | float | int):
            return None
        if function.attr not in METHODS:
            self.frame.fail(function, f".{function.attr}() is not in the subset",
                            f"an array has the methods {', '.join(METHODS)}")
        values = [owner, *(self.expressions.evaluate(argument) for argument in node.args)]
        options = {str(k.arg): self.expressions.evaluate(k.value) for k in node.keywords}
        self.frame.at(node)
        return self._intrinsic(node, function.attr, values, options)

    def _called(self, node: ast.Call, function: object, values: list[Value], options: dict[str, Value]) -> Value:
        if isinstance(function, Primitive):
            return function.emit(self.frame.arithmetic, [self.expressions.real(value, node) for value in values])
        if isinstance(function, FunctionSource) and machine_for(function) == "fleq":  # of a file that is not executed
            return self._program(node, function, default_values(function), values, options)
        if isinstance(function, PythonProgram) and function.machine_kind == "fleq":
            return self._program(node, function.source, function.defaults, values, options)
        if function is len:
            return self._len(node, values)
        if function is sum and values and not options:
            return self._builtin_sum(node, values)
        if function in (int, float, bool, max, min, abs, round, tuple) and all(isinstance(v, Known) for v in values):
            return self._python(node, function, values)
        try:
            name = named().get(function)
        except TypeError:
            name = None
        if name in MAKERS and not (name == "diag" and values and not isinstance(values[0], Known)):
            return self._made(node, name, values, options)
        if name is not None:
            ours = getattr(functions, name, None) is function
            return self._intrinsic(node, name, values, options, ours=ours)
        called = getattr(function, "name", None) or getattr(function, "__name__", None) or described(function)
        raise self.frame.source.error(node, f"a call of {called!r}, which is not a function of array programs",
                                      "call pc.* or np.* functions, or another function under @pc.program")

    def _program(self, node: ast.Call, source: FunctionSource, defaults: Mapping[str, object], values: list[Value],
                 options: dict[str, Value]) -> Value:
        found = bind_arguments(source, values, options, defaults, lambda why: self.frame.fail(node, why))
        arguments = {p.arg: found[p.arg] if p.arg in found else Known(defaults[p.arg]) for p in parameters_of(source)}
        return self.compile_program(source, {
            name: value if isinstance(value, ArrayValue | Known | TupleValue) else self.expressions.real(value, node)
            for name, value in arguments.items()})

    def _python(self, node: ast.AST, function: Callable[..., object], values: list[Value]) -> Value:
        try:
            return Known(function(*(value.value for value in values if isinstance(value, Known))))
        except Exception as error:
            self.frame.fail(node, f"{function.__name__}: {error}")

    def _builtin_sum(self, node: ast.Call, values: list[Value]) -> Value:
        (first, *rest) = values
        if rest:
            self.frame.fail(node, "Python's sum with a start", "add it yourself")
        if isinstance(first, TupleValue) or (isinstance(first, Known) and isinstance(first.value, tuple)):
            items = first.items if isinstance(first, TupleValue) else tuple(map(Known, first.value))
            total: Value = Known(0)
            for item in items:
                total = self.expressions.combine(node, ast.Add, total, item)
            return total
        real = self.expressions.real(first, node)
        if real.is_scalar:
            self.frame.fail(node, "sum of a scalar")
        return self.frame.arithmetic.sum(real, 0 if len(real.shape) == 2 else None)

    def _len(self, node: ast.Call, values: list[Value]) -> Value:
        if len(values) != 1:
            self.frame.fail(node, f"len takes 1 argument: {len(values)} given")
        (value,) = values
        if isinstance(value, TupleValue):
            return Known(len(value.items))
        if isinstance(value, Known):
            return self._python(node, len, values)
        real = self.expressions.real(value, node)
        if real.is_scalar:
            self.frame.fail(node, "len of a scalar", "it is for vectors and matrices")
        return Known(real.shape[0])

    def _made(self, node: ast.Call, name: str, values: list[Value], options: dict[str, Value]) -> Value:
        """An array of constants, which NumPy makes when the function is compiled."""
        for value in (*values, *options.values()):
            if isinstance(value, LoopVariable):
                raise NeedsConstant(value.loop, name)
            if not isinstance(value, Known):
                self.frame.fail(node, f"{name} of something that is computed",
                                "its arguments are constants, or sizes such as len(A)")
        try:
            found = np.asarray(getattr(np, name)(*(v.value for v in values if isinstance(v, Known)),
                                                 **{k: v.value for k, v in options.items() if isinstance(v, Known)}))
        except Exception as error:
            self.frame.fail(node, f"{name}: {error}")
        if found.dtype.kind not in "buif" or found.ndim > 2 or not 0 < found.size <= 1 << 20:
            self.frame.fail(node, f"{name} gives an array of the shape {found.shape}: real numbers in one or two "
                            "dimensions are wanted")
        return ArrayValue(Const.of(found), found.shape, kinds=self.expressions.kinds(found, node))

    def _intrinsic(
        self, node: ast.Call, name: str, values: list[Value], options: dict[str, Value], *, ours: bool = False
    ) -> Value:
        """A function of arrays; `ours`, in punchcard, makes real numbers of its arguments, NumPy's keep their types."""
        plain: dict[str, object] = {}
        for key, value in options.items():
            if not isinstance(value, Known):
                self.frame.fail(node, f"{key}= must be a constant")
            plain[key] = value.value
        if len(values) == 2 and name in ("sum", "mean", "max", "min", "softmax") and isinstance(values[1], Known):
            plain["axis"] = values[1].value
            values = values[:1]
        reals = [self.expressions.real(value, node) for value in values]
        if ours:
            reals = [each if name == "where" and at == 0 else replace(each, kinds=REAL) for at, each in enumerate(reals)]
        return call(self.frame.arithmetic, name, reals, plain)
