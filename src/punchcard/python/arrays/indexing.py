"""Subscripts: items of tuples, and parts of arrays, read and written: columns, rows, entries and slices.

An index is a constant, or a loop variable, which moves a pointer on. Slices have constant ends.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from punchcard.python.arrays.arithmetic import Arithmetic
from punchcard.python.arrays.frame import Frame, Handlers, described
from punchcard.python.arrays.ir import Const, Index, Operand, Pointer
from punchcard.python.arrays.values import (
    ArrayValue,
    Known,
    LoopVariable,
    NeedsConstant,
    Shape,
    TupleValue,
    Value,
    dims,
    filled,
    matrix_shape,
)
from punchcard.python.limits import Refusal


@dataclass(frozen=True)
class Span:
    """A slice with constant ends, as the numbers of the rows or columns that it takes."""

    numbers: tuple[int, ...]

    @classmethod
    def all(cls, length: int) -> Span:
        return cls(tuple(range(length)))


Place: TypeAlias = Index | Span


# Subscripts


def _subscript(frame: Frame, node: ast.Subscript) -> Value:
    value = frame.evaluate(node.value)
    if isinstance(value, TupleValue) or (isinstance(value, Known) and isinstance(value.value, tuple | str)):
        return _item(frame, node, value)
    real = frame.real(value, node)
    turned = _new_axis(node, real)
    if turned is not None:
        return turned
    found = places(frame, node, real)
    return get(frame.at(node), real, found)


HANDLERS: Handlers = {ast.Subscript: _subscript}


def _new_axis(node: ast.Subscript, real: ArrayValue) -> ArrayValue | None:
    """x[:, None] and x[None, :] of a vector: a matrix of one column or of one row."""
    if not isinstance(node.slice, ast.Tuple) or len(node.slice.elts) != 2 or len(real.shape) != 1:
        return None
    new = [isinstance(part, ast.Constant) and part.value is None for part in node.slice.elts]
    whole = [isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None for part in node.slice.elts]
    if new == [False, True] and whole[0]:
        return replace(real, shape=(real.shape[0], 1))
    turned = replace(real, operand=real.operand.flip, shape=(1, real.shape[0]))
    return turned if new == [True, False] and whole[1] else None


def _item(frame: Frame, node: ast.Subscript, value: TupleValue | Known) -> Value:
    index = frame.evaluate(node.slice)
    if isinstance(index, LoopVariable):
        raise NeedsConstant(index.loop, "an index of a tuple")
    if not isinstance(index, Known):
        frame.fail(node, "a computed index of a tuple")
    try:
        if isinstance(value, TupleValue):
            found = value.items[index.value]
            return TupleValue(found) if isinstance(found, tuple) else found
        return Known(frame.limits.known(value.value[index.value]))
    except (IndexError, TypeError, ValueError) as error:
        frame.fail(node, str(error))


def places(frame: Frame, node: ast.Subscript, real: ArrayValue) -> list[Place]:
    """Where the indices in brackets lead; what is left out means all."""
    if real.is_scalar:
        frame.fail(node, "an index of a scalar")
    given = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if len(given) > len(real.shape):
        frame.fail(node, f"{len(given)} indices of an array of {dims(real.shape)}")
    found = [place(_index(frame, part), length, axis)
             for axis, (part, length) in enumerate(zip(given, real.shape, strict=False))]
    return found + [Span.all(length) for length in real.shape[len(given):]]


def _index(frame: Frame, node: ast.expr) -> Value:
    if not isinstance(node, ast.Slice):
        value = frame.evaluate(node)
        if isinstance(value, Known) and not isinstance(value.value, int | np.integer | slice):
            frame.fail(node, f"an index that is {described(value.value)}",
                       "write x[:, None] as np.outer or as a matrix of one column" if value.value is None else "")
        return value
    ends = []
    for part in (node.lower, node.upper, node.step):
        value = Known(None) if part is None else frame.evaluate(part)
        if isinstance(value, LoopVariable):
            raise NeedsConstant(value.loop, "a slice")
        if not isinstance(value, Known) or not isinstance(value.value, int | np.integer | None):
            frame.fail(node, "a slice with a computed end", "use constants, or a mask with np.where")
        ends.append(value.value)
    if ends[2] == 0:
        frame.fail(node, "a slice with the step 0", "use 1 or -1")
    return Known(slice(*ends))


def place(value: Value, length: int, axis: int) -> Place:
    """Where an index leads, along an axis of that length."""
    if isinstance(value, Known) and isinstance(value.value, slice):
        return Span(tuple(range(*value.value.indices(length))))
    if isinstance(value, Known) and isinstance(value.value, int | np.integer) and not isinstance(value.value, bool):
        number = int(value.value)
        if not -length <= number < length:
            raise Refusal(f"index {number} of axis {axis}, which has {length} entries: they are counted from 0")
        return number % length
    if not isinstance(value, LoopVariable):
        raise Refusal("an index that is computed", "use a constant or the variable of a for loop over range(...)")
    if value.step != 1 or value.first < 0:
        raise NeedsConstant(value.loop, "an index that does not go up by 1 from 0 or more")
    count = value.loop.count
    if isinstance(count, int) and value.first + count > length:
        raise Refusal(f"index {value.first + count - 1} of axis {axis}, which has {length} entries: the loop goes that far")
    return Pointer(value.loop, value.first)


# Parts


def get(arithmetic: Arithmetic, a: ArrayValue, places: Sequence[Place]) -> ArrayValue:
    """a[places]. It shares its entries with a, unless it is a number."""
    found = _part(arithmetic, a, places)
    return ArrayValue(found.operand, found.shape, a.buffers if found.shape else frozenset(), a.kinds)


def _part(arithmetic: Arithmetic, a: ArrayValue, places: Sequence[Place]) -> ArrayValue:
    """A row or column where there is an index, and what is wanted of that; spans by products with a selection."""
    for axis, index in enumerate(places):
        if not isinstance(index, Span):
            shape = a.shape[:axis] + a.shape[axis + 1 :]
            line = arithmetic.column(a.operand if axis else a.operand.flip, index, shape)
            if not shape:
                return line
            other = places[1 - axis]
            if isinstance(other, Span):
                return _part(arithmetic, line, [other])
            return arithmetic.matmul(_unit(arithmetic, other, shape[0]), line)
    operand = a.operand
    for axis, (span, length) in reversed(list(enumerate(zip(places, a.shape, strict=True)))):
        if span != Span.all(length):
            operand = _along(arithmetic, axis, _selection(arithmetic, span, length).flip, operand)
    return ArrayValue(operand, (operand.rows, operand.columns)[: len(a.shape)])


def put(arithmetic: Arithmetic, a: ArrayValue, places: Sequence[Place], value: ArrayValue) -> ArrayValue:
    """The array after a[places] = value."""
    for axis, index in enumerate(places):
        if not isinstance(index, Span):
            shape, lines = a.shape[:axis] + a.shape[axis + 1 :], a.operand if axis else a.operand.flip
            if shape and places[1 - axis] != Span.all(shape[0]):
                value = _changed(arithmetic, arithmetic.column(lines, index, shape), places[1 - axis], value)
            changed = arithmetic.updated(lines, index, _fitting(arithmetic, value, shape))
            return ArrayValue(changed if axis else changed.flip, a.shape)
    if all(span == Span.all(length) for span, length in zip(places, a.shape, strict=True)):
        return ArrayValue(_fitting(arithmetic, value, a.shape), a.shape)
    chosen = [_selection(arithmetic, span, length) for span, length in zip(places, a.shape, strict=True)]
    placed = _fitting(arithmetic, value, tuple(each.columns for each in chosen))
    for axis, each in enumerate(chosen):
        placed = _along(arithmetic, axis, each, placed)
    mask = np.ones(a.shape)  # takes out what was there
    mask[np.ix_(*(span.numbers for span in places if isinstance(span, Span)))] = 0.0
    kept = arithmetic.elementwise("hadamard", a, ArrayValue(Const.of(mask), a.shape), "*")
    return arithmetic.add(kept, ArrayValue(placed, a.shape))


def _changed(arithmetic: Arithmetic, line: ArrayValue, position: Place, value: ArrayValue) -> ArrayValue:
    """A vector with other entries at a position: what is there is taken out, and the value put in."""
    if isinstance(position, Span):
        return put(arithmetic, line, [position], value)
    here = _unit(arithmetic, position, line.shape[0])
    others = arithmetic.elementwise("sub", filled(1.0, line.shape), here, "-")
    kept = arithmetic.elementwise("hadamard", line, others, "*")
    return arithmetic.add(kept, arithmetic.scaled(_fitting(arithmetic, value, ()), here))


def _along(arithmetic: Arithmetic, axis: int, matrix: Const, operand: Operand) -> Operand:
    """The product of a matrix with all columns (axis 0) or all rows (axis 1)."""
    left, right = (operand, matrix.flip) if axis else (matrix, operand)
    return arithmetic.builder.emit("matmul", (left, right), left.rows, right.columns, arithmetic.line)


def _selection(arithmetic: Arithmetic, span: Place, length: int) -> Const:
    """The columns of the identity that a span takes."""
    if not isinstance(span, Span) or not span.numbers:
        raise Refusal("a slice without entries")
    return arithmetic.identity(length, span.numbers)


def _unit(arithmetic: Arithmetic, index: Index, length: int) -> ArrayValue:
    """The vector with 1 at an index, 0 elsewhere."""
    return arithmetic.column(arithmetic.identity(length), index, (length,))


def _fitting(arithmetic: Arithmetic, value: ArrayValue, shape: Shape) -> Operand:
    """A value that is written to a part of that shape."""
    try:
        fits = np.broadcast_shapes(value.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise Refusal(f"{dims(value.shape)} does not fit into the part that is written, {dims(shape)}")
    operand = arithmetic.spread(value, shape)
    assert (operand.rows, operand.columns) == matrix_shape(shape)
    return operand
