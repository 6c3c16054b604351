"""Reading and writing parts of arrays: columns, rows, entries and slices, by constants and by loop variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from punchcard.python.arrays.arithmetic import Arithmetic, matrix_shape
from punchcard.python.arrays.ir import Const, Index, Operand, Pointer
from punchcard.python.arrays.values import ArrayValue, Known, LoopVariable, NeedsConstant, Refusal, Shape, Value, shown


@dataclass(frozen=True)
class Span:
    """A slice with constant ends, as the numbers of the rows or columns that it takes."""

    numbers: tuple[int, ...]


Place: TypeAlias = Index | Span


def place(value: Value, length: int, axis: int) -> Place:
    """Where an index leads, along an axis of that length."""
    if isinstance(value, Known) and isinstance(value.value, slice):
        return Span(tuple(range(*value.value.indices(length))))
    if isinstance(value, Known) and isinstance(value.value, int | np.integer) and not isinstance(value.value, bool):
        number = int(value.value)
        if not -length <= number < length:
            raise Refusal(f"index {number} of axis {axis}, which has {length} entries: they are counted from 0")
        return number % length
    if isinstance(value, LoopVariable):
        return _counted(value, length, axis)
    raise Refusal("an index that is computed", "use a constant or the variable of a for loop over range(...)")


def _counted(value: LoopVariable, length: int, axis: int) -> Place:
    if value.step != 1 or value.first < 0:
        raise NeedsConstant(value.loop, "an index that does not go up by 1 from 0 or more")
    count = value.loop.count
    if isinstance(count, int) and value.first + count > length:
        raise Refusal(f"index {value.first + count - 1} of axis {axis}, which has {length} entries: the loop goes that far")
    return Pointer(value.loop, value.first)


def whole(span: Place, length: int) -> bool:
    return isinstance(span, Span) and span.numbers == tuple(range(length))


def selection(span: Span, length: int) -> Const:
    """A matrix that takes the columns of a span from one of so many columns."""
    return Const.of(np.eye(length)[:, list(span.numbers)])


def unit(index: Index, length: int, arithmetic: Arithmetic) -> ArrayValue:
    """The vector with 1 at an index, 0 elsewhere."""
    return arithmetic.column(Const.of(np.eye(length)), index, (length,))


def get(arithmetic: Arithmetic, a: ArrayValue, places: list[Place]) -> ArrayValue:
    """a[places]."""
    if len(a.shape) == 1:
        (only,) = places
        if isinstance(only, Span):
            if whole(only, a.shape[0]):
                return a
            return _selected(arithmetic, a, only)
        return arithmetic.column(a.operand.flip, only, ())
    row, column = places
    if isinstance(row, Span) and isinstance(column, Span):
        found = a.operand
        if not whole(column, a.shape[1]):
            chosen = selection(column, a.shape[1])
            found = arithmetic.builder.emit("matmul", (found, chosen), found.rows, chosen.columns, arithmetic.line)
        if not whole(row, a.shape[0]):
            chosen = selection(row, a.shape[0])
            found = arithmetic.builder.emit("matmul", (chosen.flip, found), chosen.columns, found.columns, arithmetic.line)
        return ArrayValue(found, (found.rows, found.columns), a.buffers)
    if isinstance(row, Span) and not isinstance(column, Span):
        return get(arithmetic, ArrayValue(arithmetic.column(a.operand, column, a.shape[:1]).operand, a.shape[:1], a.buffers),
                   [row])
    if not isinstance(row, Span):
        whole_row = arithmetic.column(a.operand.flip, row, a.shape[1:])
        line = ArrayValue(whole_row.operand, a.shape[1:], a.buffers)
        if isinstance(column, Span):
            return get(arithmetic, line, [column])
        return arithmetic.matmul(unit(column, a.shape[1], arithmetic), line)
    raise AssertionError("all kinds of places are handled")


def _selected(arithmetic: Arithmetic, a: ArrayValue, span: Span) -> ArrayValue:
    if not span.numbers:
        raise Refusal("a slice without entries")
    chosen = selection(span, a.shape[0])
    found = arithmetic.matmul(ArrayValue(chosen.flip, (chosen.columns, chosen.rows)), a)
    return ArrayValue(found.operand, found.shape, a.buffers)


def put(arithmetic: Arithmetic, a: ArrayValue, places: list[Place], value: ArrayValue) -> ArrayValue:
    """The array after a[places] = value."""
    if len(a.shape) == 1:
        (only,) = places
        if isinstance(only, Span):
            return _replaced(arithmetic, a, [only], value)
        return ArrayValue(arithmetic.updated(a.operand.flip, only, _fitting(arithmetic, value, ())).flip, a.shape)
    row, column = places
    if isinstance(row, Span) and whole(row, a.shape[0]) and not isinstance(column, Span):
        return ArrayValue(arithmetic.updated(a.operand, column, _fitting(arithmetic, value, a.shape[:1])), a.shape)
    if isinstance(column, Span) and whole(column, a.shape[1]) and not isinstance(row, Span):
        return ArrayValue(arithmetic.updated(a.operand.flip, row, _fitting(arithmetic, value, a.shape[1:])).flip, a.shape)
    if not isinstance(row, Span):
        line = get(arithmetic, a, [row, Span(tuple(range(a.shape[1])))])
        changed = _entry(arithmetic, line, column, value)
        return put(arithmetic, a, [row, Span(tuple(range(a.shape[1])))], changed)
    if not isinstance(column, Span):
        line = get(arithmetic, a, [Span(tuple(range(a.shape[0]))), column])
        changed = _entry(arithmetic, line, row, value)
        return put(arithmetic, a, [Span(tuple(range(a.shape[0]))), column], changed)
    return _replaced(arithmetic, a, [row, column], value)


def _entry(arithmetic: Arithmetic, line: ArrayValue, position: Place, value: ArrayValue) -> ArrayValue:
    """A vector with other entries at a position: what is there is taken out, and the value put in."""
    if isinstance(position, Span):
        return _replaced(arithmetic, line, [position], value)
    here = unit(position, line.shape[0], arithmetic)
    ones = ArrayValue(Const.of(np.ones(line.shape)), line.shape)
    kept = arithmetic.elementwise("hadamard", line, arithmetic.elementwise("sub", ones, here, "-"), "*")
    scalar = ArrayValue(_fitting(arithmetic, value, ()), ())
    return arithmetic.add(kept, arithmetic.scaled(scalar.operand, here))


def _replaced(arithmetic: Arithmetic, a: ArrayValue, spans: list[Place], value: ArrayValue) -> ArrayValue:
    """Constant spans of an array: a mask takes out what was there."""
    numbers = [list(span.numbers) for span in spans if isinstance(span, Span)]
    shape = tuple(len(n) for n in numbers)
    if 0 in shape:
        raise Refusal("a slice without entries")
    mask = np.ones(a.shape)
    mask[np.ix_(*numbers)] = 0.0
    if all(whole(span, length) for span, length in zip(spans, a.shape, strict=True)):
        return ArrayValue(_fitting(arithmetic, value, a.shape), a.shape)
    new = _fitting(arithmetic, value, shape)
    placed = new
    for axis, n in enumerate(numbers):
        chosen = Const.of(np.eye(a.shape[axis])[:, n])
        operands: tuple[Operand, ...] = (chosen, placed) if axis == 0 else (placed, chosen.flip)
        placed = arithmetic.builder.emit("matmul", operands, operands[0].rows, operands[1].columns, arithmetic.line)
    kept = arithmetic.elementwise("hadamard", a, ArrayValue(Const.of(mask), a.shape), "*")
    return arithmetic.add(kept, ArrayValue(placed, a.shape))


def _fitting(arithmetic: Arithmetic, value: ArrayValue, shape: Shape) -> Operand:
    """A value that is written to a part of that shape."""
    try:
        fits = np.broadcast_shapes(value.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise Refusal(f"{shown(value.shape)} does not fit into the part that is written, {shown(shape)}")
    operand = arithmetic.spread(value, shape)
    assert (operand.rows, operand.columns) == matrix_shape(shape)
    return operand
