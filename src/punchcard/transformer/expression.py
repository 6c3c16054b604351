"""Formulas over named rows: affine forms, relu, and what follows from them.

An `Expression` is a vector of formulas over the rows x of one column of a card,

    A x + c + B relu(C x + e),

which is all that one feed-forward layer can add to a column. `rows("memory")` is the plainest: the rows of a block
themselves. From there `+`, `-`, multiplication by a number, indexing, `total` and `relu` build the paper's formulas:

    flag = relu(b[-1]) + relu((1 - N) * one - b.total())

A vector of length one is repeated if a longer one is needed. A number is a constant in every column of the
card, so machines write `one`, an indicator row that is 1 in the scratchpad and 0 elsewhere, where the paper writes 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from punchcard.card.layout import Layout
from punchcard.errors import FormulaError

Array: TypeAlias = NDArray[np.float64]
Index: TypeAlias = int | slice


class Expression:
    """A vector of formulas `linear x + constant + outer relu(inner x + bias)`."""

    __array_ufunc__ = None  # a NumPy scalar on the left must not take the expression apart

    def __init__(self, linear: Array, constant: Array, outer: Array, inner: Array, bias: Array) -> None:
        self.linear = linear
        self.constant = constant
        self.outer = outer
        self.inner = inner
        self.bias = bias

    @property
    def size(self) -> int:
        return len(self.constant)

    @property
    def width(self) -> int:
        return int(self.linear.shape[1])

    @property
    def is_affine(self) -> bool:
        return len(self.bias) == 0

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Expression]:
        return (self[i] for i in range(self.size))

    def __repr__(self) -> str:
        return f"<{self.size} formulas over {self.width} rows, {len(self.bias)} relus>"

    def __getitem__(self, index: Index) -> Expression:
        chosen = slice(index, index + 1 or None) if isinstance(index, int) else index
        if isinstance(index, int) and not -self.size <= index < self.size:
            raise FormulaError(f"index {index} of a formula with {self.size} entries")
        return Expression(self.linear[chosen], self.constant[chosen], self.outer[chosen], self.inner, self.bias)

    def __add__(self, other: Expression | float) -> Expression:
        left, right = _same_size(self, self._lift(other))
        linear, total = left.linear + right.linear, left.constant + right.constant
        if left.is_affine or right.is_affine:  # then the units are the other's
            units = right if left.is_affine else left
            return Expression(linear, total, units.outer, units.inner, units.bias)
        return Expression(linear, total, np.hstack([left.outer, right.outer]), np.vstack([left.inner, right.inner]),
                          np.concatenate([left.bias, right.bias]))

    def __radd__(self, other: float) -> Expression:
        return self + other

    def __sub__(self, other: Expression | float) -> Expression:
        return self + (-self._lift(other))

    def __rsub__(self, other: float) -> Expression:
        return (-self) + other

    def __neg__(self) -> Expression:
        return -1.0 * self

    def __mul__(self, factor: float) -> Expression:
        if isinstance(factor, Expression):
            raise FormulaError("a product of two row formulas is not affine: gate one with the other instead (`gated`)")
        return Expression(factor * self.linear, factor * self.constant, factor * self.outer, self.inner, self.bias)

    def __rmul__(self, factor: float) -> Expression:
        return self * factor

    def __truediv__(self, divisor: float) -> Expression:
        return self * (1 / divisor)

    def total(self, weights: Sequence[float] | Array | None = None) -> Expression:
        """The sum of the entries, or their sum with weights: one formula."""
        row = np.ones((1, self.size)) if weights is None else np.asarray(weights, dtype=np.float64).reshape(1, -1)
        if row.shape[1] != self.size:
            raise FormulaError(f"{row.shape[1]} weights for a formula with {self.size} entries")
        return Expression(row @ self.linear, row @ self.constant, row @ self.outer, self.inner, self.bias)

    def through(self, matrix: Array) -> Expression:
        """A matrix times the vector: each row of it is a sum with weights."""
        if matrix.shape[1] != self.size:
            raise FormulaError(f"a matrix of {matrix.shape[1]} columns for a formula with {self.size} entries")
        return Expression(matrix @ self.linear, matrix @ self.constant, matrix @ self.outer, self.inner, self.bias)

    def repeat(self, size: int) -> Expression:
        """A single formula as a vector of `size` equal ones."""
        if self.size == size:
            return self
        if self.size != 1:
            raise FormulaError(f"a formula with {self.size} entries where {size} are wanted")
        copies = np.zeros(size, dtype=np.intp)
        return Expression(self.linear[copies], self.constant[copies], self.outer[copies], self.inner, self.bias)

    def _lift(self, value: Expression | float) -> Expression:
        return value if isinstance(value, Expression) else constant(float(value), self.width)


class Rows(Expression):
    """The rows of a named block: an expression, and a place that a layer can write to."""

    def __init__(self, name: str, numbers: NDArray[np.intp], width: int) -> None:
        size = len(numbers)
        selector = np.zeros((size, width))
        selector[np.arange(size), numbers] = 1.0
        super().__init__(selector, np.zeros(size), np.zeros((size, 0)), np.zeros((0, width)), np.zeros(0))
        self.name = name
        self.numbers = numbers

    def __repr__(self) -> str:
        return f"<rows {self.name!r}: {self.size}>"

    def __getitem__(self, index: Index) -> Rows:
        if isinstance(index, int) and not -self.size <= index < self.size:
            raise FormulaError(f"row {index} of {self.name!r}, which has {self.size} rows")
        chosen = self.numbers[index]
        return Rows(f"{self.name}[{_show(index)}]", np.atleast_1d(chosen), self.width)


def rows(layout: Layout, *names: str) -> Rows:
    """The rows of one block, or of several blocks one below the other."""
    numbers = np.concatenate([np.arange(layout.rows(n).start, layout.rows(n).stop) for n in names])
    return Rows(" and ".join(names), numbers, layout.width)


def constant(value: float, width: int) -> Expression:
    """The same number in every column of the card."""
    return _affine(np.zeros((1, width)), np.full(1, value))


def relu(form: Expression) -> Expression:
    """relu of an affine form, one hidden unit for each entry."""
    if not form.is_affine:
        raise FormulaError("relu of a relu: one feed-forward layer has one hidden layer, use two layers")
    zero = np.zeros_like(form.linear)
    return Expression(zero, np.zeros(form.size), np.eye(form.size), form.linear, form.constant)


def gated(value: Expression, closed: Expression, gate: float) -> Expression:
    """`value` where `closed` is 0; 0 where it is 1 or more, as long as the value's parts stay below `gate`.

    A gate closes a formula in the columns and rows where it must not act. Most often it is a row. It is never computed as
    C e - C inside a sum with data, which would lose the data's last bits: the row itself is exactly 0, so a gate of any
    size costs no precision. A condition that is 1 where the formula acts, beside bits, closes by 1 - condition.

    The affine part f becomes relu(f - gate closed) - relu(-f - gate closed), each relu(g) becomes relu(g - gate closed).
    """
    closed = closed.repeat(value.size)
    affine = _affine(value.linear, value.constant)
    result = relu(affine - gate * closed) - relu(-affine - gate * closed)
    entries, units = np.nonzero(value.outer)
    if len(units) == 0:
        return result
    shut = _affine(closed.linear[entries], closed.constant[entries])
    opened = relu(_affine(value.inner[units], value.bias[units]) - gate * shut)
    outer = np.zeros((value.size, len(units)))
    outer[entries, np.arange(len(units))] = value.outer[entries, units]
    return result + Expression(np.zeros_like(value.linear), np.zeros(value.size), outer, opened.inner, opened.bias)


def stack(*parts: Expression) -> Expression:
    """Vectors of formulas one below the other."""
    width = parts[0].width
    units = sum(len(p.bias) for p in parts)
    outer = np.zeros((sum(p.size for p in parts), units))
    row = column = 0
    for part in parts:
        outer[row:row + part.size, column:column + len(part.bias)] = part.outer
        row, column = row + part.size, column + len(part.bias)
    return Expression(
        np.vstack([p.linear for p in parts]),
        np.concatenate([p.constant for p in parts]),
        outer,
        np.vstack([p.inner for p in parts]).reshape(units, width),
        np.concatenate([p.bias for p in parts]),
    )


def _affine(linear: Array, constant: Array) -> Expression:
    return Expression(linear, constant, np.zeros((len(constant), 0)), np.zeros((0, linear.shape[1])), np.zeros(0))


def _same_size(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    if left.width != right.width:
        raise FormulaError(f"formulas over cards of {left.width} and {right.width} rows")
    size = max(left.size, right.size)
    if {left.size, right.size} - {1, size}:
        raise FormulaError(f"formulas with {left.size} and {right.size} entries do not add")
    return left.repeat(size), right.repeat(size)


def _show(index: Index) -> str:
    if isinstance(index, int):
        return str(index)
    return f"{'' if index.start is None else index.start}:{'' if index.stop is None else index.stop}"
