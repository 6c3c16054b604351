"""Words in another form that is better to compile: rules that are applied where code is written, after all analysis."""

from __future__ import annotations

from typing import NamedTuple, cast

from punchcard.engines.lowered.rules import RuleTable
from punchcard.words.word import Word, constant, sum_of

WRITTEN: RuleTable[[Word], Word] = RuleTable("words as they are written")
"""A word as the code computes it."""


@WRITTEN
def add_whole_words(word: Word) -> Word | None:
    """A sum of the high parts of two words and a bit, moved up again, is the sum of the whole words, but for the carry of
    their low parts: (x >> n) + (y >> n) + b + k = (x + y >> n) + b - carry + k. For x + y the carry is 0 or 1; for
    x - y it is -1 where the low part of x is below that of y, else 0. And ~s is -s - 1.

    Where the bit is that carry, worked out earlier in the loop, LLVM sees that the two cancel: one addition is left.
    """
    found = _high_parts(word)
    if found is None:
        return None
    low, size = (1 << found.places) - 1, word.size
    parts = sum_of([(1, found.x & low), (found.sign, found.y & low)], 0, size)
    carry = constant((low + 1 if found.sign > 0 else 0) - 1, size).less(parts, signed=True)
    left = sum_of([(1, found.bit), (-1, carry.extend(size))], found.number + (found.sign < 0), size)
    whole = sum_of([(1, found.x), (found.sign, found.y), (low + 1, left)], 0, size)
    return (~whole if found.turned else whole) & ~low % (1 << size)


class _HighParts(NamedTuple):
    """(x >> places) + sign (y >> places) + bit + number, or ~ of it where `turned`."""

    x: Word
    y: Word
    sign: int
    bit: Word
    number: int
    places: int
    turned: bool


def _high_parts(word: Word) -> _HighParts | None:
    """What is moved up in a word, where it is the sum or difference of the high parts of two words, and a bit."""
    if word.op != "shift_left" or word.arguments[0].op != "sum":
        return None
    total, places = word.arguments[0], word.arguments[1].value
    if places is None or not 0 < places < word.size - 1 or len(total.arguments) != 3:
        return None
    coefficients, number = cast(tuple[tuple[int, ...], int], total.data)
    terms = list(zip(coefficients, total.arguments, strict=True))
    bits = [(c, part) for c, part in terms if part.width == 1]
    if len(bits) != 1 or abs(bits[0][0]) != 1:
        return None
    turn, bit = bits[0]
    high = [(turn * c, part.arguments[0]) for c, part in terms
            if part.op == "shift_right" and not part.data and part.arguments[1].value == places and part is not bit]
    high.sort(key=lambda term: -term[0])
    if [c for c, _ in high] not in ([1, 1], [1, -1]):
        return None
    (_, x), (sign, y) = high
    return _HighParts(x, y, sign, bit, number if turn > 0 else -number - 1, places, turn < 0)
