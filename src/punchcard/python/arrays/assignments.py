"""Assignments: to names, to tuples of them, and to parts of arrays, which are changed in place.

Where NumPy has two names for one array, or would cut off what is stored, the assignment is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

import numpy as np

from punchcard.python.arrays import indexing
from punchcard.python.arrays.dtypes import keeps, least
from punchcard.python.arrays.expressions import ArrayExpressions
from punchcard.python.arrays.subscripts import Subscripts
from punchcard.python.arrays.values import ArrayValue, Known, TupleValue, Value, shown

_BUFFERS = count(1)


class Assignments:
    """The assignments of one function; `handlers` are those of their statements."""

    def __init__(self, expressions: ArrayExpressions, subscripts: Subscripts) -> None:
        self.expressions, self.subscripts, self.frame = expressions, subscripts, expressions.frame
        self.handlers: dict[type[ast.stmt], Callable[..., None]] = {
            ast.Expr: self._expression, ast.Pass: self._pass, ast.Assign: self._assign, ast.AnnAssign: self._annotated,
            ast.AugAssign: self._augmented}

    def _expression(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name) and node.value.func.id == "print":
                self.frame.fail(node, "print in a function of arrays: the FLEQ machine has no output", "return the value")
            self.expressions.evaluate(node.value)

    def _pass(self, node: ast.Pass) -> None:
        pass

    def _assign(self, node: ast.Assign) -> None:
        value = self.owned(self.expressions.evaluate(node.value))  # x = y = ... is one array
        for target in node.targets:
            self.assign(target, value)

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            self.frame.fail(node, "a variable without a value", "assign one")
        self.assign(node.target, self.expressions.evaluate(node.value))

    def assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.frame.env[target.id] = self.owned(value)
        elif isinstance(target, ast.Tuple | ast.List):
            items = self._items(target, value, len(target.elts))
            for at, (part, item) in enumerate(zip(target.elts, items, strict=True)):
                self._not_seen_by(part, items[at + 1 :])
                self.assign(part, item)
        elif isinstance(target, ast.Subscript):
            self._put(target, self.expressions.real(value, target))
        else:
            self.frame.fail(target, f"assignment to {ast.unparse(target)}", "assign to a name, or to a part of an array")

    def _not_seen_by(self, target: ast.expr, items: Sequence[Value]) -> None:
        """Refuse A[0], A[1] = A[1], A[0]: in NumPy these are views, so the second one sees what the first one stored."""
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            held = self.frame.env.get(target.value.id)
            if isinstance(held, ArrayValue) and any(
                    isinstance(item, ArrayValue) and item.shape and item.buffers & held.buffers for item in items):
                self.frame.fail(target,
                                f"{target.value.id!r} is changed here, and a value that is assigned next is a part of it",
                                "write .copy() behind that value")

    def owned(self, value: Value) -> Value:
        """An array that has a name is an array of its own, as long as it is not a part or a view of another."""
        if isinstance(value, ArrayValue) and value.shape and not value.buffers:
            return replace(value, buffers=frozenset([-next(_BUFFERS)]))
        return value

    def _items(self, node: ast.expr, value: Value, wanted: int) -> list[Value]:
        if isinstance(value, Known) and isinstance(value.value, tuple):
            value = TupleValue(tuple(Known(item) for item in value.value))
        if isinstance(value, TupleValue):
            items = list(value.items)
        else:
            real = self.expressions.real(value, node)
            if real.is_scalar:
                self.frame.fail(node, "a scalar on the right, several variables on the left")
            items = [self.row(real, Known(i)) for i in range(real.shape[0])]
        if len(items) != wanted:
            self.frame.fail(node, f"{len(items)} values for {wanted} variables")
        return items

    def row(self, real: ArrayValue, index: Value) -> Value:
        """An item of an array, as iterating over it gives."""
        places = [indexing.place(index, real.shape[0], 0), *(indexing.Span(tuple(range(n))) for n in real.shape[1:])]
        found = indexing.get(self.frame.arithmetic, real, places)
        return ArrayValue(found.operand, found.shape, real.buffers if found.shape else frozenset(), real.kinds)

    def _augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            old = self.expressions.evaluate(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            new = self.expressions.combine(node, type(node.op), old, self.expressions.evaluate(node.value))
            if isinstance(old, ArrayValue) and old.shape:
                self._alone(node, target.id, old)
                made = self.expressions.real(new, node)
                if made.shape != old.shape:
                    self.frame.fail(node, f"{target.id} has {shown(old.shape)}, and the result {shown(made.shape)}: an "
                                    "array that is changed in place keeps its shape", f"write {target.id} = {target.id} ...")
                self._check_kinds(node, target.id, old, made)
                new = ArrayValue(made.operand, made.shape, old.buffers, old.kinds)
            elif isinstance(old, Known) and isinstance(old.value, np.ndarray):
                self.frame.fail(node, f"{target.id} is an array from outside the function, which would be changed in place",
                                f"write {target.id} = {target.id} ...")
            self.frame.env[target.id] = self.owned(new)
        elif isinstance(target, ast.Subscript):
            reading = ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
            old = self.expressions.evaluate(reading)
            new = self.expressions.combine(node, type(node.op), old, self.expressions.evaluate(node.value))
            self._put(target, self.expressions.real(new, node))
        else:
            self.frame.fail(node, f"assignment to {ast.unparse(target)}")

    def _put(self, target: ast.Subscript, value: ArrayValue) -> None:
        """A part of an array gets other values."""
        if not isinstance(target.value, ast.Name) or target.value.id not in self.frame.env:
            self.frame.fail(target, "a part of something that is not a variable of the function",
                            "write X[i, j] = ..., not X[i][j]")
        name = target.value.id
        if isinstance(self.frame.env[name], Known):
            self.frame.fail(target, f"{name!r} is an array from outside the function, which would be changed in place",
                            f"write {name} = ....copy() first")
        real = self.expressions.real(self.frame.env[name], target)
        self._alone(target, name, real)
        self._check_kinds(target, name, real, value)
        places = self.subscripts.places(target, real)
        self.frame.at(target)
        new = indexing.put(self.frame.arithmetic, real, places, ArrayValue(value.operand, value.shape))
        self.frame.env[name] = ArrayValue(new.operand, real.shape, real.buffers, real.kinds)

    def _check_kinds(self, node: ast.AST, name: str, old: ArrayValue, new: ArrayValue) -> None:
        """Refuse to store what NumPy would cut off, or refuse, in an array of integers or comparisons."""
        if not keeps(old.kinds, new.kinds):
            be = "is" if len(old.kinds) == 1 else "may be"
            self.frame.fail(node, f"{name!r} {be} an array of {least(old.kinds)}, which does not keep what is stored here",
                            f"write {name} = 1.0 * {name} first")

    def _alone(self, node: ast.AST, name: str, value: ArrayValue) -> None:
        """Refuse to change an array that has a second name: NumPy would change both."""
        for frame in self.frame.frames:
            for other, held in frame.items():
                same = frame is self.frame.env and other == name
                if not same and isinstance(held, ArrayValue) and held.shape and held.buffers & value.buffers:
                    self.frame.fail(node, f"{name!r} is changed in place, and {other!r} is the same array or a part of it",
                                    f"write {other} = ....copy() where it is made")
