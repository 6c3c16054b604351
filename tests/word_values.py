"""Words in plain Python: what each is for given leaves, so that tests can compare with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from punchcard.engines.lowered.bits.table import BitTable
from punchcard.engines.lowered.bits.word import FULL, Bit, Word, Words

WHOLE = (1 << FULL) - 1
Leaves = Mapping[Word, int]


def value_of(word: Word, leaves: Leaves) -> int:
    """The 64 bits of a word; a flag is 0 or 1."""
    if word in leaves:
        return leaves[word]
    args = [value_of(arg, leaves) for arg in word.args]
    if word.op == "constant":
        return int(word.data)
    if word.op == "shift":
        return _shifted(args[0], word.data)
    if word.op == "mask":
        return int(args[0] & word.data)
    if word.op == "sum":
        coefficients, constant = word.data
        return int(constant + sum(c * x for c, x in zip(coefficients, args, strict=True))) & WHOLE
    if word.op == "at least":
        return int((args[0] if args[0] < 1 << FULL - 1 else args[0] - (1 << FULL)) >= word.data)
    if word.op == "below":
        bits, limit = word.data
        return int(args[0] % (1 << bits) < limit)
    if word.op == "equal":
        return int(args[0] == args[1])
    if word.op == "matches":
        mask, pattern = word.data
        return int(args[0] & mask == pattern)
    if word.op == "shift by":
        return _shifted(args[0], word.data * args[1])
    if word.op == "chosen":
        return args[1:][args[0]]
    if word.op == "union":
        total = 0
        for x in args:
            total |= x
        return total
    assert word.op == "logic", word
    table, places = word.data
    inputs = [WHOLE * (x >> shift & 1) if everywhere else _shifted(x, shift)
              for x, (shift, everywhere) in zip(args, places, strict=True)]
    return sum(table[sum((x >> at & 1) << j for j, x in enumerate(inputs))] << at for at in range(FULL))


def _shifted(value: int, places: int) -> int:
    return value >> places if places >= 0 else value << -places & WHOLE


def bit_of(bit: Bit, leaves: Leaves) -> int:
    return _shifted(value_of(bit.word, leaves), bit.place) & 1


def few_value(table: BitTable, leaves: Leaves) -> int:
    """The value of a function of bits."""
    return table.values[sum(bit_of(bit, leaves) << j for j, bit in enumerate(table.bits))]


def leaf_words(words: Words, *widths: int) -> list[Word]:
    return [words.leaf("leaf", number, width) for number, width in enumerate(widths)]


def all_values(leaves: list[Word]) -> Iterator[Leaves]:
    """Every setting of narrow leaves."""
    for values in product(*(range(1 << leaf.width) for leaf in leaves)):
        yield dict(zip(leaves, values, strict=True))
