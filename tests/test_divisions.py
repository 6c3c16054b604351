"""Long division as layers of ReLUs: its digits are those of one division of words, for all operands, or it is left."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count, product

import numpy as np
import pytest

from punchcard.engines.lowered.bits.divisions import Quantity
from punchcard.engines.lowered.bits.packing import pack
from punchcard.engines.lowered.bits.table import ONE, BitTable, without_idle_bits
from punchcard.engines.lowered.graph.nodes import Linear
from punchcard.words.word import Word, parts_of
from tests.bit_rows import BitRows, number, sum_of
from tests.word_values import table_value, value_of, with_leaves

WIDTH = 6
"""Bits of a divisor: with those of a digit they are too many for a table."""


@dataclass(frozen=True)
class LongDivision:
    """Digits of `size` bits, the highest first. All else is what may be wrong with it."""

    size: int = 2
    digits: int = 3
    least: float = 0.0
    """What a comparison asks for beyond k D."""
    left_out: int = 0
    """A comparison that is not made."""
    more: float = 0.0
    """What is added to each digit of the dividend after the first."""
    first: float = 0.0
    """What is added to the first."""
    divisor: float = 0.0
    """What is added to the divisor."""
    other: bool = False
    """Whether only the first digit is divided by this divisor, and the others by one that is more at times."""
    products: int = 0
    """What is taken away beyond the divisor, where a bit is 1."""
    wide: int = 0
    """More bits in each digit of the dividend than in one of the quotient."""
    changed: int | None = None
    """The seed of a change of one weight or constant."""

    @cached_property
    def rows(self) -> BitRows:
        return BitRows(WIDTH + self.digits * self.size + self.wide)

    @cached_property
    def quotient(self) -> tuple[list[Linear], Linear]:
        """The bits of the quotient, the lowest first; and what is left, which is kept between 0 and all ones."""
        rows, graph, base, sum_of = self.rows, self.rows.graph, 1 << self.size, self._sum_of
        divisor, bits = graph.narrowed(sum_of((1.0, number(rows.bits[:WIDTH])), constant=self.divisor)), rows.bits[WIDTH:]
        left, found = Linear(), list[Linear]()
        for place in reversed(range(self.digits)):
            own = bits[self.size * place : self.size * (place + 1) + self.wide]
            is_first = place == self.digits - 1
            digit = sum_of((1.0, number(own)), constant=self.first if is_first else self.more)
            by = graph.narrowed(sum_of((1.0, divisor), (1.0, bits[0]))) if self.other and not is_first else divisor
            so_far = sum_of((float(base), left), (1.0, digit))
            steps = {k: self._step(sum_of((1.0, so_far), (-float(k), by), constant=-self.least if k == 2 else 0.0))
                     for k in range(1, base) if k != self.left_out}
            new = rows.checked(*(sum_of(*((float((k >> j & 1) - (k - 1 >> j & 1)), step) for k, step in steps.items()))
                                 for j in range(self.size)))
            most = 2.0 ** (WIDTH + 2)
            parts = [graph.relu(sum_of((1.0, by), (most, bit), constant=-most - (self.products if j == 0 else 0)))
                     for j, bit in enumerate(new)]
            left = graph.gathered(sum_of((1.0, so_far), *((-(2.0**j), part) for j, part in enumerate(parts))))
            above = graph.relu(sum_of((1.0, left), constant=1.0 - 2.0**WIDTH))
            left = graph.narrowed(graph.tidy(sum_of((1.0, left), (1.0, graph.relu(sum_of((-1.0, left)))), (-1.0, above))))
            found = [*new, *found]
        return found, left

    @cached_property
    def _rng(self) -> random.Random:
        return random.Random(self.changed)

    @cached_property
    def _numbers(self) -> Iterator[int]:
        """Of the sums that are written."""
        return count()

    @cached_property
    def _which(self) -> int | None:
        """The sum that is changed."""
        return self._rng.randrange(SUMS) if self.changed is not None else None

    def _sum_of(self, *terms: tuple[float, Linear], constant: float = 0.0) -> Linear:
        """A sum, which may be the one that is changed."""
        if next(self._numbers) == self._which:
            place, by = self._rng.randint(0, len(terms)), self._rng.choice((1.0, -1.0, 0.5, -2.0, 4.0))
            terms = tuple((c + by if i == place else c, linear) for i, (c, linear) in enumerate(terms))
            constant += by if place == len(terms) else 0.0
        return sum_of(*terms, constant=constant)

    def _step(self, form: Linear) -> Linear:
        """[F >= 0] of an integer."""
        graph, sum_of = self.rows.graph, self._sum_of
        return sum_of((1.0, graph.relu(sum_of((1.0, form), constant=1.0))), (-1.0, graph.relu(form)))

    def tables(self) -> list[BitTable | None]:
        """The functions of all bits of the quotient, in the order in which a loop has them."""
        found: dict[int, BitTable | None] = {}
        bits, _ = self.quotient
        for place in reversed(range(self.digits)):
            for j in range(self.size * place, self.size * (place + 1)):
                found[j] = self.rows.table(bits[j])
        return [found[j] for j in range(len(bits))]


def divisions(tables: list[BitTable | None]) -> set[Word]:
    """The words that are quotients and remainders."""
    return {part for table in tables if table is not None for bit in table.bits for part in parts_of(bit.word)
            if part.op in ("quotient", "remainder")}


@pytest.mark.parametrize(("size", "digits"), [(2, 1), (2, 3), (3, 2)])
def test_a_long_division_is_one_of_words(size: int, digits: int) -> None:
    """For all dividends and divisors, 0 too. What is left is the remainder."""
    division = LongDivision(size, digits)
    tables, rows = division.tables(), division.rows
    word = pack(rows.words, {place: table for place, table in enumerate(tables) if table is not None}, {})
    y, x = rows.every[rows.word] % (1 << WIDTH), rows.every[rows.word] >> WIDTH
    bits = (1 << size * digits) - 1
    assert np.array_equal(value_of(word, rows.every), np.where(y, x // np.maximum(y, 1), bits))
    assert len(divisions(tables)) == digits
    written = {rows.functions.written(bit.word) or bit.word for table in tables if table is not None for bit in table.bits}
    assert len({part for word in written for part in parts_of(word) if part.op == "quotient"}) == 1
    summed = rows.functions._affine(rows.graph.as_node(division.quotient[1]))
    assert summed is not None
    assert {bit.word.op for function in summed[0] for bit in function.bits} == {"remainder"}
    found = summed[1] + sum(c * table_value(function, rows.every) for function, c in summed[0].items())
    assert np.array_equal(found, np.where(y, x % np.maximum(y, 1), x) * ONE)


WRONG = (
    *((LongDivision(least=least), 0) for least in (1.0, -1.0)), *((LongDivision(left_out=k), 0) for k in (1, 2, 3)),
    *((LongDivision(first=more), 0) for more in (1.0, -1.0)), *((LongDivision(more=more), 1) for more in (1.0, -1.0)),
    (LongDivision(wide=1), 0), (LongDivision(divisor=-1.0), 0), (LongDivision(other=True), 1), (LongDivision(products=1), 1))
"""And how many digits there are before it counts."""


SUMS = 58
"""That a division of three digits is written with."""


def test_one_weight_changed() -> None:
    """What is found is right for these weights. All digits are found where the change changes nothing, or the last rest."""
    plain = LongDivision()
    plain.tables()
    assert next(plain._numbers) == SUMS, "all of them were written"
    found = Counter(len({part for part in divisions(LongDivision(changed=seed).tables()) if part.op == "quotient"})
                    for seed in range(60))
    assert set(found) == {0, 1, 2, 3}
    assert found[3] < 20


@pytest.mark.parametrize(("wrong", "digits"), WRONG)
def test_what_is_not_a_long_division_is_left(wrong: LongDivision, digits: int) -> None:
    """Where a bound is not kept, or a comparison is another, no more digits are found; all that is found is right."""
    tables = wrong.tables()
    assert len({part for part in divisions(tables) if part.op == "quotient"}) == digits


def test_a_divisor_with_a_constant() -> None:
    """It is 1 or more, so the last comparison of the first digit holds for one dividend alone."""
    right = LongDivision(divisor=1.0)
    assert len({part for part in divisions(right.tables()) if part.op == "quotient"}) == right.digits


def test_quantities() -> None:
    """Bounds that are proven hold, and functions that are joined have the same sum: for all settings of five bits."""
    rng, proven, fewer = random.Random(3), 0, 0
    words, (word,), every = with_leaves(5)
    for _ in range(300):
        terms = {}
        for _term in range(rng.randint(1, 6)):
            bits = tuple(sorted(words.bit(word, place) for place in rng.sample(range(5), rng.randint(1, 3))))
            function = without_idle_bits(bits, [0, *(rng.randint(0, 1) for _ in range((1 << len(bits)) - 1))])
            if function.bits:
                terms[function] = rng.choice((1, 1, -1, 2, -2))
        quantity = Quantity(terms, rng.randint(-1, 1))
        joined = quantity.joined()
        value, other = (each.constant + sum((c * table_value(function, every) for function, c in each.terms.items()),
                                            start=0 * every[word]) for each in (quantity, joined))
        assert np.array_equal(value, other)
        fewer += len(joined.terms) < len(terms)
        for least, most in product(range(-4, 1), range(5)):
            if quantity.is_within(least, most):
                proven += (quantity.low, quantity.high) != (least, most)
                assert least <= value.min() <= value.max() <= most
    assert proven > 100
    assert fewer > 20
