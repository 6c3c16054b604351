"""Words: every operation, on all numbers of a few bits and on some of 64, agrees in all renderers with what it should be."""

from __future__ import annotations

import ctypes
import random
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import z3

from punchcard.engines.lowered.bits.builder import FULL, WordBuilder
from punchcard.machines.in_c import compile_library, compiler
from punchcard.words.renderer import Renderer, evaluate, evaluate_arrays, written_out
from punchcard.words.text import PYTHON, c_text, c_type, python_function
from punchcard.words.word import INTEGERS, Numbering, Word, constant, join, logic, select, sum_of, variable
from punchcard.words.z3_terms import as_bits, z3_terms
from tests.cases import soaked, wrap
from tests.riscv_reference import divide, remainder
from tests.word_values import WHOLE, as_machine_code, leaf_words

SIZE = 4
MASK = (1 << SIZE) - 1
X, Y, C = variable("x", SIZE), variable("y", SIZE), variable("c", 1)
NAMES = ("x", "y", "c")
ALL = [(x, y, c) for x in range(1 << SIZE) for y in range(1 << SIZE) for c in (0, 1)]


def signed(value: int) -> int:
    return wrap(value, SIZE)


class Case(NamedTuple):
    word: Word
    number: Callable[[int, int, int], int]


CASES: dict[str, Case] = {
    "add": Case(X + Y, lambda x, y, c: x + y),
    "add a constant": Case(X + 3, lambda x, y, c: x + 3),
    "add a large constant": Case(X + 13, lambda x, y, c: x + 13),
    "subtract": Case(X - Y, lambda x, y, c: x - y),
    "negate": Case(-X, lambda x, y, c: -x),
    "multiply": Case(X * Y, lambda x, y, c: x * y),
    "divide": Case(X.divide(Y), lambda x, y, c: divide(x, y)),
    "remainder": Case(X.remainder(Y), lambda x, y, c: remainder(x, y)),
    "signed divide": Case(X.divide(Y, signed=True), lambda x, y, c: divide(signed(x), signed(y))),
    "signed remainder": Case(X.remainder(Y, signed=True), lambda x, y, c: remainder(signed(x), signed(y))),
    "and": Case(X & Y, lambda x, y, c: x & y),
    "or": Case(X | Y, lambda x, y, c: x | y),
    "xor": Case(X ^ Y, lambda x, y, c: x ^ y),
    "not": Case(~X, lambda x, y, c: ~x),
    "mask": Case(X & 6, lambda x, y, c: x & 6),
    "shift left": Case(X << Y, lambda x, y, c: x << y),
    "shift right": Case(X >> Y, lambda x, y, c: x >> y),
    "signed shift": Case(X.signed_shift(Y), lambda x, y, c: signed(x) >> y),
    "shift left by few": Case(X << (Y & 3), lambda x, y, c: x << (y & 3)),
    "shift by constants": Case((X << 1) ^ (X >> 2) ^ X.signed_shift(3), lambda x, y, c: x << 1 ^ x >> 2 ^ signed(x) >> 3),
    "shift by too much": Case((X << 4) | (X >> 7), lambda x, y, c: 0),
    "equals": Case(X.equals(Y), lambda x, y, c: x == y),
    "differs": Case(X.differs(Y), lambda x, y, c: x != y),
    "less": Case(X.less(Y), lambda x, y, c: x < y),
    "signed less": Case(X.less(Y, signed=True), lambda x, y, c: signed(x) < signed(y)),
    "negative": Case(X.less(0, signed=True), lambda x, y, c: signed(x) < 0),
    "at least": Case(X.at_least(5, signed=True), lambda x, y, c: signed(x) >= 5),
    "positive": Case(X.at_least(1, signed=True), lambda x, y, c: signed(x) > 0),
    "very negative": Case(X.less(-5, signed=True), lambda x, y, c: signed(x) < -5),
    "truths": Case((X.less(Y) & ~C) | (C ^ X.equals(3)), lambda x, y, c: (x < y and not c) or bool(c) != (x == 3)),
    "truths as words": Case(C + X.less(Y), lambda x, y, c: c + (x < y)),
    "equal truths": Case(C.equals(X.less(Y)), lambda x, y, c: c == (x < y)),
    "truth of truths": Case(C.choose(X.less(Y), C), lambda x, y, c: x < y if c else c),
    "choose": Case(C.choose(X, Y), lambda x, y, c: x if c else y),
    "select": Case(select(Y[:2], (X, Y, X + Y, X & 1)), lambda x, y, c: (x, y, x + y, x & 1)[y & 3]),
    "bit": Case(X[2], lambda x, y, c: x >> 2),
    "bits": Case(X[1:3], lambda x, y, c: x >> 1 & 3),
    "join": Case(join(X, C, Y[1:]), lambda x, y, c: x | c << 4 | y >> 1 << 5),
    "extend": Case(X.extend(9) + Y.extend(9), lambda x, y, c: x + y),
    "signed extend": Case(X.extend(9, signed=True), lambda x, y, c: signed(x)),
    "extend truths": Case(X.less(Y).extend(9, signed=True) + C.extend(9), lambda x, y, c: c - (x < y)),
    "whole product": Case(X.extend(8, signed=True) * Y.extend(8), lambda x, y, c: signed(x) * y),
    "sum": Case(sum_of(((3, X), (-2, Y), (1, X ^ Y)), 5, SIZE), lambda x, y, c: 3 * x - 2 * y + (x ^ y) + 5),
    "sum of less": Case(sum_of(((-1, X),), 0, SIZE), lambda x, y, c: -x),
    "wide sum": Case(sum_of(((1, X.extend(64)), (-1, Y.extend(64))), 0, 64), lambda x, y, c: x - y),
    "wide shift": Case(X.extend(64, signed=True) << Y.extend(64) >> 60, lambda x, y, c: (signed(x) << y) % (1 << 64) >> 60),
    **{f"logic {number}": Case(
        logic([number >> place & 1 for place in range(8)], (X, Y, C.extend(SIZE, signed=True))),
        lambda x, y, c, number=number: sum(  # type: ignore[misc]
            (number >> ((x >> i & 1) | (y >> i & 1) << 1 | c << 2) & 1) << i for i in range(SIZE)))
       for number in range(0, 256, 5)},
}


def expected(case: Case) -> list[int]:
    return [int(case.number(*values)) % (1 << case.word.size) for values in ALL]


some_logic = pytest.mark.parametrize("name", [
    soaked(name) if name.startswith("logic") and number % 4 else name for number, name in enumerate(CASES)])
"""Every case but three quarters of the bitwise operations, which differ in their table alone."""


@some_logic
def test_integers_arrays_and_python_agree(name: str) -> None:
    case = CASES[name]
    wanted = expected(case)
    assert [evaluate(case.word, dict(zip(NAMES, values, strict=True))) for values in ALL] == wanted
    columns = np.array(ALL, dtype=np.int64).T
    found = evaluate_arrays(case.word, dict(zip(NAMES, columns, strict=True)))
    assert np.broadcast_to(found, len(ALL)).tolist() == wanted
    function = python_function(NAMES, [case.word])
    assert [function(*values)[0] for values in ALL] == wanted


def substitute(word: Word, leaf: Callable[[Word], Word]) -> Word:
    """The word with other words, such as constants, in the place of its variables."""
    def rebuild(old: Word, *arguments: Word) -> Word:
        return Word(old.op, arguments, old.size, old.data)

    return Renderer(dict.fromkeys(INTEGERS, rebuild), leaf)(word)


@some_logic
def test_known_variables_become_constants(name: str) -> None:
    case = CASES[name]
    wanted = expected(case)
    for (x, y, c), number in zip(ALL[::7], wanted[::7], strict=True):
        known = {"x": constant(x, SIZE), "y": constant(y, SIZE), "c": constant(c, 1)}
        assert substitute(case.word, lambda word, known=known: known[word.data]).value == number  # type: ignore[misc]
        half = substitute(case.word, lambda word, known=known: known[word.data] if word.data == "y" else word)  # type: ignore[misc]
        assert evaluate(half, {"x": x, "c": c}) == number


def test_terms_of_z3_agree() -> None:
    def leaf_of(values: dict[Any, int]) -> Callable[[Word], z3.ExprRef]:
        return lambda word: z3.BitVecVal(values[word.data], word.size)

    for values in ALL[::11]:
        known = dict(zip(NAMES, values, strict=True))
        render = z3_terms(leaf_of(known))
        for name, case in CASES.items():
            found = z3.simplify(as_bits(render(case.word)))
            assert (found.size(), found.as_long()) == (case.word.size, case.number(*values) % (1 << case.word.size)), name


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_c_agrees() -> None:
    text = c_text(lambda word: str(word.data))
    cases = "\n".join(f"case {i}: return {text(case.word)};" for i, case in enumerate(CASES.values()))
    kind = c_type(SIZE)
    library = compile_library(f"#include <stdint.h>\nuint64_t run(int number, {kind} x, {kind} y, {kind} c)\n"
                       f"{{ switch (number) {{\n{cases}\n}} return 0; }}\n")
    library.run.restype = ctypes.c_uint64
    for i, (name, case) in enumerate(CASES.items()):
        assert [library.run(i, *map(ctypes.c_uint32, values)) for values in ALL] == expected(case), name


def test_llvm_code_agrees() -> None:
    run = as_machine_code((X, Y, C), [case.word for case in CASES.values()])
    for values in ALL:
        wanted = {name: int(case.number(*values)) % (1 << case.word.size) for name, case in CASES.items()}
        assert dict(zip(CASES, run(values), strict=True)) == wanted


def test_equal_words_are_one_object() -> None:
    assert X + Y is X + Y
    assert variable("x", SIZE) is X
    assert variable("x", SIZE, width=2) is not X
    kept = weakref.ref(X + variable("only here", SIZE))
    assert kept() is None, "words that nobody holds go"


def test_what_is_plain_to_see_is_not_written() -> None:
    assert X + 0 is X << 0 is X & MASK is ~~X is X[0:SIZE] is X.extend(SIZE) is C.choose(X, X) is X
    assert (X & 3).width == 2
    assert (X & 3) & 7 is X & 3
    assert (X >> 3).width == 1
    assert X.extend(9).width == SIZE
    assert (X & 0).value == 0
    assert written_out(sum_of(((1, X), (-1, Y)), 0, SIZE)) is X - Y


def test_words_of_other_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="add of words of 4 and 1 bits: x, c"):
        X + C
    with pytest.raises(IndexError, match="bits 2 to 5 of a word of 4: x"):
        X[2:5]


def test_words_are_numbered_in_the_order_of_their_mention() -> None:
    numbering = Numbering()
    assert [numbering[word] for word in (Y, X + Y, Y, X)] == [0, 1, 0, 2]


def test_every_operation_has_a_case() -> None:
    pending, seen = [case.word for case in CASES.values()], set[str]()
    while pending:
        top = pending.pop()
        seen.add(top.op)
        pending += top.arguments
    assert seen == {*PYTHON, "variable", "sum", "logic"}


# Whole words, as the lowered engine builds them

WIDTHS = (64, 64, 16, 9, 1)
Pair = tuple[Word, Callable[[list[int]], int]]
"""A word, and its number from those of the leaves."""


def shift(x: int, places: int) -> int:
    return x >> places if places >= 0 else x << -places & WHOLE


def operations(rng: random.Random, words: WordBuilder, found: list[Pair]) -> list[Pair]:
    """Every operation once, on words that are there."""
    (a, x), (b, y), (c, z) = (rng.choice(found) for _ in range(3))
    k, more, by = rng.choice((1, -1, 3)), rng.choice((0, -3, 1 << 40)), rng.randint(-64, 64)
    least = rng.choice((0, -5, 1 << 20))
    mask, pattern, bits, limit = rng.getrandbits(64), rng.getrandbits(64), rng.choice((1, 4, 16)), rng.randint(1, 12)
    place, table = rng.randrange(a.size), [rng.randrange(2) for _ in range(4)]
    eight, index = words.masked(a, 255), words.masked(c, 7)
    left = [words.masked(words.shifted(eight, -s), 255) for s in range(8)]
    right = [words.shifted(eight, s) for s in range(8)]
    wide = words.shifted(b, 0)
    return [
        (words.shifted(a, by), lambda v: shift(x(v), by)),
        (words.masked(a, mask), lambda v: x(v) & mask),
        (words.sum([(k, a), (5, b)], more), lambda v: k * x(v) + 5 * y(v) + more & WHOLE),
        (words.at_least(a, least), lambda v: wrap(x(v), FULL) >= least),
        (words.below(a, bits, limit), lambda v: x(v) % (1 << bits) < limit),
        (words.equal(a, b), lambda v: x(v) == y(v)),
        (words.matches(a, mask, pattern & mask), lambda v: x(v) & mask == pattern & mask),
        (words.everywhere(a, place), lambda v: WHOLE * (x(v) >> place & 1)),
        (words.logic(table, [words.shifted(a, 0), wide]), lambda v: sum(
            table[(x(v) >> i & 1) + 2 * (y(v) >> i & 1)] << i for i in range(FULL))),
        (words.union([words.masked(a, 0xFF), words.masked(b, 0xFF00)]), lambda v: x(v) & 0xFF | y(v) & 0xFF00),
        (words.chosen(words.masked(c, 1), [a, b]), lambda v: y(v) if z(v) & 1 else x(v)),
        (words.chosen(index, left), lambda v: (x(v) & 255) << (z(v) & 7) & 255),
        (words.chosen(index, right), lambda v: (x(v) & 255) >> (z(v) & 7)),
    ]


def test_words_as_numbers_and_as_code() -> None:
    rng, words = random.Random(1), WordBuilder()
    leaves = leaf_words(words, *WIDTHS)
    made: list[Pair] = [(leaf, lambda v, i=i: v[i]) for i, leaf in enumerate(leaves)]  # type: ignore[misc]
    for _ in range(12):
        made += operations(rng, words, made)
    run = as_machine_code(leaves, [word for word, _ in made])
    for _ in range(10):
        values = [rng.getrandbits(leaf.width) for leaf in leaves]
        leaf_values = {leaf.data: value for leaf, value in zip(leaves, values, strict=True)}
        expected = [int(number(values)) for _, number in made]
        assert [evaluate(word, leaf_values) for word, _ in made] == expected
        assert run(values) == expected
