"""The tools of long division: each against plain integers, for all words of four bits."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from punchcard.card.layout import Layout, Region, RowBlock
from punchcard.primitives.literals import absent
from punchcard.primitives.quotient import digit_of, digit_where, negative_where, size_where, times
from punchcard.transformer.expression import Array, Expression, rows

WIDTH, SIZE = 4, 16
LAYOUT = Layout([RowBlock("x", WIDTH), RowBlock("y", WIDTH), RowBlock("number", 1), RowBlock("unit", 1), RowBlock("gate", 1),
                 RowBlock("one", 1)], [Region("all", 1)])
X, Y, NUMBER, UNIT, GATE, ONE = (rows(LAYOUT, name) for name in ("x", "y", "number", "unit", "gate", "one"))
CLOSED = absent(GATE, {0: 1}, ONE)
PAIRS = list(product(range(SIZE), repeat=2))


def card(numbers: list[int], units: list[int], gate: float = 1.0, one: float = 1.0) -> Array:
    """A column for each pair, as words x and y and as numbers."""
    bits = [[1.0 if value >> i & 1 else -1.0 for value in column] for column in (numbers, units) for i in range(WIDTH)]
    return one * np.array([*bits, numbers, units, [gate] * len(units), [1.0] * len(units)])


def value(form: Expression, columns: Array) -> list[list[float]]:
    inside = np.maximum(form.inner @ columns + form.bias[:, None], 0)
    found: list[list[float]] = (form.linear @ columns + form.constant[:, None] + form.outer @ inside).T.tolist()
    return found


def word(bits: list[float]) -> int:
    assert set(bits) <= {0.0, 1.0}
    return sum(int(bit) << i for i, bit in enumerate(bits))


FIRST, SECOND = [x for x, _ in PAIRS], [y for _, y in PAIRS]


def test_a_digit_is_a_quotient() -> None:
    """By 0 every digit is the greatest; a digit that does not fit is the greatest too."""
    found = value(digit_where(NUMBER, UNIT, 2, SIZE - 1, CLOSED, ONE), card(FIRST, SECOND))
    assert [word(bits) for bits in found] == [min(3, x // y) if y else 3 for x, y in PAIRS]


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_number_becomes_bits(size: int) -> None:
    columns = card(FIRST, FIRST)
    for place in range(WIDTH // size):
        digit = digit_of(WIDTH, size, place)
        found = value(digit.where(NUMBER, X, SIZE - 1, CLOSED, ONE), columns)
        assert [word(bits) for bits in found] == [x >> digit.low & (1 << size) - 1 for x in FIRST]


def test_words() -> None:
    columns = card(FIRST, SECOND)
    assert [n for n, in value(times(X, UNIT, SIZE, ONE), columns)] == [x * y for x, y in PAIRS]
    assert [word(bits) for bits in value(negative_where(X, CLOSED, ONE), columns)] == [-x % SIZE for x, _ in PAIRS]
    for minus in (0, 1):
        found = value(size_where(X, minus * ONE, CLOSED, ONE), columns)
        assert [n for n, in found] == [SIZE - x if minus else x for x, _ in PAIRS]


@pytest.mark.parametrize("form", [
    digit_where(NUMBER, UNIT, 2, SIZE - 1, CLOSED, ONE), negative_where(X, CLOSED, ONE),
    size_where(X, 0 * ONE, CLOSED, ONE)])
def test_what_is_closed_is_zero(form: Expression) -> None:
    """Also in columns that do not compute, where all rows are 0."""
    for columns in (card(FIRST, SECOND, gate=-1.0), card(FIRST, SECOND, one=0.0)):
        assert not np.any(value(form, columns))
