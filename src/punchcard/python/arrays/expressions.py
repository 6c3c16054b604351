"""Expressions of the source: each becomes a value, and the operations that compute it."""

from __future__ import annotations

import ast
import operator
import types
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from punchcard.python import functions
from punchcard.python.arrays import indexing
from punchcard.python.arrays.arithmetic import BINARY, Arithmetic
from punchcard.python.arrays.dtypes import REAL, TRUTH, WHOLE, Kinds, kinds_of
from punchcard.python.arrays.emitter import Emitter
from punchcard.python.arrays.intrinsics import MAKERS, METHODS, Intrinsics, named
from punchcard.python.arrays.ir import Const, Line, Ref
from punchcard.python.arrays.values import (
    Counted,
    Known,
    Missing,
    NeedsConstant,
    Real,
    Refusal,
    Several,
    Value,
    shown,
)
from punchcard.python.source import FunctionSource

OPERATORS: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add), ast.Sub: ("-", operator.sub), ast.Mult: ("*", operator.mul), ast.Div: ("/",
                                                                                                         operator.truediv),
    ast.MatMult: ("@", operator.matmul), ast.Pow: ("**", operator.pow), ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
}
COMPARISONS: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Lt: ("<", operator.lt), ast.LtE: ("<=", operator.le), ast.Gt: (">", operator.gt), ast.GtE: (">=", operator.ge),
    ast.Eq: ("==", operator.eq), ast.NotEq: ("!=", operator.ne),
}
BUILTINS: dict[str, Any] = {"len": len, "range": range, "abs": abs, "float": float, "int": int, "max": max, "min": min,
                            "zip": zip, "enumerate": enumerate, "sum": sum, "tuple": tuple, "round": round, "bool": bool,
                            "True": True, "False": False, "None": None}
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
MOST_EXPONENT = 1024


class Expressions:
    """The expressions of one function; `env` has its variables."""

    def __init__(self, source: FunctionSource, emitter: Emitter, frames: list[dict[str, Value]]) -> None:
        self.source, self.emitter = source, emitter
        self.arithmetic = Arithmetic(emitter)
        self.intrinsics = Intrinsics(self.arithmetic)
        self.env: dict[str, Value] = {}
        self.frames = frames
        """The variables of the functions that called this one, and its own."""

    def fail(self, node: ast.AST, message: str, instead: str = "") -> NoReturn:
        self.source.fail(node, message, instead)

    def line(self, node: ast.AST) -> Line:
        return Line(self.source, node)

    # Values

    def real(self, value: Value, node: ast.AST) -> Real:
        """A value as an array on the card."""
        if isinstance(value, Real):
            return value
        if isinstance(value, Known):
            given = value.value
            if isinstance(given, np.ndarray) and given.dtype.kind in "buif" and given.size > 0 and given.ndim <= 2:
                return Real(Const.of(given), given.shape, frozenset([id(given)]), self._kinds(given, node))
            if isinstance(given, NUMBERS):
                if not abs(float(given)) <= 1e300:
                    self.fail(node, f"{given!r} is not a finite number that the machine can hold")
                return Real(Const.of(float(given)), (), kinds=self._kinds(given, node))
            self.fail(node, f"{_described(given)} is not a number or an array of at most two dimensions")
        if isinstance(value, Counted):
            return self.index(value)
        if isinstance(value, Several):
            return self.vector(value, node)
        return self.missing(value, node)

    def _kinds(self, given: Any, node: ast.AST) -> Kinds:
        """The types of a constant; NumPy rounds numbers of less precision, and wraps smaller integers around."""
        found = kinds_of(given)
        if found is None:
            self.fail(node, f"{_described(given)} of {given.dtype}: NumPy computes with that precision",
                      "make it with dtype=float")
        return found

    def vector(self, value: Several, node: ast.AST) -> Real:
        self.fail(node, "a tuple or list is not an array",
                  "use one variable for each item, or give the array as an argument")

    def missing(self, value: Missing, node: ast.AST) -> NoReturn:
        self.fail(node, value.why)

    def index(self, value: Counted) -> Real:
        """The value of a loop variable: a scalar that the loop counts up."""
        loop = value.loop
        if loop.index is None:
            loop.index = self.emitter.register(1, 1, name="i", integral=True)
            loop.index.level = 1 + next(i for i, (other, _) in enumerate(self.emitter.loops) if other is loop)
        times = value.step / loop.step
        counted = Real(Ref(loop.index), (), kinds=WHOLE)
        if times != 1:
            counted = self.arithmetic.scaled(Const.of(times), counted, WHOLE)
        return self.arithmetic.add(counted, Real(Const.of(value.first - times * loop.start), (), kinds=WHOLE))

    def evaluate(self, node: ast.expr) -> Value:
        self.arithmetic.line = self.line(node)
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is None:
            self.fail(node, f"{_construct(node)} is not in the subset", _INSTEAD.get(type(node), ""))
        try:
            found: Value = method(node)
        except Refusal as refusal:
            self.fail(node, refusal.message, refusal.instead)
        return found

    def _Constant(self, node: ast.Constant) -> Value:
        if not isinstance(node.value, bool | int | float | str | types.NoneType):
            self.fail(node, f"{node.value!r} is not a real number")
        return Known(node.value)

    def _Name(self, node: ast.Name) -> Value:
        if node.id in self.env:
            found = self.env[node.id]
            if isinstance(found, Missing):
                self.missing(found, node)
            return found
        if node.id in self.source.names:
            return Known(self.source.names[node.id])
        if node.id in BUILTINS:
            return Known(BUILTINS[node.id])
        raise self.source.unknown(node, [*self.env])

    def _Tuple(self, node: ast.Tuple | ast.List) -> Value:
        items = tuple(self.evaluate(item) for item in node.elts)
        if all(isinstance(item, Known) for item in items):
            return Known(tuple(item.value for item in items if isinstance(item, Known)))
        return Several(items)

    _List = _Tuple

    def _UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            self.fail(node, "not as a value", "use it in the condition of if or while")
        value = self.evaluate(node.operand)
        if isinstance(value, Known) and isinstance(value.value, int | float | np.number) and (
                not isinstance(node.op, ast.Invert)):
            return Known(-value.value if isinstance(node.op, ast.USub) else +value.value)
        real = self.real(value, node)
        if isinstance(node.op, ast.Invert):
            if not real.boolean or isinstance(value, Known):  # ~ of Python's own False is -1
                self.fail(node, "~ is for comparisons only", "write not, in a condition")
            return self.arithmetic.inverted(real)
        if isinstance(node.op, ast.UAdd) and real.kinds & TRUTH:
            self.fail(node, "+ of a comparison: NumPy has no plus for True and False", "multiply it by 1.0")
        return self.arithmetic.negative(real) if isinstance(node.op, ast.USub) else real

    def _BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        self.arithmetic.line = self.line(node)
        return self.combine(node, type(node.op), left, right)

    def combine(self, node: ast.AST, kind: type, left: Value, right: Value) -> Value:
        """A binary operator: in Python for constants, on the card for the rest."""
        if kind not in OPERATORS:
            self.fail(node, f"{kind.__name__} is not an operator of arrays")
        sign, compute = OPERATORS[kind]
        if isinstance(left, Known) and isinstance(right, Known):
            return self._folded(node, sign, compute, left.value, right.value)
        if isinstance(left, Known | Counted) and isinstance(right, Known | Counted):
            moved = _shifted(sign, left, right)
            if moved is not None:
                return moved
        if sign == "**":
            if not isinstance(right, Known):
                self.fail(node, "** with a computed exponent", "write pc.exp(p * pc.log(x))")
            return self.arithmetic.power(self.real(left, node), right.value)
        if sign not in BINARY:
            for value in (left, right):
                if isinstance(value, Counted):
                    raise NeedsConstant(value.loop, sign)
            self.fail(node, f"{sign} of real numbers", "use it for integers in a function of integers")
        a, b = self.real(left, node), self.real(right, node)
        self.arithmetic.line = self.line(node)
        return BINARY[sign](self.arithmetic, a, b)

    def _folded(self, node: ast.AST, sign: str, compute: Callable[[Any, Any], Any], a: Any, b: Any) -> Value:
        plain = (*NUMBERS, np.ndarray, tuple, str)
        if not isinstance(a, plain) or not isinstance(b, plain):
            self.fail(node, f"{sign} of {_described(a)} and {_described(b)}")
        if sign == "**" and isinstance(b, int) and abs(b) > MOST_EXPONENT:
            self.fail(node, f"** {b}: the exponent of a constant is at most {MOST_EXPONENT}")
        if isinstance(a, tuple | str) or isinstance(b, tuple | str):
            sizes = [x if isinstance(x, int) else len(x) if isinstance(x, tuple | str) else 0 for x in (a, b)]
            if sign not in "+*" or abs(sizes[0] * sizes[1]) > 1 << 16:
                self.fail(node, f"{sign} of {_described(a)} and {_described(b)}")
        try:
            with np.errstate(all="ignore"):
                return Known(compute(a, b))
        except Exception as error:
            self.fail(node, f"{sign} of {_described(a)} and {_described(b)}: {error}")

    def _Compare(self, node: ast.Compare) -> Value:
        if len(node.ops) != 1:
            self.fail(node, "a chain of comparisons as a value", "multiply two comparisons")
        left, right = self.evaluate(node.left), self.evaluate(node.comparators[0])
        self.arithmetic.line = self.line(node)
        kind = type(node.ops[0])
        if kind not in COMPARISONS:
            if isinstance(left, Known) and isinstance(right, Known) and kind in (ast.Is, ast.IsNot):
                return Known((left.value is right.value) == (kind is ast.Is))
            self.fail(node, f"{_WORDS.get(kind, kind.__name__)} is not a comparison of numbers")
        sign, compute = COMPARISONS[kind]
        if isinstance(left, Known) and isinstance(right, Known):
            return self._folded(node, sign, compute, left.value, right.value)
        return self.arithmetic.compare(sign, self.real(left, node), self.real(right, node))

    # Attributes and calls

    def _Attribute(self, node: ast.Attribute) -> Value:
        value = self.evaluate(node.value)
        if isinstance(value, Known):
            given = value.value
            if isinstance(given, types.ModuleType):
                if not hasattr(given, node.attr):
                    self.fail(node, f"{given.__name__} has no {node.attr!r}")
                found = getattr(given, node.attr)
                return Known(found)
            if isinstance(given, np.ndarray) and node.attr in ("T", "shape", "ndim", "size"):
                return Known(getattr(given, node.attr))
            self.fail(node, f".{node.attr} of {_described(given)}")
        if isinstance(value, Several):
            self.fail(node, f".{node.attr} of a tuple")
        real = self.real(value, node)
        if node.attr == "T":
            return replace(real, operand=real.operand.flip, shape=real.shape[::-1]) if len(real.shape) == 2 else real
        known: dict[str, Any] = {"shape": real.shape, "ndim": len(real.shape), "size": int(np.prod(real.shape))}
        if node.attr in known:
            return Known(known[node.attr])
        raise self.source.error(node, f".{node.attr} is not in the subset", "an array has .T, .shape, .ndim, .size and the "
                                f"methods {', '.join(METHODS)}")

    def _Call(self, node: ast.Call) -> Value:
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            self.fail(node, "* and ** in a call are not in the subset", "write the arguments one by one")
        if isinstance(node.func, ast.Attribute):
            method = self._method(node, node.func)
            if method is not None:
                return method
        function = self.evaluate(node.func)
        if not isinstance(function, Known):
            self.fail(node, "a call of something that is not a function")
        values = [self.evaluate(argument) for argument in node.args]
        options = {str(k.arg): self.evaluate(k.value) for k in node.keywords}
        self.arithmetic.line = self.line(node)
        return self.called(node, function.value, values, options)

    def _method(self, node: ast.Call, function: ast.Attribute) -> Value | None:
        """A method of an array; None where it is not one."""
        owner = self.evaluate(function.value)
        if isinstance(owner, Known) and not isinstance(owner.value, np.ndarray | float | int):
            return None
        if function.attr not in METHODS:
            self.fail(function, f".{function.attr}() is not in the subset", f"an array has the methods {', '.join(METHODS)}")
        values = [owner, *(self.evaluate(argument) for argument in node.args)]
        options = {str(k.arg): self.evaluate(k.value) for k in node.keywords}
        self.arithmetic.line = self.line(node)
        return self._intrinsic(node, METHODS[function.attr], values, options)

    def called(self, node: ast.Call, function: Any, values: list[Value], options: dict[str, Value]) -> Value:
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
        called = getattr(function, "__name__", None) or _described(function)
        raise self.source.error(node, f"a call of {called!r}, which is not a function of array programs",
                                "call pc.* or np.* functions, or another function under @pc.program")

    def _python(self, node: ast.AST, function: Any, values: list[Value]) -> Value:
        try:
            return Known(function(*(value.value for value in values if isinstance(value, Known))))
        except Exception as error:
            self.fail(node, f"{function.__name__}: {error}")

    def _builtin_sum(self, node: ast.Call, values: list[Value]) -> Value:
        (first, *rest) = values
        if rest:
            self.fail(node, "Python's sum with a start", "add it yourself")
        if isinstance(first, Several) or (isinstance(first, Known) and isinstance(first.value, tuple)):
            items = first.items if isinstance(first, Several) else tuple(map(Known, first.value))
            total: Value = Known(0)
            for item in items:
                total = self.combine(node, ast.Add, total, item)
            return total
        real = self.real(first, node)
        if real.is_scalar:
            self.fail(node, "sum of a scalar")
        return self.arithmetic.sum(real, 0 if len(real.shape) == 2 else None)

    def _len(self, node: ast.Call, values: list[Value]) -> Value:
        if len(values) != 1:
            self.fail(node, f"len takes 1 argument: {len(values)} given")
        (value,) = values
        if isinstance(value, Several):
            return Known(len(value.items))
        if isinstance(value, Known):
            return self._python(node, len, values)
        real = self.real(value, node)
        if real.is_scalar:
            self.fail(node, "len of a scalar", "it is for vectors and matrices")
        return Known(real.shape[0])

    def _made(self, node: ast.Call, name: str, values: list[Value], options: dict[str, Value]) -> Value:
        """An array of constants, which NumPy makes when the function is compiled."""
        for value in (*values, *options.values()):
            if isinstance(value, Counted):
                raise NeedsConstant(value.loop, name)
            if not isinstance(value, Known):
                self.fail(node, f"{name} of something that is computed",
                          "its arguments are constants, or sizes such as len(A)")
        try:
            found = np.asarray(getattr(np, name)(*(v.value for v in values if isinstance(v, Known)),
                                                 **{k: v.value for k, v in options.items() if isinstance(v, Known)}))
        except Exception as error:
            self.fail(node, f"{name}: {error}")
        if found.dtype.kind not in "buif" or found.ndim > 2 or not 0 < found.size <= 1 << 20:
            self.fail(node,
                      f"{name} gives an array of the shape {found.shape}: real numbers in one or two dimensions are wanted")
        return Real(Const.of(found), found.shape, kinds=self._kinds(found, node))

    def _intrinsic(
        self, node: ast.Call, name: str, values: list[Value], options: dict[str, Value], *, ours: bool = False
    ) -> Value:
        """A function of arrays; `ours`, in punchcard, makes real numbers of its arguments, NumPy's keep their types."""
        plain: dict[str, Any] = {}
        for key, value in options.items():
            if not isinstance(value, Known):
                self.fail(node, f"{key}= must be a constant")
            plain[key] = value.value
        if len(values) == 2 and name in ("sum", "mean", "max", "min", "softmax") and isinstance(values[1], Known):
            plain["axis"] = values[1].value
            values = values[:1]
        reals = [self.real(value, node) for value in values]
        if ours:
            reals = [each if name == "where" and at == 0 else replace(each, kinds=REAL) for at, each in enumerate(reals)]
        return self.intrinsics.call(name, reals, plain)

    # Parts of arrays

    def _Subscript(self, node: ast.Subscript) -> Value:
        value = self.evaluate(node.value)
        if isinstance(value, Several) or (isinstance(value, Known) and isinstance(value.value, tuple | str)):
            return self._item(node, value)
        real = self.real(value, node)
        turned = self._new_axis(node, real)
        if turned is not None:
            return turned
        places = self.places(node, real)
        self.arithmetic.line = self.line(node)
        found = indexing.get(self.arithmetic, real, places)
        return Real(found.operand, found.shape, real.buffers if found.shape else frozenset(), real.kinds)

    def _new_axis(self, node: ast.Subscript, real: Real) -> Real | None:
        """x[:, None] and x[None, :] of a vector: a matrix of one column or of one row."""
        if not isinstance(node.slice, ast.Tuple) or len(node.slice.elts) != 2 or len(real.shape) != 1:
            return None
        new = [isinstance(part, ast.Constant) and part.value is None for part in node.slice.elts]
        whole = [isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None for part in node.slice.elts]
        if new == [False, True] and whole[0]:
            return replace(real, shape=(real.shape[0], 1))
        turned = replace(real, operand=real.operand.flip, shape=(1, real.shape[0]))
        return turned if new == [True, False] and whole[1] else None

    def _item(self, node: ast.Subscript, value: Several | Known) -> Value:
        index = self.evaluate(node.slice)
        if isinstance(index, Counted):
            raise NeedsConstant(index.loop, "an index of a tuple")
        if not isinstance(index, Known):
            self.fail(node, "a computed index of a tuple")
        try:
            if isinstance(value, Several):
                found = value.items[index.value]
                return Several(found) if isinstance(found, tuple) else found
            return Known(value.value[index.value])
        except (IndexError, TypeError) as error:
            self.fail(node, str(error))

    def places(self, node: ast.Subscript, real: Real) -> list[indexing.Place]:
        """Where the indices in brackets lead; what is left out means all."""
        if real.is_scalar:
            self.fail(node, "an index of a scalar")
        given = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(given) > len(real.shape):
            self.fail(node, f"{len(given)} indices of an array of {shown(real.shape)}")
        found = [indexing.place(self._index(part), length, axis)
                 for axis, (part, length) in enumerate(zip(given, real.shape, strict=False))]
        return found + [indexing.Span(tuple(range(length))) for length in real.shape[len(given):]]

    def _index(self, node: ast.expr) -> Value:
        if not isinstance(node, ast.Slice):
            value = self.evaluate(node)
            if isinstance(value, Known) and not isinstance(value.value, int | np.integer | slice):
                self.fail(node, f"an index that is {_described(value.value)}",
                          "write x[:, None] as np.outer or as a matrix of one column" if value.value is None else "")
            return value
        ends = []
        for part in (node.lower, node.upper, node.step):
            value = Known(None) if part is None else self.evaluate(part)
            if isinstance(value, Counted):
                raise NeedsConstant(value.loop, "a slice")
            if not isinstance(value, Known) or not isinstance(value.value, int | np.integer | None):
                self.fail(node, "a slice with a computed end", "use constants, or a mask with pc.where")
            ends.append(value.value)
        return Known(slice(*ends))


def _shifted(sign: str, left: Known | Counted, right: Known | Counted) -> Value | None:
    """A loop variable plus, minus or times a constant is one again."""
    def number(value: Value) -> bool:
        return isinstance(value, Known) and isinstance(value.value, int | np.integer) and not isinstance(value.value, bool)

    if isinstance(left, Counted) and isinstance(right, Known) and number(right):
        if sign in "+-":
            return Counted(left.loop, left.first + (right.value if sign == "+" else -right.value), left.step)
        if sign == "*":
            return Counted(left.loop, left.first * right.value, left.step * right.value)
    if isinstance(right, Counted) and isinstance(left, Known) and number(left):
        if sign == "+":
            return Counted(right.loop, right.first + left.value, right.step)
        if sign == "-":
            return Counted(right.loop, left.value - right.first, -right.step)
        if sign == "*":
            return Counted(right.loop, right.first * left.value, right.step * left.value)
    return None


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of the shape {value.shape}"
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"


_WORDS: Mapping[type, str] = {ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not"}
_INSTEAD: Mapping[type, str] = {
    ast.Lambda: "write a function with def, under @pc.program", ast.ListComp: "write a for loop",
    ast.GeneratorExp: "write a for loop", ast.Dict: "use one variable for each item",
    ast.BoolOp: "use it in the condition of if or while", ast.NamedExpr: "write the assignment on a line of its own",
    ast.JoinedStr: "text is not in the subset of arrays",
}


def _construct(node: ast.AST) -> str:
    names = {"Lambda": "lambda", "ListComp": "a list comprehension", "GeneratorExp": "a generator", "Dict": "a dictionary",
             "BoolOp": "and/or as a value", "NamedExpr": ":=", "JoinedStr": "an f-string", "Await": "await",
             "Yield": "yield", "Set": "a set", "Starred": "*", "DictComp": "a dictionary comprehension",
             "SetComp": "a set comprehension", "Slice": "a slice"}
    kind = type(node).__name__
    return names.get(kind, kind)
