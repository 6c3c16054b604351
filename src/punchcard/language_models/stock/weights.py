"""The weights of a stock decoder over bits, whatever architecture they are written for.

A checkpoint has a column of 2 H entries: H bits x, then -x. Weights that read it are [M, -M] / 2, weights that write to it
[M; -M], for a matrix M over the H bits. So M says everything, and a checkpoint whose two halves do not agree is refused:
then nothing that this file says of its norms is true.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from punchcard.card.formats import FORMATS
from punchcard.card.layout import Layout
from punchcard.errors import PrecisionError, WeightsError
from punchcard.export.targets import STOCK_FORMATS
from punchcard.language_models.stock.decoder import ONE, ContextHead, StockDecoder, feed_forward
from punchcard.language_models.stock.positions import LearnedPositions, Positions
from punchcard.transformer.expression import Array, rows
from punchcard.transformer.softmax import hard_product

LEAST_HALF = 128


@dataclass(frozen=True)
class StockLayer:
    """One layer over bits.

    query, key   (heads, head size, bits): scores before they are divided by sqrt(head size)
    value        (heads, head size, bits), output (heads, bits, head size)
    w1, w2       (units, bits), (bits, units): w2 relu(w1 x)
    """

    query: Array
    key: Array
    value: Array
    output: Array
    w1: Array
    w2: Array


@dataclass(frozen=True)
class StockWeights:
    """A decoder's weights: the embedding (tokens, bits), positions by a table (positions, bits) or by turning, layers, and
    the readout (tokens, bits)."""

    dtype: str
    embedding: Array
    table: Array | None
    positions: int
    layers: tuple[StockLayer, ...]
    readout: Array
    end: int

    @property
    def bits(self) -> int:
        return int(self.embedding.shape[1])


def margin_of(dtype: str) -> float:
    """What the best column leads by in a score: a power of two, of which half is enough for a weight of exactly 0."""
    if dtype not in STOCK_FORMATS:
        raise PrecisionError(f"{dtype} is too narrow for a stock checkpoint: an address and a position share one score, "
                             f"which has {FORMATS[dtype].significand if dtype in FORMATS else 0} bits there; use "
                             f"{' or '.join(STOCK_FORMATS)}")
    return float(2.0 ** np.ceil(np.log2(2 * hard_product(dtype))))


def compile_weights(decoder: StockDecoder, positions: Positions, dtype: str) -> StockWeights:
    """Weights by formula."""
    margin, layout = margin_of(dtype), decoder.layout
    count = 1 << (max(len(layer.heads) for layer in decoder.layers) - 1).bit_length()  # widths divide by it
    half = max(LEAST_HALF, 1 << (layout.width - 1).bit_length())
    if isinstance(positions, LearnedPositions):  # there a head's dimensions are a share of the width
        half = max(half, count * positions.head_size // 2)
    layers = []
    for layer in decoder.layers:
        query, key, value = np.zeros((3, count, positions.head_size, half))
        output = np.zeros((count, half, positions.head_size))
        for i, head in enumerate(layer.heads):
            query[i, :, :layout.width], key[i, :, :layout.width] = positions.score(head, layout, margin)
            _move(head, layout, value[i], output[i])
        w1, w2 = feed_forward(layer, layout.width)
        query *= np.sqrt(positions.head_size)
        layers.append(StockLayer(query, key, value, output, _wide(w1, half), _wide(w2.T, half).T))
    embedding = _wide(decoder.embedding, half, 1.0)
    table = _wide(positions.table(layout), half) if isinstance(positions, LearnedPositions) else None
    return StockWeights(dtype, embedding, table, positions.count, tuple(layers), _wide(decoder.readout, half), decoder.end)


def _move(head: ContextHead, layout: Layout, value: Array, output: Array) -> None:
    """A blank row is -1, so a bit b is brought as b + 1."""
    brought = head.value + rows(layout, ONE)
    value[:brought.size, :layout.width] = brought.linear
    output[head.into.numbers, np.arange(brought.size)] = 1.0


def _wide(weights: Array, half: int, value: float = 0.0) -> Array:
    return np.concatenate([weights, np.full((len(weights), half - weights.shape[1]), value)], axis=1)


# Pairs


def as_pairs(bits: Array) -> Array:
    """Columns of bits, or weights that write to them, as pairs along the last axis."""
    return np.concatenate([bits, -bits], axis=-1)


def reading(weights: Array) -> Array:
    """Weights that read bits as weights that read pairs: (x - (-x)) / 2 for x."""
    return as_pairs(weights) / 2


def unwritten(pairs: Array, what: str) -> Array:
    """The bits of pairs; what is not made of pairs is refused."""
    first, second = np.split(pairs, 2, axis=-1)
    if not np.array_equal(first, -second):
        raise WeightsError(f"{what}: the second half of the entries is not the first half negated, so a norm changes it")
    return first


def unread(pairs: Array, what: str) -> Array:
    """The weights over bits of weights over pairs."""
    return 2 * unwritten(pairs, what)


def padded(matrices: Sequence[Array], axis: int) -> list[Array]:
    """Matrices filled up with zeros to the longest of them along an axis."""
    most = max(each.shape[axis] for each in matrices)
    found = []
    for each in matrices:
        room = [(0, 0)] * each.ndim
        room[axis] = (0, most - each.shape[axis])
        found.append(np.pad(each, room))
    return found
