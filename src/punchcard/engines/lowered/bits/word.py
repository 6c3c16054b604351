"""Integers that a loop computes with: words that hold bits, and what is made of them.

A word is 64 bits wide in the code; `width` says how many of them may be set, and sums, which may be negative, have all.
A bit of the loop is a word and a place in it. Equal words are one word, so what several bits share is computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

FULL = 64


class Word:
    """One operation on words. What the data are depends on the operation (see `Words`)."""

    __slots__ = ("args", "data", "number", "op", "width")

    def __init__(self, number: int, op: str, args: tuple[Word, ...], data: Any, width: int) -> None:
        self.number, self.op, self.args, self.data, self.width = number, op, args, data, width

    @property
    def is_flag(self) -> bool:
        """Whether it is a single bit."""
        return self.width == 1

    def __lt__(self, other: Word) -> bool:
        return self.number < other.number

    def __repr__(self) -> str:
        return f"{self.op}{self.number}"


class Bit(NamedTuple):
    """A place in a word."""

    word: Word
    place: int


class Input(NamedTuple):
    """A word that a bitwise function takes: shifted right by so many places, or one bit of it in all places."""

    word: Word
    shift: int
    everywhere: bool


class Words:
    """Makes words, each once."""

    def __init__(self) -> None:
        self._words: dict[Any, Word] = {}

    def _word(self, op: str, args: tuple[Word, ...], data: Any, width: int) -> Word:
        name = (op, tuple(a.number for a in args), data)
        found = self._words.get(name)
        if found is None:
            found = self._words[name] = Word(len(self._words), op, args, data, width)
        return found

    def leaf(self, op: str, data: Any, width: int) -> Word:
        """A word from elsewhere: a state, a field of a column, a number that is tested."""
        return self._word(op, (), data, width)

    def constant(self, value: int) -> Word:
        return self._word("constant", (), value, max(1, value.bit_length()))

    def shifted(self, word: Word, places: int) -> Word:
        """To the right, or to the left where `places` is negative."""
        if not places:
            return word
        return self._word("shift", (word,), places, max(1, min(FULL, word.width - places)))

    def masked(self, word: Word, mask: int) -> Word:
        if word.width < FULL and (1 << word.width) - 1 & ~mask == 0:
            return word
        return self._word("mask", (word,), mask, max(1, mask.bit_length()))

    def sum(self, terms: Iterable[tuple[int, Word]], constant: int) -> Word:
        """Coefficients times words, and a constant, modulo 2^64."""
        ordered = tuple(sorted(terms, key=lambda term: term[1].number))
        if len(ordered) == 1 and ordered[0][0] == 1 and not constant:
            return ordered[0][1]
        return self._word("sum", tuple(w for _, w in ordered), (tuple(c for c, _ in ordered), constant), FULL)

    def at_least(self, word: Word, least: int) -> Word:
        """A flag: whether a sum is at least so much."""
        return self._word("at least", (word,), least, 1)

    def below(self, word: Word, bits: int, limit: int) -> Word:
        """A flag: whether the lowest bits of a word make a number below the limit."""
        return self._word("below", (word,), (bits, limit), 1)

    def equal(self, a: Word, b: Word) -> Word:
        """A flag: whether two words are the same."""
        return self._word("equal", (min(a, b), max(a, b)), None, 1)

    def matches(self, word: Word, mask: int, pattern: int) -> Word:
        """A flag: whether some bits of a word are a pattern."""
        return self._word("matches", (word,), (mask, pattern), 1)

    def chosen(self, index: Word, parts: Sequence[Word]) -> Word:
        """One of several words, by a number; where they are one word shifted by that number, a shift by it."""
        shift = _steady(parts)
        if shift is not None:
            return self.masked(self._word("shift by", (parts[0], index), shift[0], FULL), shift[1])
        return self._word("chosen", (index, *parts), None, max(part.width for part in parts))

    def logic(self, table: tuple[int, ...], inputs: Sequence[Input]) -> Word:
        """A bitwise function: bit j of the place in `table` is the bit of input j."""
        data = table, tuple((i.shift, i.everywhere) for i in inputs)
        return self._word("logic", tuple(i.word for i in inputs), data, FULL)

    def union(self, words: Sequence[Word]) -> Word:
        """Words without common bits, put together."""
        if not words:
            return self.constant(0)
        if len(words) == 1:
            return words[0]
        return self._word("union", tuple(words), None, max(w.width for w in words))


def exclusive(a: Word, b: Word) -> bool:
    """Whether two flags are never 1 together: one word cannot match two patterns that differ."""
    if a.op != "matches" or b.op != "matches" or a.args != b.args:
        return False
    return bool((a.data[1] ^ b.data[1]) & a.data[0] & b.data[0])


def implies(a: Word, b: Word) -> bool:
    """Whether one flag is 1 wherever another is: the same number is at least so much, and at least less."""
    return a.op == b.op == "at least" and a.args == b.args and bool(a.data >= b.data)


def _steady(parts: Sequence[Word]) -> tuple[int, int] | None:
    """The direction and the mask, where part s is the first word shifted by s places, in what the mask leaves."""
    first, most = parts[0], (1 << parts[0].width) - 1
    if first.width >= FULL or len(parts) > FULL - first.width:
        return None
    for direction in (1, -1):
        for s, part in enumerate(parts[1:], start=1):
            mask = most
            if part.op == "mask":
                mask, part = part.data, part.args[0]
            left = most >> s if direction > 0 else most << s & most
            if part.op != "shift" or part.args[0] is not first or part.data != direction * s or mask & left != left or (
                    mask & ~most):
                break
        else:
            return direction, most
    return None
