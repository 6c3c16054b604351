"""Conditions of if and while: comparisons of scalars, and, or, not.

A branch of the machine looks at an integer. A comparison of integers is a difference; it is exact. A comparison of
real numbers goes through `positive`, a step that is 0 up to a small number and 1 from twice that on: a difference in
between is refused.
"""

from __future__ import annotations

import ast

import numpy as np

from punchcard.python.arrays.arithmetic import Arithmetic
from punchcard.python.arrays.expressions import ArrayExpressions
from punchcard.python.arrays.ir import Compound, Condition, Const, Negation, Statement, Test
from punchcard.python.arrays.values import ArrayValue, Known, LoopVariable, shown
from punchcard.python.constructs import COMPARISONS


class ArrayConditions:
    """Conditions of one function."""

    def __init__(self, expressions: ArrayExpressions) -> None:
        self.expressions, self.frame = expressions, expressions.frame

    def compile(self, node: ast.expr, *, first: bool = True) -> Condition | bool:
        """A condition, or what it is known to be when the function is compiled.

        The `first` comparison is made in any case, so what it computes is written before the branch, and is known after it.
        """
        if isinstance(node, ast.BoolOp):
            return self._joined(node, first=first)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.compile(node.operand, first=first)
            return not inner if isinstance(inner, bool) else Negation(inner)
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            return self._chain(node, first=first)
        work: list[Statement] = []
        if first:
            return self._simple(node, work)
        with self.frame.builder.scope(work, certain=False):
            return self._simple(node, work)

    def _joined(self, node: ast.BoolOp, *, first: bool) -> Condition | bool:
        """and, or: what is known already decides, or drops out."""
        any_of = isinstance(node.op, ast.Or)
        parts: list[Condition] = []
        for value in node.values:
            part = self.compile(value, first=first)
            first = False
            if part is any_of:
                if not parts:
                    return any_of
                parts.append(Test([], Const.of(float(any_of)), self.frame.line(value)))
                break
            if not isinstance(part, bool):
                parts.append(part)
        return parts[0] if len(parts) == 1 else Compound(parts, any_of) if parts else not any_of

    def _chain(self, node: ast.Compare, *, first: bool) -> Condition | bool:
        """a < b < c is a < b and b < c."""
        sides = [node.left, *node.comparators]
        pairs = [ast.copy_location(ast.Compare(sides[i], [op], [sides[i + 1]]), node) for i, op in enumerate(node.ops)]
        return self._joined(ast.copy_location(ast.BoolOp(ast.And(), list(pairs)), node), first=first)

    def _simple(self, node: ast.expr, work: list[Statement]) -> Condition | bool:
        if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
            left, right = self.expressions.evaluate(node.left), self.expressions.evaluate(node.comparators[0])
            sign, compute = COMPARISONS[type(node.ops[0])]
            if isinstance(left, Known) and isinstance(right, Known):
                return self._truth(self.expressions.fold(node, sign, compute, left.value, right.value), node)
            sides = [self._scalar(value, node) for value in (left, right)]
            self.frame.at(node)
            return self._compared(node, sign, sides[0], sides[1], work)
        value = self.expressions.evaluate(node)
        if isinstance(value, Known):
            return self._truth(value, node)
        scalar = self._scalar(value, node)
        if scalar.boolean:
            return Test(work, scalar.operand, self.frame.line(node))
        return self._compared(node, "!=", scalar, ArrayValue(Const.of(0.0), ()), work)

    def _truth(self, value: object, node: ast.AST) -> bool:
        try:
            return bool(getattr(value, "value", value))
        except ValueError:
            self.frame.fail(node, "a condition of an array: it must be a scalar")

    def _scalar(self, value: Known | ArrayValue | LoopVariable | object, node: ast.AST) -> ArrayValue:
        real = self.expressions.real(value, node)  # type: ignore[arg-type]
        if int(np.prod(real.shape)) != 1:
            self.frame.fail(node, f"a condition of an array, {shown(real.shape)}: it must be a scalar",
                            "use np.where, sum or norm")
        return ArrayValue(real.operand, (), kinds=real.kinds)

    def _compared(self, node: ast.AST, sign: str, a: ArrayValue, b: ArrayValue, work: list[Statement]) -> Condition:
        arithmetic, line = self.frame.arithmetic, self.frame.line(node)

        def test(flag: ArrayValue) -> Condition:
            return Test(work, flag.operand, line)

        if a.operand.integral and b.operand.integral:
            if sign in ("==", "!="):
                more, less = self._above(a, b, node), self._above(b, a, node)
                return Compound([more, less], any=True) if sign == "!=" else Negation(Compound([more, less], any=True))
            first, second = (a, b) if sign in (">", ">=") else (b, a)
            if sign in (">=", "<="):  # a >= b is a + 1 > b; the constant is added to a constant where there is one
                one = ArrayValue(Const.of(1.0), ())
                if isinstance(second.operand, Const):
                    second = arithmetic.sub(second, one)
                else:
                    first = arithmetic.add(first, one)
            return test(_difference(arithmetic, first, second))
        if sign in ("==", "!="):
            self.frame.fail(node, f"{sign} of real numbers: the machine computes them with errors",
                            "write np.abs(a - b) < 1e-6")
        first, second = (a, b) if sign in (">", "<=") else (b, a)
        found = test(arithmetic.positive(_difference(arithmetic, first, second)))
        return found if sign in (">", "<") else Negation(found)

    def _above(self, a: ArrayValue, b: ArrayValue, node: ast.AST) -> Condition:
        work: list[Statement] = []
        with self.frame.builder.scope(work, certain=False):
            flag = _difference(self.frame.arithmetic, a, b)
        return Test(work, flag.operand, self.frame.line(node))


def _difference(arithmetic: Arithmetic, a: ArrayValue, b: ArrayValue) -> ArrayValue:
    return arithmetic.elementwise("sub", ArrayValue(a.operand, ()), ArrayValue(b.operand, ()), "-")
