"""A decoder over named bits: what a stock checkpoint is, before it has the form of one architecture.

A column of the residual stream is a vector of ±1 bits with names. A token sets some rows, its position may set others, and
the rest are blank: -1, until a head or a formula fills them. A head finds one column of the context and brings bits from
there; a feed-forward layer sets rows to formulas, as everywhere in this package. The row `one` is 1 in every column, so that
no formula needs a constant: each is then proportional to the column, and a norm that is off by a factor changes no sign.

Every bit is in a column of the checkpoint twice, as x and as -x: all x, then all -x. So the mean of a column is 0 and
its variance 1, and both LayerNorm and RMSNorm are the identity. Weights read a bit as (x - (-x)) / 2, which takes out what a
rounded mean adds to both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from punchcard.card.formats import AnyArray
from punchcard.card.layout import Layout, Region, RowBlock
from punchcard.errors import FormulaError
from punchcard.transformer.build import Part, compile_layer
from punchcard.transformer.expression import Array, Expression, Rows

NOTHING = Part()
ONE = "one"
"""The row that is 1 in every column."""
UNIT = 16.0
"""What a bit adds to a logit: the right token leads by twice this."""


@dataclass(frozen=True)
class ContextHead:
    """A head: a column takes `value` from one column of its context, and adds it to the rows `into`, which are blank.

    The column is the one `back` places before, or the latest whose `key` agrees with the `query` in every entry. Where no
    column agrees, it is the latest of those that agree in most entries.
    """

    value: Expression
    into: Rows
    query: Expression | None = None
    key: Expression | None = None
    back: int | None = None

    def __post_init__(self) -> None:
        if self.value.size != self.into.size:
            raise FormulaError(f"a value with {self.value.size} entries does not fit {self.into.name!r} with "
                               f"{self.into.size} rows")
        if (self.query is None) != (self.key is None) or (self.query is None) == (self.back is None):
            raise FormulaError("a head finds a column by query and key, or so many places back")
        if self.query is not None and self.key is not None and self.query.size != self.key.size:
            raise FormulaError(f"a query with {self.query.size} entries cannot match a key with {self.key.size}")


@dataclass(frozen=True)
class DecoderLayer:
    """Heads, then formulas."""

    heads: tuple[ContextHead, ...] = ()
    formulas: Part = NOTHING


@dataclass(frozen=True)
class StockDecoder:
    """A decoder over bits.

    vocabulary   the text of each token;  end  the token that ends a text
    embedding    for each token its rows: ±1, or 0 in rows that the position sets
    readout      for each token the weights of its logit
    """

    layout: Layout
    vocabulary: tuple[str, ...]
    end: int
    embedding: Array
    layers: tuple[DecoderLayer, ...]
    readout: Array


class Tokens(NamedTuple):
    """For each token of a vocabulary its family, and its number in it."""

    family: AnyArray
    number: AnyArray


def stream_layout(blocks: Mapping[str, int], positional: Sequence[RowBlock], positions: int) -> Layout:
    """The rows of a column: `one`, these blocks by their sizes, and those that a position sets."""
    return Layout([RowBlock(ONE, 1), *(RowBlock(name, size) for name, size in blocks.items()), *positional],
                  [Region("context", positions)])


def signs(truth: AnyArray) -> Array:
    """True as 1, False as -1."""
    return 2.0 * truth.astype(np.float64) - 1.0


def number_bits(numbers: AnyArray, size: int) -> Array:
    """Rows of ±1 bits, the lowest first; negative numbers in two's complement."""
    return signs(numbers[:, None] >> np.arange(size) & 1)


def families(counts: Sequence[int]) -> Tokens:
    """The tokens of a vocabulary with so many of each family."""
    return Tokens(np.repeat(np.arange(len(counts)), counts), np.concatenate([np.arange(count) for count in counts]))


def embedding(layout: Layout, positional: Sequence[RowBlock], bits: Mapping[str, AnyArray]) -> Array:
    """A row for each token: these bits by the names of their rows, 1 in `one`, 0 where its position sets bits, else blank.

    A flag is given as a truth for each token.
    """
    found = np.full((len(next(iter(bits.values()))), layout.width), -1.0)
    found[:, layout.rows(ONE)] = 1.0
    for name, values in bits.items():
        found[:, layout.rows(name)] = signs(values)[:, None] if values.dtype == bool else values
    for block in positional:
        found[:, layout.rows(block.name)] = 0.0
    return found


class Follower(NamedTuple):
    """When tokens of a family come next.

    after     the row of the tokens that they follow; `one` with a negative lead: they are in prompts only
    lead      the weight of that row
    bits      how many bits of their number the rows `out` say; the others say nothing
    choices   the signs of other rows, by which they differ from what else may follow
    """

    after: str
    lead: float
    bits: int
    choices: Mapping[str, int] | None = None


def readout(layout: Layout, tokens: Tokens, choice: float, followers: Sequence[Follower]) -> Array:
    """The weights of each token's logit, from its family and number; `choice` is the weight of the rows that choose."""
    family, number = tokens
    found = np.zeros((len(family), layout.width))
    out = layout.rows("out").start
    for kind, own in enumerate(followers):
        here = family == kind
        found[here, layout.rows(own.after)] = UNIT * own.lead
        for row, sign in (own.choices or {}).items():
            found[here, layout.rows(row)] = UNIT * choice * sign
        found[here, out : out + own.bits] = UNIT * number_bits(number[here], own.bits)
    return found


def feed_forward(layer: DecoderLayer, width: int) -> tuple[Array, Array]:
    """W1 and W2 of a layer's formulas. They have no biases."""
    made = compile_layer(layer.formulas, width)
    if made.b1.any() or made.b2.any():
        raise FormulaError(f"a formula of a decoder has a constant: use the row {ONE!r}")
    return made.w1, made.w2
