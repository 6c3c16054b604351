"""Tools of the RISC-V machine's layers, long division among them: against plain integers, for all words of four bits."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from punchcard.card.layout import Layout, Region, RowBlock
from punchcard.primitives.gated_words import (
    and_where,
    bit_where,
    carry_where,
    equal_where,
    from_where,
    lane_where,
    left_where,
    less_where,
    merged_where,
    offset_where,
    or_where,
    right_where,
    sign_where,
    sum_where,
    xor_where,
)
from punchcard.primitives.literals import absent, bits_where, conjunction, decide, step_where, zero_where
from punchcard.primitives.quotient import digit_of, digit_where, negative_where, size_where, times
from punchcard.transformer.expression import Array, Expression, rows
from tests.cases import wrap

WIDTH, SIZE = 4, 16
BLOCKS = [RowBlock("x", WIDTH), RowBlock("y", WIDTH), *(RowBlock(name, 1) for name in ("number", "unit", "gate", "one"))]
LAYOUT = Layout(BLOCKS, [Region("all", 1)])
X, Y, NUMBER, UNIT, GATE, ONE = (rows(LAYOUT, block.name) for block in BLOCKS)
CLOSED = absent(GATE, {0: 1}, ONE)
PAIRS = list(product(range(SIZE), repeat=2))


def bits(numbers: list[int]) -> Array:
    return np.array([[1.0 if number >> i & 1 else -1.0 for number in numbers] for i in range(WIDTH)])


def card(gate: float = 1.0, one: float = 1.0) -> Array:
    """A column for each pair, as words x and y and as numbers. Where `one` is 0, all rows are 0: it does not compute."""
    first, second = [x for x, _ in PAIRS], [y for _, y in PAIRS]
    return one * np.vstack([bits(first), bits(second), [first], [second], [[gate] * len(PAIRS)], [[1.0] * len(PAIRS)]])


def value(form: Expression, columns: Array) -> Array:
    inside = np.maximum(form.inner @ columns + form.bias[:, None], 0)
    return form.linear @ columns + form.constant[:, None] + form.outer @ inside


def number(form: Expression, columns: Array) -> list[int]:
    """The numbers whose bits are the entries, which must be 0 and 1."""
    entries = value(form, columns)
    assert set(np.unique(entries)) <= {0.0, 1.0}
    return [int(sum(2**i * bit for i, bit in enumerate(column))) for column in entries.T]


WORDS: dict[str, tuple[Expression, Callable[[int, int], int]]] = {
    "sum": (sum_where(X, Y, 0 * ONE, CLOSED, ONE), lambda x, y: (x + y) % SIZE),
    "difference": (sum_where(X, -Y, ONE, CLOSED, ONE), lambda x, y: (x - y) % SIZE),
    "carry": (carry_where(X, Y, 0 * ONE, CLOSED, ONE), lambda x, y: int(x + y >= SIZE)),
    "no borrow": (carry_where(X, -Y, ONE, CLOSED, ONE), lambda x, y: int(x >= y)),
    "offset": (offset_where(X, 5 * ONE, 5, 5, CLOSED, ONE), lambda x, y: (x + 5) % SIZE),
    "one less": (offset_where(X, -ONE, -1, -1, CLOSED, ONE), lambda x, y: (x - 1) % SIZE),
    "from 11": (from_where(X.total([0.5, 1, 2, 4]) + 7.5 * ONE, 11, 0, 15, CLOSED, ONE), lambda x, y: int(x >= 11)),
    "from 3": (from_where(X.total([0.5, 1, 2, 4]) + 7.5 * ONE, 3, 0, 15, CLOSED, ONE), lambda x, y: int(x >= 3)),
    "bit 1": (bit_where(X.total([0.5, 1, 2, 4]) - 0.5 * ONE, 1, -8, 7, CLOSED, ONE), lambda x, y: x - 8 >> 1 & 1),
    "and": (and_where(X, Y, CLOSED, ONE), lambda x, y: x & y),
    "or": (or_where(X, Y, CLOSED, ONE), lambda x, y: x | y),
    "xor": (xor_where(X, Y, CLOSED, ONE), lambda x, y: x ^ y),
    "left": (left_where(X, Y[:2], CLOSED, ONE), lambda x, y: x << (y & 3) & 15),
    "right": (right_where(X, Y[:2], CLOSED, ONE), lambda x, y: x >> (y & 3)),
    "arithmetic": (right_where(X, Y[:2], CLOSED, ONE) + sign_where(X, Y[:2], CLOSED, ONE),
                   lambda x, y: wrap(x, WIDTH) >> (y & 3) & 15),
    "less": (less_where(X, Y, 0 * ONE, CLOSED, ONE), lambda x, y: int(x <= y)),
    "less, with the low part not less": (less_where(X, Y, ONE, CLOSED, ONE), lambda x, y: int(x < y)),
    "equal": (equal_where(X, Y, CLOSED, ONE), lambda x, y: int(x == y)),
    "lane": (lane_where(X, 2, Y[1], CLOSED, ONE), lambda x, y: x >> (y & 2) & 3),
    "whole lane": (lane_where(X, 4, Y[:0], CLOSED, ONE), lambda x, y: x),
    "merged": (merged_where(X, Y, 2, Y[3], CLOSED, ONE), lambda x, y: x & ~(3 << (y >> 3) * 2) | (y & 3) << (y >> 3) * 2),
    "all as they should be": (conjunction(CLOSED + absent(X, {0: 1, 3: 0}, ONE), ONE), lambda x, y: int(x & 9 == 1)),
    "bits where": (bits_where(X, CLOSED + absent(Y, {2: 1}, ONE), ONE), lambda x, y: x if y & 4 else 0),
    "step": (step_where(X.total([0.5, 1, 2, 4]) + 1.5 * ONE, CLOSED, ONE, 9), lambda x, y: int(x >= 6)),
    "tent": (zero_where(X.total([0.5, 1, 2, 4]) + 1.5 * ONE, CLOSED, ONE, 9), lambda x, y: int(x == 6)),
    "negative": (negative_where(X, CLOSED, ONE), lambda x, y: -x % SIZE),
    # by 0 a digit is the greatest, and so is one that does not fit
    "digit of a quotient": (digit_where(NUMBER, UNIT, 2, SIZE - 1, CLOSED, ONE), lambda x, y: min(3, x // y) if y else 3),
}


@pytest.mark.parametrize("name", WORDS)
def test_every_pair_of_words(name: str) -> None:
    """And nothing comes through a closed gate, or happens in other columns."""
    form, wanted = WORDS[name]
    assert number(form, card()) == [wanted(x, y) for x, y in PAIRS]
    assert_closed(form)


def assert_closed(form: Expression) -> None:
    for columns in (card(gate=-1.0), card(one=0.0)):
        assert not value(form, columns).any()


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_number_becomes_bits(size: int) -> None:
    for place in range(WIDTH // size):
        digit = digit_of(WIDTH, size, place)
        found = number(digit.where(NUMBER, X, SIZE - 1, CLOSED, ONE), card())
        assert found == [x >> digit.low & (1 << size) - 1 for x, _ in PAIRS]


def test_numbers_of_words() -> None:
    assert value(times(X, UNIT, SIZE, ONE), card()).tolist() == [[x * y for x, y in PAIRS]]
    for minus in (0, 1):
        form = size_where(X, minus * ONE, CLOSED, ONE)
        assert value(form, card()).tolist() == [[SIZE - x if minus else x for x, _ in PAIRS]]
        assert_closed(form)


def test_one_leaf_holds_for_every_code() -> None:
    """Also for codes that are in no class."""
    rng = np.random.default_rng(3)
    codes = list(product((0, 1), repeat=5))
    for classes in range(1, 6):
        chosen = rng.permutation(len(codes))[: 4 * classes]
        given = {codes[i]: int(rng.integers(classes)) for i in chosen}
        leaves = [(name, cube) for name, cubes in decide(given).items() for cube in cubes]
        for code in codes:
            held = [name for name, cube in leaves if all(code[place] == bit for place, bit in cube.items())]
            assert len(held) == 1
            assert given.get(code, held[0]) == held[0]
