"""Lanes: a part of a word, chosen by the low bits of an address.

A word of n bits has n / size lanes. `lane_where` moves the chosen lane to the lowest bits (a load), `merged_where` puts low
bits into the chosen lane of another word (a store):

    load      bit i  =  sum over lanes k of [lane = k] and word_(k size + i),          i < size
    sign      the lane's highest bit, for all bits above
    store     bit j  =  word_j, less [lane = k] and word_j, and [lane = k] and new_(j - k size),    k = j // size

No two lanes are chosen at once, so the sums are 0 or 1. n units for a load, 3 n for a store.
"""

from __future__ import annotations

from punchcard.primitives.literals import absent, bits_where
from punchcard.transformer.expression import Expression, stack


def lane_where(word: Expression, size: int, lane: Expression, missing: Expression, one: Expression) -> Expression:
    """The bits, 0 or 1, of the chosen lane where nothing is absent, else 0. `lane` are the ±1 bits of its number."""
    chosen = 0.0 * one
    for k, here in enumerate(_lanes(word, size, lane, missing, one)):
        chosen = chosen + bits_where(word[k * size : (k + 1) * size], here.repeat(size), one)
    return chosen.repeat(size)


def merged_where(word: Expression, new: Expression, size: int, lane: Expression, missing: Expression,
                 one: Expression) -> Expression:
    """The bits, 0 or 1, of a word whose chosen lane is the lowest bits of `new`, where nothing is absent, else 0."""
    parts = []
    for k, here in enumerate(_lanes(word, size, lane, missing, one)):
        old = word[k * size : (k + 1) * size]
        parts.append(bits_where(old, missing.repeat(size), one) - bits_where(old, here.repeat(size), one)
                     + bits_where(new[:size], here.repeat(size), one))
    return stack(*parts)


def _lanes(word: Expression, size: int, lane: Expression, missing: Expression, one: Expression) -> list[Expression]:
    """For each lane, what is absent for it to be the chosen one."""
    return [missing + absent(lane, {j: k >> j & 1 for j in range(lane.size)}, one) for k in range(word.size // size)]
