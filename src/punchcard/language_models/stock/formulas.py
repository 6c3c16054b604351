"""Formulas that machines in stock checkpoints share: truth of bits, and differences of words over several layers.

Rows to be written are blank, -1, so a formula adds 2 where a bit is to be 1. No two of its parts hold at once.
"""

from __future__ import annotations

from punchcard.card.layout import Layout
from punchcard.language_models.stock.decoder import ONE, ContextHead, DecoderLayer
from punchcard.primitives.gated_words import carry_where, sum_where
from punchcard.primitives.literals import absent, as_numbers, bits_where, conjunction
from punchcard.transformer.build import Part, assign
from punchcard.transformer.expression import Expression, Rows, rows, stack

LONGEST_SUM = 8
"""Bits of the longest sum in one layer: a longer one may be rounded in float32, where a norm is off by its last bits."""


def chunks(word_bits: int) -> list[slice]:
    """The bits of a difference, lowest first, as many as one layer computes each."""
    count = -(-word_bits // LONGEST_SUM)
    size = -(-word_bits // count)
    return [slice(low, min(low + size, word_bits)) for low in range(0, word_bits, size)]


class Conditions:
    """Conditions on the bits of a column."""

    def __init__(self, layout: Layout) -> None:
        self.one = rows(layout, ONE)

    def holds(self, *true: Expression, false: tuple[Expression, ...] = ()) -> Expression:
        """How many of these bits are not as they should be."""
        bits = stack(*true, *false)
        count = bits.size - sum(each.size for each in false)
        return absent(bits, {i: int(i < count) for i in range(bits.size)}, self.one)

    def truth(self, *missing: Expression) -> Expression:
        """A ±1 bit: whether nothing is absent in one of these."""
        found = conjunction(missing[0], self.one)
        for other in missing[1:]:
            found = found + conjunction(other, self.one)
        return 2 * found - self.one

    def chosen(self, *words: tuple[Expression, Expression]) -> Expression:
        """The bits, 0 or 1, of the word whose condition has nothing absent: pairs of a word and what is absent for it."""
        found = bits_where(words[0][0], words[0][1], self.one)
        for word, missing in words[1:]:
            found = found + bits_where(word, missing, self.one)
        return found


def set_bits(target: Rows, bits: Expression) -> Part:
    """Set blank rows to bits that are 0 or 1."""
    return assign(target, target + 2 * bits)


def difference_layers(layout: Layout, word_bits: int, missing: Expression, chosen: Expression,
                      heads: tuple[ContextHead, ...], more: Part) -> list[DecoderLayer]:
    """Layers that set `out` to y - x where nothing is absent, and to what is `chosen` elsewhere; the first has heads."""
    one, x, y, out, carry = (rows(layout, name) for name in (ONE, "x", "y", "out", "carry"))
    layers, parts = [], chunks(word_bits)
    for at, bits in enumerate(parts):
        came = as_numbers(carry[at - 1], one) if at else one       # y - x is y + (not x) + 1
        part = set_bits(out[bits], sum_where(y[bits], -x[bits], came, missing, one) + chosen[bits])
        if at + 1 < len(parts):
            part = part + set_bits(carry[at], carry_where(y[bits], -x[bits], came, missing, one))
        layers.append(DecoderLayer(formulas=part) if at else DecoderLayer(heads, part + more))
    return layers
