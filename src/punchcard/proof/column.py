"""One column of an unknown card, and words of which nothing or little is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import z3

from punchcard.proof.forms import Form, Term


@dataclass(eq=False)
class Column:
    """A column: its region, its number, its words by the names of blocks, and its rows when a loop begins."""

    region: str
    place: Term
    words: dict[str, Term]
    rows: list[Form]
    name: str
    attended: list[Sequence[Form]] = field(default_factory=list)
    """Its rows after the attention of each layer, as far as they were asked for."""
    later: list[Sequence[Form]] = field(default_factory=list)
    """Its rows after each layer."""
    taken: dict[tuple[int, int], list[Form]] = field(default_factory=dict)
    """What each head of each layer gives to it."""
    units: dict[int, dict[int, Form]] = field(default_factory=dict)
    """What the hidden units of each layer take, before the ReLU."""
    read: dict[int, Sequence[Form]] = field(default_factory=dict)
    """Its rows as the ReLUs of a layer read them, where some are integers by promise."""


@dataclass(frozen=True)
class ColumnCode:
    """A block that holds the columns' numbers, but for an offset: which bit is which, and how a code becomes a number."""

    places: dict[int, int]
    size: int
    first: int
    start: int
    place_bits: int

    def place(self, code: Term) -> Term:
        """The number of the column with this code."""
        offset = z3.simplify(code - z3.BitVecVal(self.first, self.size))
        wide = max(self.size, self.place_bits)
        place = (z3.ZeroExt(wide - self.size, offset) if wide > self.size else offset) + z3.BitVecVal(self.start, wide)
        return z3.simplify(z3.Extract(self.place_bits - 1, 0, place))


def unknown(name: str, size: int) -> Term:
    """A word of which nothing is known. The name is for people: no two are the same word because they have one name."""
    return z3.FreshConst(z3.BitVecSort(size), name)


def extended(word: Term, size: int) -> Term:
    """A word with zeros above."""
    return z3.ZeroExt(size - word.size(), word) if size > word.size() else word


def is_unknown(word: Term) -> bool:
    """Whether nothing is known of a word: it is a name, or names put together."""
    if z3.is_app_of(word, z3.Z3_OP_CONCAT):
        return all(is_unknown(word.arg(i)) for i in range(word.num_args()))
    return bool(z3.is_const(word) and word.decl().kind() == z3.Z3_OP_UNINTERPRETED)


def joined(words: Iterable[Term]) -> Term:
    """Words one above the other, the lowest first."""
    highest, *rest = reversed(list(words))
    return z3.simplify(z3.Concat(highest, *rest)) if rest else highest


def with_parts(name: str, parts: Mapping[str, int], word: Term) -> dict[str, Term]:
    """A block's word, and those of its parts."""
    found, first = {name: word}, 0
    for part, size in parts.items():
        found[f"{name}.{part}"] = z3.simplify(z3.Extract(first + size - 1, first, word))
        first += size
    return found


def has_bits(word: Term, mask: int, match: int) -> Term:
    """Whether a word has these bits in the mask."""
    return word & z3.BitVecVal(mask, word.size()) == z3.BitVecVal(match, word.size())


def masked(word: Term, mask: int, match: int) -> Term:
    """A word whose bits in the mask are known."""
    parts = []
    for place in reversed(range(word.size())):
        known = mask >> place & 1
        parts.append(z3.BitVecVal(match >> place & 1, 1) if known else z3.Extract(place, place, word))
    return z3.simplify(z3.Concat(*parts))
