"""Expressions of the source: each becomes a value, and the operations that compute it."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from punchcard.python.arrays.arithmetic import BINARY
from punchcard.python.arrays.dtypes import TRUTH, WHOLE, Kinds, kinds_of
from punchcard.python.arrays.frame import Frame
from punchcard.python.arrays.ir import Const, Ref
from punchcard.python.arrays.values import (
    ArrayValue,
    Known,
    LoopVariable,
    Missing,
    NeedsConstant,
    Refusal,
    TupleValue,
    Value,
)
from punchcard.python.constructs import COMPARISONS, OPERATORS, SIGNS, name_of

BUILTINS: dict[str, object] = {"len": len, "range": range, "abs": abs, "float": float, "int": int, "max": max, "min": min,
                            "zip": zip, "enumerate": enumerate, "sum": sum, "tuple": tuple, "round": round, "bool": bool,
                            "True": True, "False": False, "None": None}
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
MOST_EXPONENT = 1024


class ArrayExpressions:
    """The expressions of one function. `handlers` compile the kinds of nodes; other parts of the compiler add theirs."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.handlers: dict[type[ast.expr], Callable[..., Value]] = {
            ast.Constant: self._constant, ast.Name: self._name, ast.Tuple: self._tuple, ast.List: self._tuple,
            ast.UnaryOp: self._unary, ast.BinOp: self._binary, ast.Compare: self._comparison}

    # Values

    def real(self, value: Value, node: ast.AST) -> ArrayValue:
        """A value as an array on the card."""
        if isinstance(value, ArrayValue):
            return value
        if isinstance(value, Known):
            given = value.value
            if isinstance(given, np.ndarray) and given.dtype.kind in "buif" and given.size > 0 and given.ndim <= 2:
                return ArrayValue(Const.of(given), given.shape, frozenset([id(given)]), self.kinds(given, node))
            if isinstance(given, NUMBERS):
                if not abs(float(given)) <= 1e300:
                    self.frame.fail(node, f"{given!r} is not a finite number that the machine can hold")
                return ArrayValue(Const.of(float(given)), (), kinds=self.kinds(given, node))
            self.frame.fail(node, f"{described(given)} is not a number or an array of at most two dimensions")
        if isinstance(value, LoopVariable):
            return self.index(value)
        if isinstance(value, TupleValue):
            return self.vector(value, node)
        return self.missing(value, node)

    def kinds(self, given: object, node: ast.AST) -> Kinds:
        """The types of a constant; NumPy rounds numbers of less precision, and wraps smaller integers around."""
        found = kinds_of(given)
        if found is None:
            self.frame.fail(node, f"{described(given)} of {np.asarray(given).dtype}: NumPy computes with that precision",
                            "make it with dtype=float")
        return found

    def vector(self, value: TupleValue, node: ast.AST) -> ArrayValue:
        self.frame.fail(node, "a tuple or list is not an array",
                        "use one variable for each item, or give the array as an argument")

    def missing(self, value: Missing, node: ast.AST) -> NoReturn:
        self.frame.fail(node, value.why)

    def index(self, value: LoopVariable) -> ArrayValue:
        """The value of a loop variable: a scalar that the loop counts up."""
        loop = value.loop
        if loop.index is None:
            loop.index = self.frame.builder.register(1, 1, name="i", integral=True)
            loop.index.level = 1 + next(i for i, (other, _) in enumerate(self.frame.builder.loops) if other is loop)
        times = value.step / loop.step
        counted = ArrayValue(Ref(loop.index), (), kinds=WHOLE)
        if times != 1:
            counted = self.frame.arithmetic.scaled(Const.of(times), counted, WHOLE)
        return self.frame.arithmetic.add(counted, ArrayValue(Const.of(value.first - times * loop.start), (), kinds=WHOLE))

    def evaluate(self, node: ast.expr) -> Value:
        self.frame.at(node)
        handler = self.handlers.get(type(node))
        if handler is None:
            self.frame.fail(node, f"{name_of(node)} is not in the subset", _INSTEAD.get(type(node), ""))
        with self.refusing(node):
            return handler(node)

    @contextmanager
    def refusing(self, node: ast.AST) -> Iterator[None]:
        """What is refused is refused at a node."""
        try:
            yield
        except Refusal as refusal:
            self.frame.fail(node, refusal.message, refusal.instead)

    def _constant(self, node: ast.Constant) -> Value:
        if not isinstance(node.value, bool | int | float | str | types.NoneType):
            self.frame.fail(node, f"{node.value!r} is not a real number")
        return Known(node.value)

    def _name(self, node: ast.Name) -> Value:
        if node.id in self.frame.env:
            found = self.frame.env[node.id]
            if isinstance(found, Missing):
                self.missing(found, node)
            return found
        if node.id in self.frame.source.names:
            return Known(self.frame.source.names[node.id])
        if node.id in BUILTINS:
            return Known(BUILTINS[node.id])
        raise self.frame.source.unknown(node, [*self.frame.env])

    def _tuple(self, node: ast.Tuple | ast.List) -> Value:
        items = tuple(self.evaluate(item) for item in node.elts)
        if all(isinstance(item, Known) for item in items):
            return Known(tuple(item.value for item in items if isinstance(item, Known)))
        return TupleValue(items)

    def _unary(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            self.frame.fail(node, "not as a value", "use it in the condition of if or while")
        value = self.evaluate(node.operand)
        if isinstance(value, Known) and isinstance(value.value, int | float | np.number) and (
                not isinstance(node.op, ast.Invert)):
            return Known(-value.value if isinstance(node.op, ast.USub) else +value.value)
        real = self.real(value, node)
        if isinstance(node.op, ast.Invert):
            if not real.boolean or isinstance(value, Known):  # ~ of Python's own False is -1
                self.frame.fail(node, "~ is for comparisons only", "write not, in a condition")
            return self.frame.arithmetic.inverted(real)
        if isinstance(node.op, ast.UAdd) and real.kinds & TRUTH:
            self.frame.fail(node, "+ of a comparison: NumPy has no plus for True and False", "multiply it by 1.0")
        return self.frame.arithmetic.negative(real) if isinstance(node.op, ast.USub) else real

    def _binary(self, node: ast.BinOp) -> Value:
        """An operator, and before it those on its left, one by one: a sum may have any number of terms."""
        chain = [node]
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        value = self.evaluate(chain[-1].left)
        for each in reversed(chain):
            with self.refusing(each):
                right = self.evaluate(each.right)
                self.frame.at(each)
                value = self.combine(each, type(each.op), value, right)
        return value

    def combine(self, node: ast.AST, kind: type, left: Value, right: Value) -> Value:
        """A binary operator: in Python for constants, on the card for the rest."""
        if kind in (ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor):
            self.frame.fail(node, f"{SIGNS[kind]} is not an operator of arrays")
        sign, compute = OPERATORS[kind]
        if isinstance(left, Known) and isinstance(right, Known):
            return self.fold(node, sign, compute, left.value, right.value)
        if isinstance(left, Known | LoopVariable) and isinstance(right, Known | LoopVariable):
            moved = _shifted(sign, left, right)
            if moved is not None:
                return moved
        if sign == "**":
            if not isinstance(right, Known):
                self.frame.fail(node, "** with a computed exponent", "write np.exp(p * np.log(x))")
            return self.frame.arithmetic.power(self.real(left, node), right.value)
        if sign not in BINARY:
            for value in (left, right):
                if isinstance(value, LoopVariable):
                    raise NeedsConstant(value.loop, sign)
            self.frame.fail(node, f"{sign} of real numbers", "use it for integers in a function of integers")
        a, b = self.real(left, node), self.real(right, node)
        self.frame.at(node)
        return BINARY[sign](self.frame.arithmetic, a, b)

    def fold(self, node: ast.AST, sign: str, compute: Callable[[Any, Any], Any], a: Any, b: Any) -> Value:
        plain = (*NUMBERS, np.ndarray, tuple, str)
        if not isinstance(a, plain) or not isinstance(b, plain):
            self.frame.fail(node, f"{sign} of {described(a)} and {described(b)}")
        if sign == "**" and isinstance(b, int) and abs(b) > MOST_EXPONENT:
            self.frame.fail(node, f"** {b}: the exponent of a constant is at most {MOST_EXPONENT}")
        if isinstance(a, tuple | str) or isinstance(b, tuple | str):
            sizes = [x if isinstance(x, int) else len(x) if isinstance(x, tuple | str) else 0 for x in (a, b)]
            if sign not in "+*" or abs(sizes[0] * sizes[1]) > 1 << 16:
                self.frame.fail(node, f"{sign} of {described(a)} and {described(b)}")
        try:
            with np.errstate(all="ignore"):
                return Known(compute(a, b))
        except Exception as error:
            self.frame.fail(node, f"{sign} of {described(a)} and {described(b)}: {error}")

    def _comparison(self, node: ast.Compare) -> Value:
        if len(node.ops) != 1:
            self.frame.fail(node, "a chain of comparisons as a value", "multiply two comparisons")
        left, right = self.evaluate(node.left), self.evaluate(node.comparators[0])
        self.frame.at(node)
        kind = type(node.ops[0])
        if kind not in COMPARISONS:
            if isinstance(left, Known) and isinstance(right, Known) and kind in (ast.Is, ast.IsNot):
                return Known((left.value is right.value) == (kind is ast.Is))
            self.frame.fail(node, f"{SIGNS[kind]} is not a comparison of numbers")
        sign, compute = COMPARISONS[kind]
        if isinstance(left, Known) and isinstance(right, Known):
            return self.fold(node, sign, compute, left.value, right.value)
        return self.frame.arithmetic.compare(sign, self.real(left, node), self.real(right, node))


def _shifted(sign: str, left: Known | LoopVariable, right: Known | LoopVariable) -> Value | None:
    """A loop variable plus, minus or times a constant is one again."""
    def number(value: Value) -> bool:
        return isinstance(value, Known) and isinstance(value.value, int | np.integer) and not isinstance(value.value, bool)

    if isinstance(left, LoopVariable) and isinstance(right, Known) and number(right):
        if sign in "+-":
            return LoopVariable(left.loop, left.first + (right.value if sign == "+" else -right.value), left.step)
        if sign == "*":
            return LoopVariable(left.loop, left.first * right.value, left.step * right.value)
    if isinstance(right, LoopVariable) and isinstance(left, Known) and number(left):
        if sign == "+":
            return LoopVariable(right.loop, right.first + left.value, right.step)
        if sign == "-":
            return LoopVariable(right.loop, left.value - right.first, -right.step)
        if sign == "*":
            return LoopVariable(right.loop, right.first * left.value, right.step * left.value)
    return None


def described(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of the shape {value.shape}"
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"


_INSTEAD: Mapping[type, str] = {
    ast.Lambda: "write a function with def, under @pc.program", ast.ListComp: "write a for loop",
    ast.GeneratorExp: "write a for loop", ast.Dict: "use one variable for each item",
    ast.BoolOp: "use it in the condition of if or while", ast.NamedExpr: "write the assignment on a line of its own",
    ast.JoinedStr: "text is not in the subset of arrays",
}
