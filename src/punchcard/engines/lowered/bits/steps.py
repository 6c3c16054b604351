"""Functions of an integer that are flat but for steps: which integer operation they are.

A sum of ReLUs of a linear form over bits is piecewise linear in an integer T. On the integers from its least to its
greatest value it changes only where a ReLU opens; between two such places its ends tell all of it. Where it is flat
there, it is one of

    a bit of T + k              the steps lie 2^p apart
    whether (T + k) mod 2^p is below a limit   the steps repeat after 2^p
    flags, T at least b         anything else with few steps
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from punchcard.engines.lowered.bits.table import BitTable, bit_table, constant_table, without_idle_bits
from punchcard.engines.lowered.bits.word import FULL, Bit, Word, Words

MOST_STEPS = 6


@dataclass(frozen=True)
class Total:
    """An integer: coefficients times words, each masked and then shifted to the right; `low` and `high` bound it."""

    terms: tuple[tuple[int, Word, int, int], ...]
    low: int
    high: int

    def word(self, words: Words) -> Word:
        """The integer as it is."""
        return words.sum(((c, words.shifted(words.masked(w, mask), shift)) for c, w, mask, shift in self.terms), 0)

    def lowest(self, words: Words, bits: int, constant: int, sign: int = 1) -> Word:
        """A word that agrees with the integer or its negative, plus a constant, in its lowest bits.

        Higher bits of its terms may come in.
        """
        terms = []
        for c, word, mask, shift in self.terms:
            valuation = (c & -c).bit_length() - 1
            idle = max(0, bits - valuation) + shift  # from here on, a bit of the word changes only what does not count
            whole = mask | ((1 << word.width) - 1 & ~((1 << idle) - 1))
            if whole >> shift == (1 << max(0, word.width - shift)) - 1:
                terms.append((sign * c, words.shifted(word, shift)))
            else:
                terms.append((sign * c, words.shifted(words.masked(word, mask), shift)))
        return words.sum(terms, constant)

    @property
    def plain(self) -> Word | None:
        """The one word that it is a part of, unshifted."""
        if len(self.terms) == 1 and self.terms[0][0] == 1 and not self.terms[0][3]:
            return self.terms[0][1]
        return None


def steps_of(low: int, high: int, kinks: Sequence[tuple[int, int]], value: Callable[[int], int],
             ) -> list[tuple[int, int]] | None:
    """Where a piecewise linear function of an integer takes which value, if it has steps alone: (from, value) in order.

    `kinks` are fractions, between which the function is linear.
    """
    places = {low, high}
    for numerator, denominator in kinks:
        below = numerator // denominator
        places |= {place for place in (below, below + 1) if low <= place <= high}
    found: list[tuple[int, int]] = []
    before = low
    for place in sorted(places):
        now = value(place)
        if not found or found[-1][1] != now:
            if found and place - before > 1:
                return None
            found.append((place, now))
            if len(found) > MOST_STEPS + 1:
                return None
        before = place
    return found


def table_of_steps(words: Words, total: Total, steps: list[tuple[int, int]]) -> BitTable:
    """The function of `steps_of`, over bits."""
    if len(steps) == 1:
        return constant_table(steps[0][1])
    values = sorted({value for _, value in steps})
    places = [place for place, _ in steps[1:]]
    if len(values) == 2:
        found = _periodic(words, total, places, steps[0][1], next(v for v in values if v != steps[0][1]))
        if found is not None:
            return found
    flags = tuple(sorted(Bit(words.at_least(total.word(words), place), 0) for place in places))
    table = []
    for setting in range(1 << len(flags)):
        reached = [place for place in places if setting >> flags.index(_flag(words, total, place)) & 1]
        table.append(steps[places.index(reached[-1]) + 1][1] if reached else steps[0][1])
    return without_idle_bits(flags, table)


def _flag(words: Words, total: Total, place: int) -> Bit:
    return Bit(words.at_least(total.word(words), place), 0)


def _periodic(words: Words, total: Total, places: list[int], outside: int, inside: int) -> BitTable | None:
    """Two values that alternate: `inside` from the first place to the second, and so on with one period."""
    first = places[0]
    if len(places) == 1:
        word = total.plain
        if word is not None and total.low == 0 and first & (first - 1) == 0 and total.high < 2 * first:
            return bit_table(Bit(word, first.bit_length() - 1), outside, inside)
        return None
    length = places[1] - first
    if len(places) == 2:
        bits = max(first - total.low + length, total.high - first + 1).bit_length()
        bits -= max(first - total.low + length, total.high - first + 1) == 1 << bits - 1
    else:
        bits = (places[2] - first).bit_length() - 1
    period = 1 << bits
    if bits >= FULL - 1 or first - total.low > period - length:
        return None
    if any(place != first + (k // 2) * period + (k % 2) * length for k, place in enumerate(places)):
        return None
    following = first + (len(places) // 2) * period + (len(places) % 2) * length
    if total.high >= following:
        return None
    if 2 * length == period:
        plain, turned = (_least(k, bits) for k in (length - first, -first))
        # the bit of T + k, or of -T - k - 1, which has all bits turned
        options = [(abs(k), off, of, k) for k, off, of in (
            (plain, 0, 1), (turned, 1, 1), (-turned - 1, 0, -1), (-plain - 1, 1, -1))]
        _, off, sign, constant = min(options, key=lambda option: (option[0], option[1], -option[2]))
        bit = Bit(total.lowest(words, bits, constant, sign), bits - 1)
        return bit_table(bit, *((inside, outside) if off else (outside, inside)))
    flag = words.below(total.lowest(words, bits, _least(-first, bits)), bits, length)
    return bit_table(Bit(flag, 0), outside, inside)


def _least(number: int, bits: int) -> int:
    """The number nearest to 0 that agrees with another in its lowest bits."""
    rest = number & (1 << bits) - 1
    return rest - (1 << bits) if rest > 1 << bits - 1 else rest
