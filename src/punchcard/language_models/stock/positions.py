"""Where a column is: how a head finds the column so many places back, and the latest of several.

Two ways, for two architectures. A score is a product of a query and a key; `margin` is what the best column must lead by.

Learned positions (GPT-2). A table has for each position p the bits of p, and those of p - 1, p - 2, ... So many places back
is a match of these bits. The latest of several columns: SPACING positions more are worth a margin, each entry of a query
that does not agree costs as much as all positions together.

Rotary positions (Llama). A head has pairs of dimensions that turn with the position, pair j by r^-j a position, r about 3. A
pair with a constant key, and a constant query that is turned back by k positions, scores cos(r^-j (distance - k)): the sum
over the fast pairs is largest at distance k. In one slow pair, which turns by a right angle in the whole context,
cos(f distance + pi / 4) falls with the distance by f / sqrt(2) a position or more. Pairs that turn by less than 2^-20 in the
whole context compare bits.

In both, a query that agrees is compared with a constant, so that a match scores 0 and a norm that is off by a factor does
not change it: sum of (q k) - n, the number of entries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from punchcard.card.layout import Layout, RowBlock
from punchcard.errors import SizeError
from punchcard.language_models.stock.decoder import ONE, ContextHead, number_bits
from punchcard.transformer.expression import Array, Expression, Rows, rows, stack

BACK = "back"
POSITION = "position"
RATIO = 3.0
"""About how much slower each pair turns than the one before."""
SPACING = 2
"""Columns with the same key are so many positions apart, or more: no token of a text is at once label, operand and value."""
LEAST_POSITIONS = 64
STILL = 2.0**-20
"""A pair that turns by less than this in the whole context is used as if it stood still."""


@dataclass(frozen=True)
class LearnedPositions:
    """A table of positions: for each its own bits, and those of the position `back` places before, up to `most_back`."""

    count: int
    most_back: int
    head_size: int = 64

    @property
    def bits(self) -> int:
        return max(1, (self.count - 1).bit_length())

    def blocks(self) -> list[RowBlock]:
        """The rows that a position sets."""
        return [RowBlock(POSITION, self.bits), *(RowBlock(f"{BACK}{k}", self.bits) for k in range(1, self.most_back + 1))]

    def table(self, layout: Layout) -> Array:
        """The columns that are added to those of the tokens. The first k positions have none k back: their own counts."""
        found = np.zeros((self.count, layout.width))
        own = np.arange(self.count)
        found[:, layout.rows(POSITION)] = number_bits(own, self.bits)
        for k in range(1, self.most_back + 1):
            found[:, layout.rows(f"{BACK}{k}")] = number_bits(np.where(own >= k, own - k, own), self.bits)
        return found

    def score(self, head: ContextHead, layout: Layout, margin: float) -> tuple[Array, Array]:
        """Query and key of a head: matrices of `head_size` rows, before a score is divided by sqrt(head_size)."""
        own, one = rows(layout, POSITION), rows(layout, ONE)
        if head.query is None or head.key is None:
            places = rows(layout, f"{BACK}{head.back}")
            return self._placed(margin * centered_query(places, one), centered_key(own, one))
        worth = margin * (self.count / SPACING + 1) / 2  # an entry that does not agree costs twice this
        number = own.total([2.0**i / 2 / SPACING for i in range(self.bits)])
        return self._placed(stack(worth * centered_query(head.query, one), margin * one),
                            stack(centered_key(head.key, one), number))

    def _placed(self, query: Expression, key: Expression) -> tuple[Array, Array]:
        if query.size > self.head_size:
            raise SizeError(f"a head of {self.head_size} dimensions cannot compare {query.size} entries")
        found = np.zeros((2, self.head_size, query.width))
        found[0, :query.size], found[1, :query.size] = query.linear, key.linear
        return found[0], found[1]


@dataclass(frozen=True)
class RotaryPositions:
    """Positions by turning pairs of dimensions: i and i + head_size / 2 are a pair."""

    count: int
    most_back: int
    head_size: int = 128

    @property
    def slow(self) -> int:
        """The pair that turns by a right angle in the whole context."""
        return max(1, round(math.log(2 * self.count / math.pi, RATIO)))

    @property
    def ratio(self) -> float:
        """How much slower each pair turns than the one before."""
        return float((2 * self.count / math.pi) ** (1 / self.slow))

    @property
    def theta(self) -> float:
        """The base of the frequencies, as configurations have it."""
        return float(self.ratio ** (self.head_size // 2))

    @cached_property
    def frequencies(self) -> Array:
        return np.asarray(self.ratio ** -np.arange(self.head_size // 2, dtype=np.float64))

    @property
    def still(self) -> int:
        """The first pair that does not turn."""
        return int(np.argmax(self.frequencies * self.count <= STILL))

    @cached_property
    def lead(self) -> float:
        """By how much the right distance leads any other in the sum over the fast pairs."""
        away = np.concatenate([np.arange(-self.most_back, 0), np.arange(1, self.count)])
        fast = self.frequencies[:self.slow]
        return float(np.min((1 - np.cos(np.outer(fast, away))).sum(axis=0)))

    def blocks(self) -> list[RowBlock]:
        """No row of a column is set by its position."""
        return []

    def score(self, head: ContextHead, layout: Layout, margin: float) -> tuple[Array, Array]:
        """Query and key of a head: matrices of `head_size` rows, before a score is divided by sqrt(head_size)."""
        one, half = layout.rows(ONE).start, self.head_size // 2
        query, key = np.zeros((2, self.head_size, layout.width))
        if head.query is None or head.key is None:
            fast, back = np.arange(self.slow), float(head.back or 0)
            height = margin / self.lead
            key[fast, one] = 1.0
            query[fast, one] = height * np.cos(self.frequencies[fast] * back)
            query[fast + half, one] = -height * np.sin(self.frequencies[fast] * back)
            return query, key
        # cos(f d + pi / 4) falls by f / sqrt(2) at least: by a margin in SPACING positions, with an eighth to spare
        height = 1.125 * math.sqrt(2) * margin / SPACING / float(self.frequencies[self.slow])
        key[self.slow, one] = 1.0
        query[self.slow, one] = query[self.slow + half, one] = height * math.sqrt(0.5)
        worth = (math.sqrt(2) * height + margin) / 2  # an entry that differs costs twice this
        single = rows(layout, ONE)
        bits, wanted = centered_key(head.key, single), worth * centered_query(head.query, single)
        if self.still + bits.size > half:
            raise SizeError(f"a head of {self.head_size} dimensions cannot compare {bits.size} entries over "
                            f"{self.count} positions")
        places = slice(self.still, self.still + bits.size)
        query[places], key[places] = wanted.linear, bits.linear
        return query, key


Positions = LearnedPositions | RotaryPositions


def centered_query(query: Expression, one: Rows) -> Expression:
    """A query with the number of its entries taken off, so that a match scores 0."""
    return stack(query, -float(query.size) * one)


def centered_key(key: Expression, one: Rows) -> Expression:
    """The key of a `centered_query`."""
    return stack(key, one)
