"""Arithmetic of arrays as NumPy has it: shapes, broadcasting, and the operations of the intermediate form for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from punchcard.python.arrays.ir import Const, Index, Operand, Pointer, SourcePlace
from punchcard.python.arrays.operation_builder import OperationBuilder
from punchcard.python.arrays.values import (
    REAL,
    TRUTH,
    WHOLE,
    ArrayValue,
    Kinds,
    Shape,
    counted,
    dims,
    filled,
    matrix_shape,
    promoted,
)
from punchcard.python.limits import Refusal

MOST_POWER = 16


class Arithmetic:
    """Operations on values, at a line of the source."""

    def __init__(self, builder: OperationBuilder) -> None:
        self.builder = builder
        self.line: SourcePlace

    def _emit(self, function: str, operands: tuple[Operand, ...], shape: Shape, kinds: Kinds = REAL) -> ArrayValue:
        return ArrayValue(self.builder.emit(function, operands, *matrix_shape(shape), self.line), shape, kinds=kinds)

    # Broadcasting

    def spread(self, a: ArrayValue, shape: Shape) -> Operand:
        """The operand as a matrix of the whole shape; one row, one column or one number is repeated."""
        operand = a.operand.flip if len(a.shape) == 1 and len(shape) == 2 else a.operand
        rows, columns = matrix_shape(shape)
        if (operand.rows, operand.columns) == (rows, columns):
            return operand
        self.builder.limits.make(rows * columns, "an array")
        if isinstance(operand, Const):
            return Const.of(np.broadcast_to(operand.value, (rows, columns)))
        if operand.rows == operand.columns == 1:
            return self.builder.emit("scale", (operand, Const.of(np.ones((rows, columns)))), rows, columns, self.line)
        if operand.rows == 1:
            operands: tuple[Operand, ...] = (Const.of(np.ones((rows, 1))), operand)
        else:
            operands = (operand, Const.of(np.ones((1, columns))))
        return self.builder.emit("matmul", operands, rows, columns, self.line)

    def elementwise(self, function: str, a: ArrayValue, b: ArrayValue, sign: str) -> ArrayValue:
        shape = together(a, b, sign)
        return self._emit(function, (self.spread(a, shape), self.spread(b, shape)), shape, promoted(a.kinds, b.kinds))

    def entrywise(self, function: str, a: ArrayValue) -> ArrayValue:
        """A function of every entry."""
        return self._emit(function, (a.operand,), a.shape, a.kinds if function == "abs" else REAL)

    # Operators

    def add(self, a: ArrayValue, b: ArrayValue) -> ArrayValue:
        _no_masks("+", a, b)
        return self.elementwise("add", a, b, "+")

    def sub(self, a: ArrayValue, b: ArrayValue) -> ArrayValue:
        _no_masks("-", a, b)
        return self.elementwise("sub", a, b, "-")

    def negative(self, a: ArrayValue) -> ArrayValue:
        if a.kinds & TRUTH:
            raise Refusal("- of a comparison: NumPy has no minus for True and False", "write 0.0 - (...) * 1.0")
        return self._emit("sub", (filled(0.0, a.shape).operand, a.operand), a.shape, a.kinds)

    def mul(self, a: ArrayValue, b: ArrayValue) -> ArrayValue:
        shape, kinds = together(a, b, "*"), promoted(a.kinds, b.kinds)
        if a.operand.rows == a.operand.columns == 1:
            return self.scaled(a.operand, ArrayValue(self.spread(b, shape), shape), kinds)
        if b.operand.rows == b.operand.columns == 1:
            return self.scaled(b.operand, ArrayValue(self.spread(a, shape), shape), kinds)
        return self.elementwise("hadamard", a, b, "*")

    def scaled(self, scalar: Operand, a: ArrayValue, kinds: Kinds = REAL) -> ArrayValue:
        """A 1x1 operand times an array."""
        if a.operand.rows == a.operand.columns == 1 and isinstance(a.operand, Const):
            scalar, a = a.operand, ArrayValue(scalar, a.shape)
        return self._emit("scale", (scalar, a.operand), a.shape, kinds)

    def div(self, a: ArrayValue, b: ArrayValue) -> ArrayValue:
        if isinstance(b.operand, Const):
            if not np.all(b.operand.value):
                raise Refusal("division by 0")
            return self.mul(a, ArrayValue(Const.of(1.0 / b.operand.value), b.shape))
        inverse = self.entrywise("inverse", b)
        if isinstance(a.operand, Const) and a.operand.single == 1.0 and together(a, b, "/") == b.shape:
            return inverse
        return self.mul(a, inverse)  # a real number, whatever the types of a and b

    def power(self, a: ArrayValue, exponent: object) -> ArrayValue:
        if a.kinds & TRUTH:
            raise Refusal("** of a comparison: NumPy computes it with integers of 8 bits", "multiply it by 1.0 first")
        if isinstance(exponent, float) and exponent.is_integer():
            exponent, a = int(exponent), replace(a, kinds=REAL)
        if exponent in (0.5, -0.5):
            root = self.entrywise("sqrt", a)
            return root if exponent == 0.5 else self.entrywise("inverse", root)
        if isinstance(exponent, bool) or not isinstance(exponent, int) or abs(exponent) > MOST_POWER:
            raise Refusal(f"** {exponent!r}: a power is a whole number from -{MOST_POWER} to {MOST_POWER}, or 0.5",
                          "write np.exp(p * np.log(x))")
        if exponent < 0 and a.kinds & WHOLE:
            raise Refusal(f"** {exponent} of integers: NumPy refuses it", f"write 1.0 / x, or ** {float(exponent)}")
        if exponent < 0:
            return self.entrywise("inverse", self.power(a, -exponent))
        if exponent == 0:
            return replace(filled(1.0, a.shape), kinds=a.kinds)
        if exponent == 1:
            return replace(a, buffers=frozenset())
        half = self.power(a, exponent // 2)
        square = self.mul(half, half)
        return self.mul(square, a) if exponent % 2 else square

    def matmul(self, a: ArrayValue, b: ArrayValue, sign: str = "@") -> ArrayValue:
        """NumPy's @ for vectors and matrices."""
        if not a.shape or not b.shape:
            raise Refusal(f"{sign} of {dims(a.shape)} and {dims(b.shape)}: both sides must be vectors or matrices",
                          "write * for a product with a scalar")
        _no_masks(sign, a, b)
        if a.shape[-1] != b.shape[0]:
            raise Refusal(f"{sign} of {dims(a.shape)} and {dims(b.shape)}: {a.shape[-1]} columns meet {b.shape[0]} rows")
        shape, kinds = a.shape[:-1] + b.shape[1:], promoted(a.kinds, b.kinds)
        if len(a.shape) == 1 and len(b.shape) == 2:
            return self._emit("matmul", (b.operand.flip, a.operand), shape, kinds)
        left = a.operand.flip if len(a.shape) == 1 else a.operand
        return self._emit("matmul", (left, b.operand), shape, kinds)

    def outer(self, a: ArrayValue, b: ArrayValue) -> ArrayValue:
        if len(a.shape) != 1 or len(b.shape) != 1:
            raise Refusal(f"outer of {dims(a.shape)} and {dims(b.shape)}: both must be vectors")
        return self._emit("matmul", (a.operand, b.operand.flip), (*a.shape, *b.shape), promoted(a.kinds, b.kinds))

    def identity(self, size: int, columns: Sequence[int] | None = None) -> Const:
        """The identity matrix, or some of its columns."""
        chosen = range(size) if columns is None else columns
        self.builder.limits.make(size * len(chosen), "an identity matrix")
        found = np.zeros((size, len(chosen)))
        found[list(chosen), range(len(chosen))] = 1.0
        return Const.of(found)

    # Reductions

    def sum(self, a: ArrayValue, axis: int | None) -> ArrayValue:
        kinds = counted(a.kinds)
        if a.is_scalar:
            return ArrayValue(a.operand, (), kinds=kinds)
        if len(a.shape) == 1:
            return self._emit("matmul", (_ones(1, a.shape[0]), a.operand), (), kinds)
        if axis is not None and axis % 2 == 0:
            return self._emit("matmul", (a.operand.flip, _ones(a.shape[0], 1)), a.shape[1:], kinds)
        rows = self._emit("matmul", (a.operand, _ones(a.shape[1], 1)), a.shape[:1], kinds)
        return rows if axis is not None else self.sum(rows, None)

    def norm(self, a: ArrayValue) -> ArrayValue:
        a = replace(a, kinds=REAL)
        square = self.matmul(a, a) if len(a.shape) == 1 else self.sum(self.power(a, 2), None)
        return self.entrywise("sqrt", square)

    def extreme(self, function: str, a: ArrayValue, axis: int | None) -> ArrayValue:
        """The largest or smallest entry: of all, of each column (0) or of each row (1)."""
        if a.is_scalar:
            return a
        if len(a.shape) == 1:
            return self._fold(function, a.operand.flip, (), a.kinds)
        if axis is None:
            return self.extreme(function, self._fold(function, a.operand, a.shape[:1], a.kinds), None)
        return self._fold(function, a.operand if axis % 2 else a.operand.flip, (a.shape[0 if axis % 2 else 1],), a.kinds)

    def _fold(self, function: str, operand: Operand, shape: Shape, kinds: Kinds) -> ArrayValue:
        """All columns of a matrix, two by two."""
        found = self.column(operand, 0, shape)
        for i in range(1, operand.columns):
            found = self._emit(function, (found.operand, self.column(operand, i, shape).operand), shape)
        return replace(found, kinds=kinds)

    def softmax(self, a: ArrayValue, axis: int) -> ArrayValue:
        """exp(a - its largest entry) over the sum."""
        if a.is_scalar:
            raise Refusal("softmax of a scalar: it must be a vector or a matrix")
        if len(a.shape) == 2 and axis % 2 == 0:
            found = self.softmax(ArrayValue(a.operand.flip, a.shape[::-1]), 1)
            return ArrayValue(found.operand.flip, a.shape)
        largest = self.extreme("maximum", a, 1 if len(a.shape) == 2 else None)
        lifted = largest if len(a.shape) == 1 else ArrayValue(largest.operand, (a.shape[0], 1))
        grown = self.entrywise("exp", self.sub(a, lifted))
        total = self.sum(grown, 1 if len(a.shape) == 2 else None)
        share = self.entrywise("inverse", total)
        return self.mul(grown, share if len(a.shape) == 1 else ArrayValue(share.operand, (a.shape[0], 1)))

    # Comparing

    def positive(self, a: ArrayValue) -> ArrayValue:
        return ArrayValue(self.entrywise("positive", a).operand, a.shape, kinds=TRUTH)

    def inverted(self, a: ArrayValue) -> ArrayValue:
        """Not, of every entry."""
        return ArrayValue(self.elementwise("sub", filled(1.0, a.shape), a, "-").operand, a.shape, kinds=TRUTH)

    def compare(self, sign: str, a: ArrayValue, b: ArrayValue) -> ArrayValue:
        """The entries for which a comparison holds."""
        if sign in ("==", "!="):
            if not (a.operand.integral and b.operand.integral):
                raise Refusal(f"{sign} of real numbers: the machine computes them with errors", "write np.abs(a - b) < 1e-6")
            distance = self.entrywise("abs", self.elementwise("sub", a, b, sign))
            equal = self.entrywise("relu", self.elementwise("sub", filled(1.0, distance.shape), distance, sign))
            found = ArrayValue(equal.operand, equal.shape, kinds=TRUTH)
            return found if sign == "==" else self.inverted(found)
        more, less = (a, b) if sign in (">", "<=") else (b, a)
        found = self.positive(self.elementwise("sub", more, less, sign))
        return found if sign in (">", "<") else self.inverted(found)

    def where(self, mask: ArrayValue, a: ArrayValue, b: ArrayValue) -> ArrayValue:
        """b + mask (a - b)."""
        shape = together(ArrayValue(mask.operand, mask.shape), ArrayValue(Const.of(0.0), together(a, b, "where")), "where")
        left, right = ArrayValue(self.spread(a, shape), shape), ArrayValue(self.spread(b, shape), shape)
        found = self.add(right, self.mul(ArrayValue(mask.operand, mask.shape), self.sub(left, right)))
        return replace(found, kinds=promoted(a.kinds, b.kinds))

    # Columns

    def column(self, operand: Operand, index: Index, shape: Shape) -> ArrayValue:
        """A column of a matrix."""
        if operand.columns == 1 and not isinstance(index, Pointer):
            return ArrayValue(operand, shape)
        return ArrayValue(self.builder.emit("column", (operand,), operand.rows, 1, self.line, index), shape)

    def updated(self, operand: Operand, index: Index, column: Operand) -> Operand:
        """The matrix with another column."""
        return self.builder.emit("update", (operand, column), operand.rows, operand.columns, self.line, index)


BINARY: dict[str, Callable[[Arithmetic, ArrayValue, ArrayValue], ArrayValue]] = {
    "+": Arithmetic.add, "-": Arithmetic.sub, "*": Arithmetic.mul, "/": Arithmetic.div, "@": Arithmetic.matmul}


def together(a: ArrayValue, b: ArrayValue, sign: str) -> Shape:
    """The shape of both together, by NumPy's rule."""
    try:
        return np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise Refusal(f"{sign} of {dims(a.shape)} and {dims(b.shape)}: the shapes do not go together") from None


def _ones(rows: int, columns: int) -> Const:
    return Const.of(np.ones((rows, columns)))


def _no_masks(sign: str, a: ArrayValue, b: ArrayValue) -> None:
    if a.kinds & b.kinds & TRUTH:
        raise Refusal(f"{sign} of two comparisons means something else in NumPy", "multiply one of them by 1.0 first")
