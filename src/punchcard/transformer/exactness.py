"""How many significand bits a model's arithmetic needs so that no sum is ever rounded.

Suppose that the card holds what its layout declares when a loop begins; that every entry is an integer whenever a later
layer begins, of size at most 1 or, in a block that holds numbers within a loop, at most the block's limit; and that every
head is hard (see `precision`). Then a layer computes nothing but sums of multiples of some power of two, the grid of the
sum, which are exact with enough significand bits (see `summation`). `needed_bits` finds the least from the weights and the
layout, for every sum of every layer: keys, queries, scores, values, hidden units and outputs.

It follows by induction that the floating-point model and the same model over the real numbers with a hardmax have the
same card after every layer, for any program and any number of loops. The tests check the two suppositions on cards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from punchcard.card.layout import Layout
from punchcard.transformer.build import LayerWeights, Part, compile_layers, to_weights
from punchcard.transformer.expression import Array
from punchcard.transformer.precision import Precision
from punchcard.transformer.summation import bits_for
from punchcard.transformer.sums import Bounds, LayerSums, Sums
from punchcard.transformer.weights import Weights


def exact_weights(
    parts: Sequence[Part], layout: Layout, precision: Precision, *, exact: bool
) -> tuple[Weights | None, int]:
    """The weights of a loop, and the significand bits that it needs; no weights if the number format has fewer.

    `exact`: no sum may be rounded. Else no bits are asked for.
    """
    layers = compile_layers(parts, layout.width)
    bits = needed_bits(layers, layout) if exact else 0
    return to_weights(layers, layout.width, precision) if bits <= precision.significand else None, bits


def needed_bits(layers: Sequence[LayerWeights], layout: Layout) -> int:
    """The least significand that makes every sum of every layer exact."""
    return bits_of(loop_sums([LayerSums(layer.arrays(), number, layer.winners.tolist())
                              for number, layer in enumerate(layers, start=1)], layout))


def loop_sums(layers: Sequence[LayerSums], layout: Layout) -> list[Sums]:
    """All sums of a loop, under the suppositions above."""
    begin = Bounds.together([_declared(layout, region.name) for region in layout.regions], eps=0.0)
    written = np.any([layer.written for layer in layers], axis=0)[:, None]
    sizes = entry_sizes(layout)[:, None]
    later = replace(begin, low=np.where(written, -sizes, begin.low), high=np.where(written, sizes, begin.high))
    return [each for number, layer in enumerate(layers) for each in layer.all(later if number else begin)]


def bits_of(sums: Iterable[Sums]) -> int:
    """The least significand that makes sums with these totals and grids exact."""
    return max([1, *(bits_for(each.totals, each.grids) for each in sums)])


def entry_sizes(layout: Layout) -> Array:
    """How large an entry of each row may be when a later layer begins: 1, or the limit that a block of numbers declares."""
    sizes = np.ones(layout.width)
    for block in layout.blocks:
        if block.within == "real" and block.limit is not None:
            sizes[layout.rows(block.name)] = block.limit
    return sizes


def _declared(layout: Layout, region: str) -> Bounds:
    """What the layout says of every row in a region when a loop begins."""
    low, high = np.zeros((2, layout.width))
    for block in layout.blocks:
        content = block.holds.get(region)
        low[layout.rows(block.name)] = {"bits": -1.0, "one": 1.0}.get(content or "", 0.0)
        high[layout.rows(block.name)] = 1.0 if content else 0.0
    return Bounds(low, high, np.ones(layout.width), np.zeros(layout.width, np.bool_))
