"""Words in another form that is better to compile: rules that are applied where code is written, after all analysis."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import NamedTuple, cast

from punchcard.engines.lowered.rules import RuleTable
from punchcard.words.word import Word, constant, sum_of

FEW_BITS = 3
"""Where no product in a sum has so many bits, its parts are as quickly made one by one."""
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


@WRITTEN
def multiply_words(word: Word) -> Word | None:
    """The sum of c x << j over those j for which bit i + j of y is 1, is c x (y >> i), of these bits of y. It is so modulo
    2^n as well.
    """
    if word.op != "sum":
        return None
    coefficients, number = cast(tuple[tuple[int, ...], int], word.data)
    products: dict[tuple[int, Word, int, Word, int], dict[int, Word]] = {}
    terms = []
    for c, part in zip(coefficients, word.arguments, strict=True):
        found = _gated(part)
        same = {} if found is None else products.setdefault((c, *found[:4]), {})
        if found is None or found.places in same:
            terms.append((c, part))
        else:
            same[found.places] = part
    if max(map(len, products.values()), default=0) < FEW_BITS:
        return None
    for (c, x, mask, y, first), parts in products.items():
        least = min(parts)
        if mask & (1 << max(0, -least)) - 1:
            terms += [(c, part) for part in parts.values()]
            continue
        bits = sum(1 << places - least for places in parts)
        terms.append((c, _shifted(x & mask, least) * (_shifted(y, -first - least) & bits)))
    return sum_of(terms, number, word.size)


@WRITTEN
def look_at_bits_together(word: Word) -> Word | None:
    """A sum of words with positive coefficients, too small to overflow, is above 0 where one of the words is not 0. Parts
    of one word are looked at together: ((w & m) >> s) + ((w & n) >> t) > 0 where w & (m | n) is not 0, if the shifts
    keep all bits of m and n.
    """
    if word.op != "less" or not word.data or word.arguments[0].value != 0 or word.arguments[1].op != "sum":
        return None
    total = word.arguments[1]
    coefficients, number = cast(tuple[tuple[int, ...], int], total.data)
    most = sum(c * ((1 << part.width) - 1) for c, part in zip(coefficients, total.arguments, strict=True))
    if number or min(coefficients) <= 0 or most >> total.size - 1:
        return None
    masks: dict[Word, int] = {}
    for part in total.arguments:
        whole, mask = _part(part)
        masks[whole] = masks.get(whole, 0) | mask
    if len(masks) == len(coefficients):
        return None
    return reduce(or_, (whole & mask for whole, mask in masks.items())).differs(0)


def _part(word: Word) -> tuple[Word, int]:
    """A word, and which of its bits are looked at, where they are all moved to the right."""
    places, mask = 0, (1 << word.size) - 1
    if word.op == "shift_right" and not word.data and (by := word.arguments[1].value) is not None:
        word, places = word.arguments[0], by
    if word.op == "and_" and (kept := word.arguments[1].value) is not None:
        word, mask = word.arguments[0], kept
    return word, mask >> places << places


class _Gated(NamedTuple):
    """x & mask, shifted to the left by so many places, where bit `first + places` of y is 1; else 0."""

    x: Word
    mask: int
    y: Word
    first: int
    places: int


def _gated(word: Word) -> _Gated | None:
    """A word that is part of a product."""
    mask, parts, gates = (1 << word.size) - 1, list[Word](), list[Word]()
    pending = [word]
    while pending:
        part = pending.pop()
        table = cast(tuple[int, ...], part.data) if part.op == "logic" else ()
        if part.op == "and_" or (sum(table) == 1 and table[-1]):
            pending += part.arguments
        elif part.value is not None:
            mask &= part.value
        else:
            (gates if part.op == "extend" and part.data and part.arguments[0].op == "bits" else parts).append(part)
    if len(parts) != 1 or len(gates) != 1 or gates[0].arguments[0].size != 1:
        return None
    (x,), bit = parts, gates[0].arguments[0]
    places = 0
    if x.op in ("shift_left", "shift_right") and not x.data and x.arguments[1].value is not None:
        mask &= (-1 << x.arguments[1].value) if x.op == "shift_left" else ((1 << x.size - x.arguments[1].value) - 1)
        places = x.arguments[1].value * (1 if x.op == "shift_left" else -1)
        x = x.arguments[0]
    y = bit.arguments[0]
    return _Gated(x, mask >> places if places > 0 else mask << -places, y, cast(int, bit.data) - places, places) if (
        y.size == word.size) else None


def _shifted(word: Word, places: int) -> Word:
    """To the left, or to the right where `places` is negative."""
    return word << places if places >= 0 else word >> -places


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
