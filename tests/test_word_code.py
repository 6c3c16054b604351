"""The integer operations of generated code: each is what plain Python says, as numbers and as machine code."""

from __future__ import annotations

import random
from collections.abc import Callable

from punchcard.engines.lowered.bits.builder import FULL, WordBuilder
from punchcard.words.renderer import evaluate
from punchcard.words.word import Word
from tests.word_values import WHOLE, as_machine_code, leaf_words

WIDTHS = (64, 64, 16, 9, 1)
Pair = tuple[Word, Callable[[list[int]], int]]
"""A word, and its number from those of the leaves."""


def shift(x: int, places: int) -> int:
    return x >> places if places >= 0 else x << -places & WHOLE


def signed(x: int) -> int:
    return x - (1 << FULL) if x >> FULL - 1 else x


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
        (words.at_least(a, least), lambda v: signed(x(v)) >= least),
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
