"""Functions that a few bits choose between, conjunctions of many bits, and flags that exclude each other: by brute force."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from punchcard.engines.lowered.bits.builder import WordBuilder
from punchcard.engines.lowered.bits.packing import pack_any
from punchcard.engines.lowered.bits.table import (
    ONE,
    BitTable,
    SplitTable,
    bit_table,
    combine,
    constant_table,
    restrict,
    split_sum,
    without_idle_bits,
)
from tests.test_words import Bits, random_table
from tests.word_values import all_values, leaf_words, table_value, value_of, with_leaves

WIDTH = 4


def shifted(direction: int, sign: bool = False) -> tuple[WordBuilder, dict[int, list[BitTable]]]:
    """Bits of a word shifted by another: a conjunction for each amount, and for each place their list."""
    words = WordBuilder()
    x, amount = leaf_words(words, WIDTH, 2)
    places: dict[int, list[BitTable]] = {place: [constant_table(-ONE)] for place in range(WIDTH)}
    for place, s in product(range(WIDTH), range(1 << amount.width)):
        source = place + direction * s
        if not 0 <= source < WIDTH and not (sign and source >= WIDTH):
            continue
        here: BitTable | None = bit_table(words.bit(x, min(source, WIDTH - 1)), 0, 2 * ONE)
        for j in range(amount.width):
            literal = bit_table(words.bit(amount, j), *((0, 1) if s >> j & 1 else (1, 0)))
            here = None if here is None else combine(int.__mul__, here, literal)
        assert here is not None
        places[place].append(here)
    return words, places


@pytest.mark.parametrize(("direction", "sign", "found"), [(1, False, "shift_right"), (-1, False, "shift_left"),
                                                          (1, True, "choose")])
def test_a_sum_of_conjunctions_is_a_choice_or_a_shift(direction: int, sign: bool, found: str) -> None:
    words, places = shifted(direction, sign)
    known: dict[int, BitTable | SplitTable] = {}
    for place, terms in places.items():  # one conjunction alone is a function of few bits
        whole = combine(int.__add__, *terms) if len(terms) == 2 else split_sum(terms)
        assert whole is not None
        assert set(whole.values) <= {-ONE, ONE}
        known[place] = whole
    packed = pack_any(words, known, {})
    leaves = leaf_words(words, WIDTH, 2)
    assert found in {packed.op, *(arg.op for arg in packed.arguments)}
    every = all_values(leaves)
    x, s = (every[leaf] for leaf in leaves)
    signed = x - (x >> WIDTH - 1 << WIDTH if sign else 0)
    assert np.all(value_of(packed, every) == (signed >> s if direction > 0 else signed << s) % (1 << WIDTH))


def test_a_sum_is_split_by_the_bits_that_its_parts_share() -> None:
    rng, (words, leaves, every) = random.Random(2), with_leaves(3, 4)
    bits = [words.bit(leaf, i) for leaf in leaves for i in range(leaf.width)]
    tried = 0
    for _ in range(60):
        terms = [random_table(rng, bits) for _ in range(3)]
        split = split_sum(terms)
        if split is None:
            continue
        tried += 1
        total = sum(table_value(term, every) for term in terms)
        settings = sum((every[bit.word] >> bit.place & 1) << j for j, bit in enumerate(split.bits))
        for setting, part in enumerate(split.parts):
            assert np.all((settings != setting) | (table_value(part, every) == total))
    assert tried > 5


def test_a_function_with_some_bits_known() -> None:
    rng, (words, (leaf,), every) = random.Random(3), with_leaves(5)
    bits = [words.bit(leaf, i) for i in range(5)]
    for _ in range(40):
        table, known = random_table(rng, bits, 5), tuple(sorted(rng.sample(bits, 2)))
        setting = rng.randrange(4)
        here = sum((every[leaf] >> bit.place & 1) << j for j, bit in enumerate(known)) == setting
        assert np.all(~here | (table_value(restrict(table, known, setting), every) == table_value(table, every)))


def test_functions_of_flags_are_right_wherever_they_can_be() -> None:
    rng, (words, (leaf,), every) = random.Random(5), with_leaves(4)
    flags = [words.matches(leaf, 15, pattern) for pattern in range(0, 16, 5)] + [words.at_least(leaf, k) for k in (2, 7, 11)]
    bits = [words.bit(flag) for flag in flags]
    for _ in range(200):
        one, other = random_table(rng, bits), random_table(rng, bits)
        total = combine(int.__add__, one, other)
        assert total is not None
        assert np.all(table_value(total, every) == table_value(one, every) + table_value(other, every))


def test_patterns_that_exclude_each_other_add_up_to_a_bit() -> None:
    words, (leaf,), _ = with_leaves(8)
    total: BitTable | None = constant_table(0)
    for pattern in range(5):
        flag = bit_table(words.bit(words.matches(leaf, 255, pattern)), 0, 1)
        total = None if total is None else combine(int.__add__, total, flag)
    assert total is not None
    assert set(total.values) == {0, 1}


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_conjunction_of_many_bits_is_one_comparison(sign: float) -> None:
    bits = Bits()
    count = len(bits.rows)
    wanted = [1.0 if i % 3 else -1.0 for i in range(count)]
    inner = bits.form([sign * w / 2 for w in wanted], 0.0).times(sign)
    inner.constant = inner.constant + (1 - count / 2)
    table = bits.assert_same(bits.graph.relu(inner))
    assert table is not None
    assert Fraction(max(table.values), ONE) == 1
    if count > 7:
        assert [bit.word.op for bit in table.bits] == ["equal"]


def test_trimming() -> None:
    """A bit that changes nothing is left out, wherever it stands."""
    rng, (words, (leaf,), every) = random.Random(6), with_leaves(4)
    bits = tuple(words.bit(leaf, i) for i in range(4))
    for _ in range(100):
        idle = rng.randrange(4)
        values = [rng.randrange(3) for _ in range(16)]
        values = [values[i & ~(1 << idle)] for i in range(16)]
        table = without_idle_bits(bits, list(values))
        assert bits[idle] not in table.bits
        assert np.all(table_value(table, every) == values)
