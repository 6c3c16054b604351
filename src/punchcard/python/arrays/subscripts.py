"""Subscripts: parts of arrays and items of tuples."""

from __future__ import annotations

import ast
from dataclasses import replace

import numpy as np

from punchcard.python.arrays import indexing
from punchcard.python.arrays.expressions import ArrayExpressions, described
from punchcard.python.arrays.values import ArrayValue, Known, LoopVariable, NeedsConstant, TupleValue, Value, shown


class Subscripts:
    """Parts of arrays in expressions, and where they are."""

    def __init__(self, expressions: ArrayExpressions) -> None:
        self.expressions, self.frame = expressions, expressions.frame
        expressions.handlers[ast.Subscript] = self._subscript

    def _subscript(self, node: ast.Subscript) -> Value:
        value = self.expressions.evaluate(node.value)
        if isinstance(value, TupleValue) or (isinstance(value, Known) and isinstance(value.value, tuple | str)):
            return self._item(node, value)
        real = self.expressions.real(value, node)
        turned = self._new_axis(node, real)
        if turned is not None:
            return turned
        places = self.places(node, real)
        self.frame.at(node)
        found = indexing.get(self.frame.arithmetic, real, places)
        return ArrayValue(found.operand, found.shape, real.buffers if found.shape else frozenset(), real.kinds)

    def _new_axis(self, node: ast.Subscript, real: ArrayValue) -> ArrayValue | None:
        """x[:, None] and x[None, :] of a vector: a matrix of one column or of one row."""
        if not isinstance(node.slice, ast.Tuple) or len(node.slice.elts) != 2 or len(real.shape) != 1:
            return None
        new = [isinstance(part, ast.Constant) and part.value is None for part in node.slice.elts]
        whole = [isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None for part in node.slice.elts]
        if new == [False, True] and whole[0]:
            return replace(real, shape=(real.shape[0], 1))
        turned = replace(real, operand=real.operand.flip, shape=(1, real.shape[0]))
        return turned if new == [True, False] and whole[1] else None

    def _item(self, node: ast.Subscript, value: TupleValue | Known) -> Value:
        index = self.expressions.evaluate(node.slice)
        if isinstance(index, LoopVariable):
            raise NeedsConstant(index.loop, "an index of a tuple")
        if not isinstance(index, Known):
            self.frame.fail(node, "a computed index of a tuple")
        try:
            if isinstance(value, TupleValue):
                found = value.items[index.value]
                return TupleValue(found) if isinstance(found, tuple) else found
            return Known(value.value[index.value])
        except (IndexError, TypeError) as error:
            self.frame.fail(node, str(error))

    def places(self, node: ast.Subscript, real: ArrayValue) -> list[indexing.Place]:
        """Where the indices in brackets lead; what is left out means all."""
        if real.is_scalar:
            self.frame.fail(node, "an index of a scalar")
        given = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(given) > len(real.shape):
            self.frame.fail(node, f"{len(given)} indices of an array of {shown(real.shape)}")
        found = [indexing.place(self._index(part), length, axis)
                 for axis, (part, length) in enumerate(zip(given, real.shape, strict=False))]
        return found + [indexing.Span(tuple(range(length))) for length in real.shape[len(given):]]

    def _index(self, node: ast.expr) -> Value:
        if not isinstance(node, ast.Slice):
            value = self.expressions.evaluate(node)
            if isinstance(value, Known) and not isinstance(value.value, int | np.integer | slice):
                self.frame.fail(node, f"an index that is {described(value.value)}",
                                "write x[:, None] as np.outer or as a matrix of one column" if value.value is None else "")
            return value
        ends = []
        for part in (node.lower, node.upper, node.step):
            value = Known(None) if part is None else self.expressions.evaluate(part)
            if isinstance(value, LoopVariable):
                raise NeedsConstant(value.loop, "a slice")
            if not isinstance(value, Known) or not isinstance(value.value, int | np.integer | None):
                self.frame.fail(node, "a slice with a computed end", "use constants, or a mask with np.where")
            ends.append(value.value)
        return Known(slice(*ends))
