"""Every rewrite rule of the lowered engine, on all values of small inputs. A rule without a check here fails."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator
from itertools import combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from punchcard.engines.lowered.bits import builder, divisions, node_rules, steps, word_rules
from punchcard.engines.lowered.bits.builder import WordBuilder
from punchcard.engines.lowered.bits.divisions import Division, Quantity, Whole
from punchcard.engines.lowered.bits.functions import BitFunctions
from punchcard.engines.lowered.bits.steps import MOST_STEPS, Total
from punchcard.engines.lowered.bits.table import ONE, BitTable, bit_table
from punchcard.engines.lowered.graph import operations as op
from punchcard.engines.lowered.graph import rules
from punchcard.engines.lowered.graph.builder import Graph
from punchcard.engines.lowered.graph.nodes import BIT, Array, Linear, Node
from punchcard.engines.lowered.graph.rules import value_of as node_value
from punchcard.engines.lowered.rules import TABLES
from punchcard.words.renderer import evaluate_arrays
from punchcard.words.word import Word, parts_of, select, sum_of, variable
from tests.test_words import total_value
from tests.word_values import Numbers, all_values, leaf_words, table_value, value_of

Rule = Callable[..., object]
CHECKS: dict[Rule, Callable[[Rule], int]] = {}
"""For each rule what tries it on all small inputs, and counts how often it applied."""


def checks(*of: Rule) -> Callable[[Callable[[Rule], int]], Callable[[Rule], int]]:
    def note(check: Callable[[Rule], int]) -> Callable[[Rule], int]:
        CHECKS.update(dict.fromkeys(of, check))
        return check

    return note


def all_rules() -> list[Rule]:
    return [rule for table in TABLES.values() for rule in table]


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.__name__)
def test_every_rule_is_right(rule: Rule) -> None:
    assert rule.__doc__, "its lemma"
    assert rule in CHECKS, "its check"
    assert CHECKS[rule](rule) > 0, "it applies somewhere"


# Linear forms

CONSTANTS = [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0]


class Forms:
    """Two bits, and a number from -2 to 2 that may be any multiple of 1/2; and all their values."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.bits = [self.graph.node(op.LOAD, (), row, ends=(-1.0, 1.0), domain=BIT) for row in range(2)]
        self.number = self.graph.node(op.LOAD, (), 2, ends=(-2.0, 2.0))
        self.rows = [*self.bits, self.number]
        grids = np.meshgrid([-1.0, 1.0], [-1.0, 1.0], np.arange(-2, 2.5, 0.5), indexing="ij")
        self.every = {row: grid.ravel() for row, grid in zip(self.rows, grids, strict=True)}

    def values(self, linear: Linear) -> Array:
        total = linear.constant + sum(c * node_value(node, self.every) for node, c in linear.terms.items())
        return np.broadcast_to(total, len(self.every[self.number])).astype(np.float64)

    def linear(self) -> Iterator[Linear]:
        """All forms over one or two rows with small coefficients, and constants."""
        for one, other in product(self.rows, repeat=2):
            for c, d, constant in product((-2.0, -1.0, 1.0, 2.0), (0.0, 1.0, -2.0), CONSTANTS):
                found = Linear({one: c}, np.array([constant]))
                found.add(Linear({other: 1.0}), d)
                yield found

    def sums(self) -> Iterator[Linear]:
        """Sums of two ReLUs of one form or two, of products with a bit, and of a form and a ReLU of it."""
        first, second = self.bits
        for base in (Linear({first: 1.0, second: 1.0}), Linear({self.number: 1.0}), Linear({second: 1.0})):
            for factor, k, shift, weight in product((1.0, -1.0), (-1.0, 0.0, 1.0), (-1.0, 0.0, 1.0), (1.0, -1.0, 2.0)):
                one, other = base.times(1.0), base.times(factor)
                one.constant, other.constant = one.constant + k, other.constant + shift
                total = self._relu(one)
                total.add(self._relu(other), weight)
                yield total
                total = self._relu(one)
                total.add(base, weight)
                yield total
        for weight, row in product((1.0, -1.0, 2.0), (self.bits[1], self.number)):
            total = self.graph.product(Linear({self.bits[0]: 1.0}), Linear({self.number: 1.0}))
            other = self.graph.product(Linear({self.bits[0]: 1.0}), self._relu(Linear({row: 1.0}, np.array([0.5]))))
            total.add(other, weight)
            yield total

    def _relu(self, linear: Linear) -> Linear:
        """A ReLU as a node, with nothing simplified."""
        node, factor = self.graph.form(linear)
        return Linear({self.graph.node(op.RELU, (node,), (factor, linear.constant)): 1.0})


def test_a_node_of_one_value_is_a_constant() -> None:
    """As a sum of terms too small to be seen in it has: no slope is asked of it."""
    graph = Graph()
    bit = graph.node(op.LOAD, (), 0, ends=(-1.0, 1.0), domain=BIT)
    still = graph.node(op.LOAD, (), 1, ends=(0.5, 0.5), domain=(0.5,))
    found = rules.tabulate(graph, Linear({bit: 1.0, still: 2.0}))
    assert found is not None
    assert (found.terms, found.constant.tolist()) == ({bit: 1.0}, [1.0])


@pytest.mark.parametrize(("one", "other"), [(2.0**-900, 2.0**200), (2.0**900, 3 * 2.0**-200), (-(2.0**-900), 2.0**200)])
def test_no_factor_is_taken_out_that_a_term_does_not_survive(one: float, other: float) -> None:
    """The quotient of two coefficients may be beyond float64, or below."""
    graph = Graph()
    bits = [graph.node(op.LOAD, (), row, ends=(-1.0, 1.0), domain=BIT) for row in range(2)]
    node, factor = graph.form(Linear({bits[0]: one, bits[1]: other}))
    for values in product((-1.0, 1.0), repeat=2):
        every = {bit: np.array([value]) for bit, value in zip(bits, values, strict=True)}
        assert factor * node_value(node, every) == one * values[0] + other * values[1]


@checks(*rules.RELUS.rules)
def relus(rule: Rule) -> int:
    forms, applied = Forms(), 0
    for linear in [*forms.linear(), *(Linear({}, np.array([c])) for c in CONSTANTS)]:
        found = rule(forms.graph, linear, *linear.ends) if linear.terms or rule is rules.fold_constant_relu else None
        if isinstance(found, Linear):
            applied += 1
            assert np.array_equal(forms.values(found), np.maximum(forms.values(linear), 0))
    return applied


@checks(rules.fold_two_valued_relu)
def relus_of_two_values(rule: Rule) -> int:
    graph, applied = Graph(), 0
    for u, v in combinations_with_replacement((-2.0, -1.0, 0.0, 1.5), 2):
        node = graph.node(op.LOAD, (), (u, v), ends=(u, v), domain=(u, v) if u < v else (u,))
        for factor, bias in product((-2.0, -1.0, 1.0, 4.0), CONSTANTS):
            found = rule(node, factor, np.array([bias]))
            if isinstance(found, Linear):
                applied += 1
                at = np.array([u, v])
                value = found.constant + sum(c * at for c in found.terms.values())
                assert np.array_equal(np.broadcast_to(value, 2), np.maximum(factor * at + bias, 0))
    return applied


@checks(*rules.SUMS.rules, *rules.RANGES.rules)
def sums(rule: Rule) -> int:
    forms, applied = Forms(), 0
    for linear in forms.sums():
        nodes = (forms.graph.as_node(linear),) if rule in rules.RANGES.rules else ()
        found = rule(forms.graph, linear, *nodes)
        if isinstance(found, Linear):
            applied += not found.same(linear)
            values = forms.values(found)
            assert np.array_equal(values, forms.values(linear))
            assert bool(np.all((values >= found.low) & (values <= found.high)))
            for node, c in found.terms.items():
                if node.domain is not None and len(found.terms) == 1:
                    assert set(values.tolist()) <= {c * value + float(found.constant[0]) for value in node.domain}
    return applied


@checks(rules.scale_by_constant)
def products(rule: Rule) -> int:
    forms, applied = Forms(), 0
    for linear, factor in product(list(forms.linear())[::7], CONSTANTS):
        number = Linear({}, np.array([factor]))
        for pair in ((linear, number), (number, linear)):
            found = rule(*pair)
            assert isinstance(found, Linear)
            applied += 1
            assert np.array_equal(forms.values(found), factor * forms.values(linear))
        assert rule(linear, linear) is None or linear.is_constant
    return applied


@checks(*rules.MIXTURES.rules)
def mixtures(rule: Rule) -> int:
    graph, applied = Graph(), 0
    for width, rows in product((1, 2), (1, 2)):
        for ends in product(((0.0, 0.0), (-1.0, 2.0)), repeat=width):
            low, high = (np.array([end[i] for end in ends]) for i in range(2))
            node = graph.node(op.LOAD, (), (width, ends), ends=(low, high))
            for entries in product((0.0, 1.0, -2.0), repeat=2 * rows):
                matrix = np.array(entries).reshape(rows, 2)
                found = rule(node, matrix)
                if isinstance(found, Linear):
                    applied += 1
                    for value in product(*(sorted({a, b, (a + b) / 2}) for a, b in ends)):
                        got = found.constant + sum(c * np.array(value) for c in found.terms.values())
                        assert np.array_equal(np.broadcast_to(got, rows), matrix @ np.broadcast_to(value, (2,)))
    return applied


# Words


@checks(*builder.CHOICES.rules)
def choices(rule: Rule) -> int:
    words, applied = WordBuilder(), 0
    index, x, other = leaf_words(words, 2, 2, 2)
    every = all_values([index, x, other])
    masks = [None, *range(16)]
    for direction, masked in product((1, -1), product(masks, repeat=2)):
        shifted = [words.shifted(x, direction * s) for s in range(1, 4)]
        kept = (word if mask is None else words.masked(word, mask) for word, mask in zip(shifted[:2], masked, strict=True))
        parts = [x, *kept]
        for last in (shifted[2], words.masked(shifted[2], 3), other):
            found = rule(index, [*parts, last])
            if isinstance(found, Word):
                applied += 1
                assert np.all(value_of(found, every) == value_of(select(index, [*parts, last]), every))
    return applied


X, Y, FLAG = (variable(name, 64, width) for name, width in (("x", None), ("y", None), ("bit", 1)))


def pairs_of_words() -> npt.NDArray[np.uint64]:
    """Beside all values of small words, some of 64 bits: what is moved out or carried above does not count."""
    some = np.random.default_rng(1).integers(0, 1 << 64, (2, 2000), dtype=np.uint64)
    small = np.array(list(product(range(32), repeat=2)), dtype=np.uint64).T
    return np.concatenate([some, small, small | np.uint64(31 << 59)], axis=1)


@checks(word_rules.add_whole_words)
def sums_of_high_parts(rule: Rule) -> int:
    applied, places, values = 0, 3, pairs_of_words()
    x, y, bit = X, Y, FLAG
    for signs, number in product(product((1, -1), repeat=3), (-2, -1, 0, 1)):
        for order in permutations(zip(signs, (x >> places, y >> places, bit), strict=True)):
            word = sum_of(order, number, 64) << places
            found = rule(word)
            assert (found is None) == (signs[0] == signs[1] == -signs[2])
            if isinstance(found, Word):
                applied += 1
                assert "shift_right" not in {part.op for part in parts_of(found)}
                for on in (0, 1):
                    given: dict[Hashable, Any] = {"x": values[0], "y": values[1], "bit": np.uint64(on)}
                    assert np.array_equal(evaluate_arrays(found, given), evaluate_arrays(word, given))
    for other in ((x >> 3) + bit << 3, sum_of([(1, x >> 3), (1, y >> 2), (1, bit)], 0, 64) << 3,
                  sum_of([(1, x >> 3), (1, y >> 3), (2, bit)], 0, 64) << 3, x << 3):
        assert rule(other) is None
    return applied


@checks(word_rules.multiply_words)
def sums_of_gated_words(rule: Rule) -> int:
    """Words moved to the left and to the right, masked or not, each where a bit is 1; several products, and other terms."""
    applied, values, rng = 0, pairs_of_words(), random.Random(4)

    def gated(by: Word, place: int, moved: int, mask: int | None) -> Word:
        part = (X << moved if moved >= 0 else X >> -moved) & by[place].extend(64, signed=True)
        return part if mask is None else part & (mask << moved if moved >= 0 else mask >> -moved) % (1 << 64)

    for _ in range(400):
        count, first, moved = rng.randint(1, 8), rng.randint(0, 9), rng.choice((-16, -3, 0, 1, 40, 58))
        masks = rng.choice(([None], [15], [0xFFFF0000], [0xFFFF0000, 0xFF], [None, 24]))
        by = rng.choice((Y, Y, X, X + Y))
        places = [rng.randint(0, 12) if rng.random() < 0.2 else i for i in range(count)]
        parts = [(rng.choice((1, 1, -3)), gated(by, first + i, moved + i, rng.choice(masks))) for i in places]
        word = sum_of([*parts, (2, Y)][: rng.randint(count, count + 1)], rng.randint(-2, 2), 64)
        found = rule(word)
        if isinstance(found, Word):
            applied += 1
            given: dict[Hashable, Any] = {"x": values[0], "y": values[1]}
            assert np.array_equal(evaluate_arrays(found, given), evaluate_arrays(word, given))
    plain = sum_of([(1, gated(Y, i, i, 0xFFFF)) for i in range(16)], 0, 64)
    assert rule(plain) == (X & 0xFFFF) * (Y & 0xFFFF)
    for other in (Y, plain & 7, sum_of([(1, X << i) for i in range(4)], 0, 64), sum_of([(1, gated(Y, 0, 0, 7))], 1, 64)):
        assert rule(other) is None
    return applied


@checks(word_rules.look_at_bits_together)
def sums_above_nothing(rule: Rule) -> int:
    """Bits of two words and of one alone, masked and moved in all ways; and sums that may be negative or overflow."""
    applied, rng = 0, random.Random(5)
    values = np.concatenate([pairs_of_words(), 1 << np.array(list(product(range(64), repeat=2)), dtype=np.uint64).T], axis=1)
    for _ in range(300):
        parts = [(rng.choice((X, Y)) & rng.getrandbits(rng.randint(1, 62))) >> rng.choice((0, 1, 7, 30))
                 for _ in range(rng.randint(2, 5))]
        terms = [(rng.choice((1, 1, 2, 3)), part) for part in (*parts, FLAG)]
        word = sum_of((), 0, 64).less(sum_of(terms, 0, 64), signed=True)
        found = rule(word)
        if isinstance(found, Word):
            applied += 1
            for on in (0, 1):
                given: dict[Hashable, Any] = {"x": values[0], "y": values[1], "bit": np.uint64(on)}
                assert np.all(evaluate_arrays(found, given) == evaluate_arrays(word, given))
    bits = [(1, X & 4), (1, X & 1)]
    others = ((1, 0, bits, True), (0, 1, bits, True), (0, 0, bits, False), (0, 0, [*bits, (-1, Y & 1)], True),
              (0, 0, [*bits, (1, Y)], True), (0, 0, [(1, X & 4), (1, Y & 1)], True))
    for number, least, other, signed in others:
        assert rule(sum_of((), least, 64).less(sum_of(other, number, 64), signed=signed)) is None
    return applied


@checks(*builder.IMPOSSIBLE.rules)
def impossible_settings(rule: Rule) -> int:
    words, applied = WordBuilder(), 0
    x, y = leaf_words(words, 3, 3)
    every = all_values([x, y])
    difference = words.sum([(1, x), (-1, y)], 0)
    flags = [words.matches(word, mask, pattern) for word in (x, y) for mask in range(1, 8) for pattern in range(8)
             if not pattern & ~mask]
    flags += [words.at_least(word, least) for word in (x, difference) for least in range(-3, 9, 2)]
    bits = [words.bit(word, place) for word in (x, y) for place in range(3)] + [words.bit(flag) for flag in flags]
    values = {bit: value_of(bit.flag, every) for bit in bits}
    for a, b in permutations(bits, 2):
        never = rule(a, b)
        if isinstance(never, tuple):
            applied += 1
            assert not np.any((values[a] == never[0]) & (values[b] == never[1]))
    return applied


@checks(*steps.STEPS.rules)
def functions_with_steps(rule: Rule) -> int:
    """All functions with two values, and some with three, of totals from 0 to 7, -7 to 0, -2 to 5 and 0 to 7."""
    words, applied = WordBuilder(), 0
    x, y, flag = leaf_words(words, 3, 2, 1)
    every = all_values([x, y, flag])
    for terms in (((1, x, 7, 0),), ((-1, x, 7, 0),), ((1, x, 5, 0), (-2, flag, 1, 0)), ((2, y, 3, 0), (1, x, 2, 1))):
        at = total_value(terms, every)
        total = Total(terms, at.min(), at.max())
        for values in [*product((3, 5), repeat=8), *product((3, 5, 6), repeat=4)]:
            found = [(total.low + i, value) for i, value in enumerate(values) if i == 0 or value != values[i - 1]]
            found = [step for step in found if step[0] <= total.high]
            table = rule(words, total, found) if len(found) <= MOST_STEPS + 1 else None
            if isinstance(table, BitTable):
                applied += 1
                expected = [next(value for place, value in reversed(found) if place <= t) for t in at]
                assert np.all(table_value(table, every) == expected)
    return applied


@checks(*divisions.WHOLES.rules)
def wholes_of_divisions(rule: Rule) -> int:
    """Dividends of one digit, and of a rest and a digit; also too large ones, and a rest by another divisor."""
    words, base, applied = WordBuilder(), 4, 0
    x, y, z = leaf_words(words, 3, 3, 3)
    every = all_values([x, y, z])

    def quantity(word: Word, *weights: int, constant: int = 0) -> Quantity:
        return Quantity({bit_table(words.bit(word, i), 0, 1): c for i, c in enumerate(weights) if c}, constant)

    def value(of: Quantity) -> Numbers:
        return of.constant + sum((c * table_value(part, every) for part, c in of.terms.items()), start=0 * every[x])

    rest = words.remainder(words.masked(x, 3), y)
    bits = tuple(words.bit(rest, place) for place in range(2))
    divisor, before = quantity(y, 1, 2, 4), quantity(x, 1, 2)
    known = Division(before, divisor, before, 1, (x, y), 2, (), bits)
    left = Quantity({bit_table(bit, 0, 1): base << place for place, bit in enumerate(bits)}, 0)
    for weights, constant, others in product(product((0, 1, 2), repeat=3), (-1, 0, 1), ((), (known,))):
        digit = quantity(z, *weights, constant=constant)
        is_digit = constant >= 0 and constant + sum(weights) < base
        for dividend, by in ((digit, divisor), (digit.plus(left), divisor), (digit.plus(left, 2), divisor),
                             (digit.plus(left), quantity(y, 1, 2))):
            found = rule(dividend, by, 1, base, others)
            is_rest = bool(others) and by == divisor and dividend == digit.plus(left)
            wanted = dividend == digit if rule is divisions.begin_division else is_rest
            assert (found is not None) == (is_digit and wanted)
            if isinstance(found, Whole):
                applied += 1
                a, d, n = value(dividend), value(by), value(found.number)
                some = np.maximum(d, 1)
                assert np.all((a < base * d) | (d == 0))
                assert np.all(np.where(d, (n // some % base == a // some) & (n % some == a % some), n == a))
    return applied


# Nodes as functions of bits


@checks(*node_rules.NODES.rules)
def nodes(rule: Rule) -> int:
    """Each kind of node, made of the rows of one word: its table has the node's value for every word."""
    graph, words, applied = Graph(), WordBuilder(), 0
    (word,) = leaf_words(words, 4)
    rows = [graph.node(op.LOAD, (), row, ends=(-1.0, 1.0), domain=BIT) for row in range(4)]
    given = graph.node(op.GIVEN, (), (0, 0, 0, -1.0, 1.0, BIT))

    def leaf(node: Node) -> BitTable:
        return bit_table(words.bit(word, node.data), -ONE, ONE)

    functions = BitFunctions(words, leaf, {given: leaf(rows[0])})
    values: dict[Node, Array] = {row: (np.arange(16) >> i & 1).astype(np.float64) * 2 - 1 for i, row in enumerate(rows)}
    values[given] = values[rows[0]]
    codes = [graph.code([(row, sign) for row in pair]) for pair in (rows[:2], rows[2:]) for sign in (1.0, -1.0)]
    for a, b in combinations_with_replacement(codes, 2):
        signs = [[values[row] * sign for row, sign in zip(code.args, code.data, strict=True)] for code in (a, b)]
        match = graph.node(op.MATCH, (a, b), np.array([0.5]))
        values[match] = np.where(np.all(np.equal(*map(np.array, signs)), axis=0), 0.5, 0.0)
    for row in rows:
        checked = graph.node(op.BITS, (row,))
        values[checked] = values[row]
    for one, other in combinations_with_replacement(list(values), 2):
        for made in (graph.node(op.MUL, (one, other)), graph.node(op.FMA, (one, other), -2.0),
                     graph.node(op.SAME, (one,), (None, one.low, one.high)), graph.node(op.FMA, (one,), 0.5)):
            values[made] = node_value(made, values)
    for node, bias in product(list(values)[::5], (-1.0, 0.5)):
        relu = graph.node(op.RELU, (node,), (2.0, np.array([bias])))
        values[relu] = node_value(relu, values)
    for number in CONSTANTS:
        values[graph.node(op.CONSTANT, (), np.array([number]))] = np.full(16, number)
    every = all_values([word])
    for node, expected in values.items():
        table = rule(functions, node)
        if isinstance(table, BitTable):
            applied += 1
            assert np.all(table_value(table, every) == (expected * ONE).astype(object))
    return applied
