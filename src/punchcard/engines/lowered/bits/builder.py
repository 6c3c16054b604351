"""The integer operations of generated code, as words: 64 bits wide, or one bit for a flag.

`width` of a word says how many of its bits may be set; sums, which may be negative, have all. A bit of the loop is a place
in a word. Equal words are one word, so what several bits share is computed once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from punchcard.engines.lowered.bits.rules import CHOICES
from punchcard.words.word import Numbering, Word, constant, logic, select, sum_of, variable

FULL = 64


class Bit(NamedTuple):
    """A place in a word. Bits are ordered by the `number` of their word."""

    number: int
    word: Word
    place: int

    @property
    def flag(self) -> Word:
        """The bit as a word of its own."""
        return self.word[self.place]


def is_flag(word: Word) -> bool:
    """Whether only one bit may be set: a flag counts in all places of a bitwise function."""
    return word.width == 1


class WordBuilder:
    """Makes words, and numbers them in the order in which they were first made."""

    def __init__(self) -> None:
        self._numbers = Numbering()

    def _made(self, word: Word) -> Word:
        self._numbers.setdefault(word, len(self._numbers))
        return word

    def bit(self, word: Word, place: int = 0) -> Bit:
        return Bit(self._numbers[word], word, place)

    def leaf(self, name: Hashable, width: int) -> Word:
        """A word from elsewhere: a state, or a field of a column."""
        return self._made(variable(name, FULL, width))

    def flag(self, name: Hashable) -> Word:
        """A flag from elsewhere: whether a number is positive, for example."""
        return self._made(variable(name, 1))

    def shifted(self, word: Word, places: int) -> Word:
        """To the right, or to the left if `places` is negative."""
        wide = word.extend(FULL)
        return self._made(wide >> places if places >= 0 else wide << -places)

    def everywhere(self, word: Word, place: int) -> Word:
        """One bit of a word, in all places."""
        return word[place].extend(FULL, signed=True)

    def masked(self, word: Word, mask: int) -> Word:
        return self._made(word.extend(FULL) & mask)

    def sum(self, terms: Iterable[tuple[int, Word]], number: int) -> Word:
        """Coefficients times words, and a number, modulo 2^64."""
        ordered = sorted(terms, key=lambda term: self._numbers[term[1]])
        return self._made(sum_of(((c, word.extend(FULL)) for c, word in ordered), number, FULL))

    def at_least(self, word: Word, least: int) -> Word:
        """A flag: whether a sum, which may be negative, is at least so much."""
        return self._made(constant(least - 1, FULL).less(word.extend(FULL), signed=True))

    def below(self, word: Word, bits: int, limit: int) -> Word:
        """A flag: whether the lowest bits of a word make a number below the limit."""
        return self._made((word.extend(FULL) & (1 << bits) - 1).less(limit))

    def equal(self, a: Word, b: Word) -> Word:
        """A flag: whether two words are the same."""
        first, last = sorted((a, b), key=self._numbers.__getitem__)
        return self._made(first.extend(FULL).equals(last.extend(FULL)))

    def matches(self, word: Word, mask: int, pattern: int) -> Word:
        """A flag: whether some bits of a word are a pattern."""
        return self._made((word.extend(FULL) & mask).equals(pattern))

    def chosen(self, index: Word, parts: Sequence[Word]) -> Word:
        """One of several words, by a number."""
        wide = [part.extend(FULL) for part in parts]
        return self._made(CHOICES.first(index, wide) or select(index, wide))

    def logic(self, table: Sequence[int], words: Sequence[Word]) -> Word:
        """A bitwise function: bit j of the place in `table` is the bit of word j."""
        return self._made(logic(table, words))

    def union(self, words: Sequence[Word]) -> Word:
        """Words without common bits, put together."""
        return self._made(reduce(or_, (word.extend(FULL) for word in words)) if words else constant(0, FULL))
