"""Integer arithmetic found by proof: each step of it against brute force over all integers, or all bits."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from punchcard.engines.lowered.bits.builder import Bit, WordBuilder, is_flag
from punchcard.engines.lowered.bits.functions import BitFunctions
from punchcard.engines.lowered.bits.packing import alike, family, pack, pack_any
from punchcard.engines.lowered.bits.steps import Total, aligned
from punchcard.engines.lowered.bits.table import (
    MOST_BITS,
    ONE,
    BitTable,
    Inexact,
    SplitTable,
    bit_table,
    combine,
    constant_table,
    exact,
    restrict,
    scaled,
    split_sum,
    without_idle_bits,
)
from punchcard.engines.lowered.bits.word_rules import multiply_words
from punchcard.engines.lowered.graph import operations as op
from punchcard.engines.lowered.graph.builder import Graph
from punchcard.engines.lowered.graph.nodes import BIT, Linear
from punchcard.words.word import Word, parts_of
from tests.bit_rows import BitRows, number, sum_of
from tests.word_values import Leaves, Numbers, all_values, bit_of, leaf_words, table_value, value_of, with_leaves

# Numbers and tables


@pytest.mark.parametrize("number", [0.0, 1.0, -3.0, 0.5, 2.0**-64, -(2.0**40), 1 - 2.0**-53])
def test_numbers_are_exact(number: float) -> None:
    assert Fraction(exact(number), ONE) == Fraction(number)
    assert scaled(exact(number), exact(-4.0)) == exact(-4.0 * number)


@pytest.mark.parametrize("number", [2.0**-65, 2.0**-60 + 2.0**-70, 1e-300])
def test_what_is_finer_has_no_table(number: float) -> None:
    with pytest.raises(Inexact):
        exact(number)


def test_products_that_are_finer_have_no_table() -> None:
    with pytest.raises(Inexact):
        scaled(exact(2.0**-40), exact(2.0**-40))


def random_table(rng: random.Random, bits: list[Bit], most: int = 3, values: tuple[int, ...] = (-1, 0, 1, 2)) -> BitTable:
    chosen = tuple(sorted(rng.sample(bits, rng.randint(0, most))))
    return without_idle_bits(chosen, [rng.choice(values) for _ in range(1 << len(chosen))])


def test_functions_of_few_bits() -> None:
    """Sums and products of tables; what changes nothing is left out; and too many bits are refused."""
    rng, (words, leaves, every) = random.Random(1), with_leaves(2, 3)
    bits = [words.bit(leaf, i) for leaf in leaves for i in range(leaf.width)]
    for _ in range(60):
        a, b = random_table(rng, bits), random_table(rng, bits)
        for change in (int.__add__, int.__mul__):
            both = combine(change, a, b)
            assert both is not None
            expected = table_value(a, every) + table_value(b, every) if change is int.__add__ else (
                table_value(a, every) * table_value(b, every))
            assert np.all(table_value(both, every) == expected)
            for j in range(len(both.bits)):
                assert any(x != y for x, y in zip(both.values, (both.values[i ^ 1 << j] for i in range(len(both.values))),
                                                  strict=True)), "no bit is idle"
    many = leaf_words(words, *[1] * (MOST_BITS + 1))
    total: BitTable | None = constant_table(0)
    for index, flag in enumerate(many):
        assert total is not None
        total = combine(int.__add__, total, bit_table(words.bit(flag), 0, 1))
        assert (total is None) == (index == MOST_BITS)


# Steps


def random_total(rng: random.Random, leaves: list[Word]) -> Total:
    terms = tuple((rng.choice((-4, -2, -1, 1, 1, 2, 3)), leaf, rng.randrange(1, 1 << leaf.width),
                   rng.choice((0, 0, 1))) for leaf in rng.sample(leaves, rng.randint(1, len(leaves))))
    values = total_value(terms, all_values(leaves))
    return Total(terms, values.min(), values.max())


def total_value(terms: tuple[tuple[int, Word, int, int], ...], leaves: Leaves) -> Numbers:
    return sum((c * ((leaves[word] & mask) >> shift) for c, word, mask, shift in terms), start=np.zeros(1, dtype=object))


def test_the_lowest_bits_of_a_total() -> None:
    rng = random.Random(4)
    for _ in range(300):
        words, leaves, every = with_leaves(3, 3)
        total, bits, constant, sign = random_total(rng, leaves), rng.randint(1, 6), rng.randint(-9, 9), rng.choice((1, -1))
        word = total.lowest(words, bits, constant, sign)
        wanted = total_value(total.terms, every)
        assert np.all((value_of(word, every) - sign * wanted - constant) % (1 << bits) == 0)
        assert np.all((value_of(total.word(words), every) - wanted) % (1 << 64) == 0)


# Packing


def random_bits(rng: random.Random, words: WordBuilder, leaves: list[Word]) -> list[Bit]:
    """Bits of leaves, of sums and of flags."""
    a, b, flag = leaves
    sums = [words.sum([(1, a), (1, b)], rng.randint(0, 2)), words.sum([(1, a), (-1, b)], 0),
            words.sum([(2, b), (1, flag)], 1), words.shifted(a, -1), words.masked(b, 5)]
    flags = [flag, words.at_least(sums[0], 3), words.below(sums[1], 2, 1), words.equal(a, b)]
    return [words.bit(word, i) for word in (a, b, *sums) for i in range(3)] + [words.bit(one) for one in flags]


def test_packing_bits() -> None:
    """Every place of the word is its function, and so is every home; all other places are 0."""
    rng = random.Random(5)
    for turn in range(70):
        words, leaves, every = with_leaves(3, 3, 1)
        bits = random_bits(rng, words, leaves)
        wanted: dict[int, BitTable] = {}
        if turn % 2:  # the same function in step, with some others
            first = random_table(rng, [bit for bit in bits if bit.place == 0], 3, (-1, 1))
            wanted = {at: BitTable(tuple(words.bit(b.word, 0 if is_flag(b.word) else at) for b in first.bits), first.values)
                      for at in range(3)}
        for _ in range(rng.randint(0, 5)):
            table = random_table(rng, bits, 3, (-1, 1))
            wanted[rng.randrange(8)] = table if table.bits else constant_table(rng.choice((-1, 1)))
        homes: dict[BitTable, Bit] = {}
        word = pack(words, wanted, homes)
        expected = sum((table_value(table, every) > 0) * (1 << at) for at, table in wanted.items())
        assert np.all(value_of(word, every) == expected)
        for table, home in homes.items():
            assert np.all(bit_of(home, every) == table_value(table, every))


def test_families_of_functions() -> None:
    rng = random.Random(6)
    for _ in range(100):
        words, leaves, every = with_leaves(3, 3, 1)
        table = random_table(rng, random_bits(rng, words, leaves), 3, (0, 1))
        if not table.bits:
            continue
        place = rng.randint(0, 5)
        word = family(words, table, place)
        assert np.all(bit_of(words.bit(word, place), every) == table_value(table, every))


def test_functions_that_are_alike() -> None:
    """Never said of functions that differ; and the lowest bit of a sum is the exclusive or."""
    rng, said = random.Random(7), 0
    for _ in range(600):
        words, leaves, every = with_leaves(2, 2, 1)
        bits = random_bits(rng, words, leaves)
        a, b = (random_table(rng, bits, 2, (0, 1)) for _ in range(2))
        if alike(a, b):
            said += 1
            assert np.all(table_value(a, every) == table_value(b, every))
    assert said > 20
    words, (x, y), _ = with_leaves(4, 4)
    either = BitTable((words.bit(x, 0), words.bit(y, 0)), (0, 1, 1, 0))
    assert alike(either, BitTable((words.bit(words.sum([(1, x), (1, y)], 0), 0),), (0, 1)))
    assert not alike(either, BitTable((words.bit(words.sum([(1, x), (1, y)], 1), 0),), (0, 1)))


def test_sums_in_line_with_others() -> None:
    """What is put in another form is the same sum, and terms that cancel are gone."""
    rng = random.Random(8)
    for _ in range(200):
        words, leaves, every = with_leaves(2, 2, 1)
        bits = random_bits(rng, words, leaves)
        functions = [random_table(rng, bits, 2, (0, 1)) for _ in range(4)]
        terms = {table: rng.choice((-2, -1, 1, 2)) << 64 for table in functions if table.bits}
        after, constant = aligned(words, terms, 5)
        assert all(after.values())
        assert np.all(sum(c * table_value(table, every) for table, c in after.items()) + constant == 5 + sum(
            c * table_value(table, every) for table, c in terms.items()))


# Lifting

ROWS = 8


def lifted_bit(bits: BitRows, total: Linear, place: int, multiples: int) -> BitTable | None:
    """A bit of a sum, ±1, as a function of bits."""
    bit = sum_of((2.0, bits.bit_of(total, place, multiples)), constant=-1.0)
    return bits.table(bits.graph.narrowed(bits.graph.tidy(bit)))


def test_a_bit_of_a_sum_is_lifted() -> None:
    """Two words of four bits, added: each bit of the sum from the ReLUs of the sum of the bits up to there."""
    for place in range(4):
        bits = BitRows(ROWS)
        weights = [2.0**i / 2 if i <= place else 0.0 for i in range(4)] * 2
        table = lifted_bit(bits, bits.form(weights, sum(weights)), place, 3)
        assert table is not None
        assert len(table.bits) <= 2, "a bit of an integer, not a table"


def test_a_carry_is_added_to_a_sum() -> None:
    """Two words of three bits and a carry: all bits of the sum are those of one word. It is not a choice of two sums."""
    bits, packed = BitRows(ROWS), dict[int, BitTable]()
    for place in range(3):
        weights = [*([2.0**i / 2 if i <= place else 0.0 for i in range(3)] * 2), 0.5]
        table = lifted_bit(bits, bits.form(weights, sum(weights)), place, 3)
        assert table is not None
        packed[place] = table
    word = pack(bits.words, packed, {})
    assert (word.op, word.arguments[0].op) == ("and_", "sum")


HALF, DIGIT = 8, 2
WHOLE = 2 * HALF


@pytest.mark.parametrize("signs", [(0, 0), (1, 1), (1, 0), (0, 1)])
def test_a_product_of_halves_is_a_product_of_words(signs: tuple[int, int]) -> None:
    """Two words of 16 bits, with a sign or not, by their halves: products of these as numbers, and digits from above."""
    bits = BitRows(2 * WHOLE)
    x, y = bits.bits[:WHOLE], bits.bits[WHOLE:]

    def where(rows: list[Linear], bit: Linear) -> Linear:
        """A number, or 0 where a bit is 0."""
        form = number(rows)
        form.add(bit, 2.0 ** len(rows))
        form.constant = form.constant - 2.0 ** len(rows)
        return bits.graph.relu(form)

    sums = [Linear({}, np.zeros(1)) for _ in range(3)]
    for first, second in product((0, HALF), repeat=2):
        for j, bit in enumerate(y[second : second + HALF]):
            sums[(first + second) // HALF].add(where(x[first : first + HALF], bit), 2.0**j)
    for signed, of, other in zip(signs, (x, y), (y, x), strict=True):
        sums[2].add(where(other, of[-1]), -float(signed))
    low = digits_of(bits, sums[0], WHOLE)
    sums[1].add(number(low[HALF:]))
    middle = digits_of(bits, sums[1], WHOLE + DIGIT)
    sums[2].add(number(middle[HALF:]))
    sums[2].constant = sums[2].constant + 2.0 ** (WHOLE + 1)
    high = digits_of(bits, sums[2], WHOLE + DIGIT)
    tables = {place: bits.functions.table_of(bit) for place, bit in enumerate([*low[:HALF], *middle[:HALF], *high[:WHOLE]])}
    word = pack(bits.words, {place: table for place, table in tables.items() if table is not None}, {})
    some = np.random.default_rng(5).integers(0, 1 << 2 * WHOLE, 2000).astype(object)
    factors = [part - (part >> WHOLE - 1 << WHOLE) * signed
               for part, signed in zip((some % (1 << WHOLE), some >> WHOLE), signs, strict=True)]
    assert np.all(value_of(word, {bits.word: some}) == factors[0] * factors[1] % (1 << 2 * WHOLE))
    assert all(table is not None and [bit.word.op for bit in table.bits] == ["sum"] for table in tables.values())
    sums_of_words = [part for part in parts_of(word) if part.op == "sum"]
    written = [found for total in sums_of_words if (found := multiply_words(total)) is not None]
    assert len(written) == 3
    assert all("multiply" in {part.op for part in parts_of(found)} for found in written)


def test_a_gated_number_with_the_gate_in_its_parts() -> None:
    """With a gate, a bit and the same bit with that gate are one function: both count."""
    bits = BitRows(9)
    *x, gate = bits.bits
    form = Linear({}, np.array([-1024.0]))
    for i, bit in enumerate(x):
        form.add(bit, 2.0**i)
    form.add(gate, 1024.0)
    form.add(bits.graph.relu(form.copy()))
    (node,) = bits.graph.relu(form).terms
    found = bits.functions._affine(node)
    assert found is not None
    every = all_values([bits.word])
    number = 2 * (every[bits.word] % 256) * (every[bits.word] >> 8)
    assert np.all(found[1] + sum(c * table_value(function, every) for function, c in found[0].items()) == number * ONE)


def digits_of(bits: BitRows, total: Linear, size: int) -> list[Linear]:
    """The bits of a number, 0 or 1, two at a time from above: each by steps, where those above are known."""
    found = [Linear()] * size
    for low in reversed(range(0, size, DIGIT)):
        lower = total.copy()
        for place in range(low + DIGIT, size):
            lower.add(found[place], -(2.0**place))
        for j in range(DIGIT):
            bit = Linear({}, np.zeros(1))
            for v in range(1, 1 << DIGIT):
                change = (v >> j & 1) - (v - 1 >> j & 1)
                for weight, shift in ((change, 1.0), (-change, 0.0)):
                    unit = Linear(lower.terms, lower.constant + shift - (v << low))
                    bit.add(bits.graph.relu(unit), weight)
            found[low + j] = bits.graph.narrowed(bits.graph.tidy(bit))
    return found


def test_random_layers_are_lifted_or_left() -> None:
    """Sums of ReLUs of sums, twice over, with weights and biases of all kinds."""
    rng, lifted = random.Random(9), 0
    weights = (-1.0, 1.0, 0.5, 1.0, 2.0, 4.0, 8.0, -8.0, 3.0)
    for _ in range(50):
        bits = BitRows(ROWS)
        rows = {i: Linear({row: 1.0}) for i, row in enumerate(bits.rows)}
        for _layer in range(2):
            new = {}
            for row in range(3):
                total = rows[row].copy() if rng.random() < 0.5 else Linear()
                inner = Linear()
                for x in rows.values():
                    inner.add(x, rng.choice(weights) if rng.random() < 0.5 else 0.0)
                for _unit in range(rng.randint(1, 4)):
                    shifted = Linear(inner.terms, inner.constant + rng.randint(-6, 6) / rng.choice((1, 2)))
                    total.add(bits.graph.relu(shifted.times(rng.choice((1.0, -1.0)))), rng.choice((-2.0, -1.0, 1.0, 2.0)))
                new[row] = bits.graph.narrowed(bits.graph.tidy(total))
            rows = {**rows, **new}
            lifted += sum(bits.table(linear) is not None for linear in new.values())
    assert lifted > 50


def test_a_sum_of_gated_bits_is_one_of_words() -> None:
    """Four bits, each 0 unless one of two gates is open, and 1 more: the gates stay where the bits go on."""
    bits = BitRows(ROWS)
    *rows, first, second = bits.rows[:6]
    gated = [bits.graph.relu(Linear({row: 1.0, first: 1.0}, np.array([-1.0]))) for row in rows]
    for form, row in zip(gated, rows, strict=True):
        form.add(bits.graph.relu(Linear({row: 1.0, second: 1.0, first: -1.0}, np.array([-2.0]))))
    operations: set[Word] = set()
    for place in range(2, 4):
        total = Linear({}, np.array([1.0]))
        for i in range(place + 1):
            total.add(gated[i], 2.0**i)
        table = lifted_bit(bits, total, place, 2)
        assert table is not None
        operations |= {word for bit in table.bits for word in _logic(bit.word)}
    assert len(operations) == 2, "for each of the two gates the same operation on words for all places"


def _logic(word: Word) -> set[Word]:
    """The bitwise operations in a word."""
    return {word} if word.op == "logic" else {found for arg in word.arguments for found in _logic(arg)}


def test_a_form_and_relus_of_it() -> None:
    """A sum that holds a form with a constant, and ReLUs of that form."""
    rng, lifted = random.Random(4), 0
    for _ in range(150):
        bits = BitRows(ROWS)
        weights = [2.0**i * rng.choice((1.0, 0.5)) for i in range(rng.randint(2, 5))]
        base = bits.graph.as_node(bits.form(weights, rng.choice((0.0, 1.0, 3.0, -2.0, 0.5))))
        total = Linear({base: rng.choice((1.0, -1.0, 2.0))}, np.array([float(rng.randint(-3, 3))]))
        for _ in range(rng.randint(1, 4)):
            unit = Linear({base: rng.choice((1.0, -1.0, 2.0, -2.0))}, np.array([float(rng.randint(-9, 9))]))
            total.add(bits.graph.relu(unit), rng.choice((1.0, -1.0, 2.0, -2.0)))
        lifted += bits.table(total) is not None
    assert lifted > 100


# Functions that a few bits choose between, conjunctions of many bits, and flags that exclude each other

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
    bits = BitRows(ROWS)
    count = len(bits.rows)
    wanted = [1.0 if i % 3 else -1.0 for i in range(count)]
    inner = bits.form([sign * w / 2 for w in wanted], 0.0).times(sign)
    inner.constant = inner.constant + (1 - count / 2)
    table = bits.table(bits.graph.relu(inner))
    assert table is not None
    assert Fraction(max(table.values), ONE) == 1
    if count > 7:
        assert [bit.word.op for bit in table.bits] == ["equal"]


def test_a_conjunction_in_which_a_bit_counts_twice() -> None:
    """With the bit below it, it looks like part of a number. All of a word are one comparison, and a bit of another word."""
    graph, words = Graph(), WordBuilder()
    word, other = leaf_words(words, 9, 1)
    rows = [graph.node(op.LOAD, (), row, ends=(-1.0, 1.0), domain=BIT) for row in range(10)]
    functions = BitFunctions(words, lambda node: bit_table(words.bit(*((word, node.data) if node.data < 9 else (other, 0))),
                                                           -ONE, ONE))
    form = Linear({row: 1.0 if place == 8 else 0.5 for place, row in enumerate(rows)}, np.array([1 - 11 / 2]))
    table, every = functions.table_of(graph.relu(form)), all_values([word, other])
    assert table is not None
    assert {bit.word.op for bit in table.bits} == {"equal", "variable"}
    assert np.all(table_value(table, every) == (every[word] == 511) * every[other] * ONE)


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
