"""Rewrite rules on words: a choice that is a shift, and settings of two flags that never occur."""

from __future__ import annotations

from collections.abc import Sequence

from punchcard.engines.lowered.rules import RuleTable
from punchcard.words.word import Word

CHOICES: RuleTable[[Word, Sequence[Word]], Word] = RuleTable("choices")
"""One of several words, by a number that counts them."""
IMPOSSIBLE: RuleTable[[Word, Word], tuple[int, int]] = RuleTable("impossible settings")
"""A setting of two flags that never occurs."""


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
    places = shifted.arguments[1].value or 0
    return (1 << shifted.width) - 1 & ~((1 << places) - 1 if shifted.op == "shift_left" else 0)


def _masked(word: Word) -> tuple[Word, int]:
    """A word, and which of its bits are kept."""
    if word.op == "and_" and word.arguments[1].value is not None:
        return word.arguments[0], word.arguments[1].value
    return word, (1 << word.width) - 1


@IMPOSSIBLE
def different_patterns(a: Word, b: Word) -> tuple[int, int] | None:
    """One word does not match two patterns that differ in a bit that both look at: the flags are never 1 together."""
    if not a.op == b.op == "equal" or a.arguments[1].value is None or b.arguments[1].value is None:
        return None
    (word, mask), (other, its) = _masked(a.arguments[0]), _masked(b.arguments[0])
    differ = (a.arguments[1].value ^ b.arguments[1].value) & mask & its
    return (1, 1) if word is other and differ else None


@IMPOSSIBLE
def higher_bound(a: Word, b: Word) -> tuple[int, int] | None:
    """A number above a bound is above every lower bound: the first flag is not 1 where the second is 0."""
    if not (a.op == b.op == "less" and a.data and b.data and a.arguments[1] is b.arguments[1]):
        return None
    low, high = (_signed(flag.arguments[0]) for flag in (b, a))
    return (1, 0) if low is not None and high is not None and low <= high else None


def _signed(word: Word) -> int | None:
    """The number of a constant, of which the highest bit is the sign."""
    return None if word.value is None else word.value - (1 << word.size if word.value >> word.size - 1 else 0)
