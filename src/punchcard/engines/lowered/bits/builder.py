"""The integer operations of generated code, as words: 64 bits wide, or one bit for a flag.

`width` of a word says how many of its bits may be set; sums, which may be negative, have all. A bit of the loop is a place
in a word. Equal words are one word, so what several bits share is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from punchcard.engines.lowered.rules import RuleTable
from punchcard.words.word import Numbering, Word, as_signed, constant, logic, select, sum_of, variable

CHOICES: RuleTable[[Word, Sequence[Word]], Word] = RuleTable("choices")
"""One of several words, by a number that counts them."""
IMPOSSIBLE: RuleTable[[Bit, Bit], tuple[int, int]] = RuleTable("impossible settings")
"""A setting of a flag and another bit that never occurs."""


@CHOICES
def choose_shifted_right(index: Word, parts: Sequence[Word]) -> Word | None:
    """If part s is part 0 shifted right by s places, the choice is part 0 shifted right by the index.

    A mask on a part changes nothing if it keeps all bits that the shift leaves.
    """
    return _shift(parts, [parts[0] >> s for s in range(len(parts))], parts[0] >> index)


@CHOICES
def choose_shifted_left(index: Word, parts: Sequence[Word]) -> Word | None:
    """If part s is part 0 shifted left by s places, less the bits beyond those of part 0, so is the choice."""
    return _shift(parts, [parts[0] << s for s in range(len(parts))], parts[0] << index)


def _shift(parts: Sequence[Word], shifted: Sequence[Word], by_index: Word) -> Word | None:
    first, most = parts[0], (1 << parts[0].width) - 1
    if len(parts) > first.size - first.width:
        return None
    for part, whole in zip(parts[1:], shifted[1:], strict=True):
        word, mask = _masked(part)
        if word is not whole or mask & ~most or _possible_bits(whole) & most & ~mask:
            return None
    return by_index & most


def _possible_bits(shifted: Word) -> int:
    """The bits that may be set in a word shifted by a constant."""
    if shifted.value is not None:
        return shifted.value
    places = shifted.arguments[1].value or 0
    return (1 << shifted.width) - 1 & ~((1 << places) - 1 if shifted.op == "shift_left" else 0)


def _masked(word: Word) -> tuple[Word, int]:
    """A word, and which of its bits are kept."""
    if word.op == "and_" and word.arguments[1].value is not None:
        return word.arguments[0], word.arguments[1].value
    return word, (1 << word.width) - 1


@IMPOSSIBLE
def different_patterns(a: Bit, b: Bit) -> tuple[int, int] | None:
    """One word does not match two patterns that differ in a bit that both look at: the flags are never 1 together."""
    one, other = _pattern(a.word), _pattern(b.word)
    if one is None or other is None or one.word is not other.word:
        return None
    return (1, 1) if (one.pattern ^ other.pattern) & one.mask & other.mask else None


@IMPOSSIBLE
def bit_of_pattern(a: Bit, b: Bit) -> tuple[int, int] | None:
    """A word that matches a pattern has its bits: the flag is not 1 where one of them is another than in the pattern."""
    found = _pattern(a.word)
    if found is None or found.word is not b.word or not found.mask >> b.place & 1:
        return None
    return 1, 1 - (found.pattern >> b.place & 1)


class _Pattern(NamedTuple):
    """What a flag says of a word: whether some of its bits are a pattern."""

    word: Word
    mask: int
    pattern: int


def _pattern(flag: Word) -> _Pattern | None:
    """What a flag compares with a constant."""
    if flag.op != "equal" or (pattern := flag.arguments[1].value) is None:
        return None
    return _Pattern(*_masked(flag.arguments[0]), pattern)


@IMPOSSIBLE
def higher_bound(a: Bit, b: Bit) -> tuple[int, int] | None:
    """A number above a bound is above every lower bound: the first flag is not 1 where the second is 0."""
    one, other = a.word, b.word
    if not (one.op == other.op == "less" and one.data and other.data and one.arguments[1] is other.arguments[1]):
        return None
    low, high = (_signed(flag.arguments[0]) for flag in (other, one))
    return (1, 0) if low is not None and high is not None and low <= high else None


def _signed(word: Word) -> int | None:
    """The number of a constant, of which the highest bit is the sign."""
    return None if word.value is None else as_signed(word.value, word.size)


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
        self._known: dict[Hashable, Word] = {}

    def once(self, name: Hashable, make: Callable[[], Word]) -> Word:
        """A word that follows from a name, made once."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = make()
        return found

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

    def digit(self, word: Word, divisor: Word, place: int, size: int) -> Word:
        """So many bits of a quotient from a place on; ones where the divisor is 0."""
        return self._made(word.extend(FULL).divide(divisor.extend(FULL)) >> place & (1 << size) - 1)

    def remainder(self, word: Word, divisor: Word) -> Word:
        """What a division leaves; the word itself where the divisor is 0."""
        return self._made(word.extend(FULL).remainder(divisor.extend(FULL)))

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

    def truth(self, table: Sequence[int], bits: Sequence[Bit]) -> Word:
        """A function of bits as a flag."""
        return self._made(bits[0].flag if tuple(table) == (0, 1) else logic(table, [bit.flag for bit in bits]))

    def union(self, words: Sequence[Word]) -> Word:
        """Words without common bits, put together."""
        return self._made(reduce(or_, (word.extend(FULL) for word in words)) if words else constant(0, FULL))
