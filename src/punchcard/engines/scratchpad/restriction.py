"""The feed-forward of a layer, restricted to columns that are 0 outside a few rows.

Weights on the other rows are dropped. A hidden unit that reads none of the kept rows is the constant relu(b1); what these
units write is one constant for each row. A row that then gets nothing is 0 and is left out.

It relies on finite weights, of which 0 times each is 0: `engine` has the equation compute whole cards elsewhere. The three
terms x + W2 relu(W1 x + b1) + b2 are added in the equation's order. Within W2 relu(...) the constants are added last, so a
sum there that rounds may be rounded otherwise, as in any product of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from punchcard.transformer.model import TransformerLayer


@dataclass(frozen=True)
class Restriction:
    """The feed-forward of a layer, for columns that are 0 outside some rows.

    rows      the rows that may hold something after the attention
    place     for each row of the card its place among them
    written   which of the rows that the layer writes may come out as something else than 0
    kept      those of them that are in `rows`, and where they are there
    constant  what the hidden units that read none of `rows` write
    """

    rows: Tensor
    place: Tensor
    written: Tensor
    kept: tuple[Tensor, Tensor]
    w1: Tensor
    b1: Tensor
    w2: Tensor
    constant: Tensor
    b2: Tensor

    def apply(self, entries: Tensor) -> Tensor:
        """The written rows of columns, from their rows after the attention."""
        found = (self.w2 @ torch.relu(self.w1 @ entries + self.b1)).add_(self.constant)
        return found.index_add_(0, self.kept[0], entries.index_select(0, self.kept[1])).add_(self.b2)


def restrict(layer: TransformerLayer, written: Tensor, rows: Tensor) -> Restriction:
    """A layer that writes some rows, for columns that are 0 outside others."""
    place = torch.full((layer.w1.shape[1],), -1, device=rows.device)
    place[rows] = torch.arange(len(rows), device=rows.device)
    w1, w2 = layer.w1[:, rows], layer.w2[written]
    seeing = w1.any(1)
    constant, b2, w2 = w2[:, ~seeing] @ torch.relu(layer.b1[~seeing]), layer.b2[written], w2[:, seeing]
    own = place[written]
    there = (w2.any(1) | constant.any(1) | b2.any(1) | (own >= 0)).nonzero().squeeze(1)
    kept = (own[there] >= 0).nonzero().squeeze(1)
    return Restriction(rows, place, there, (kept, own[there][kept]), w1[seeing], layer.b1[seeing],
                       w2[there], constant[there], b2[there])


def key_query_matrix(layer: TransformerLayer) -> Tensor:
    """K and Q of all heads in one matrix: the keys of a head, then its queries."""
    return torch.stack([layer.key, layer.query], 1).flatten(0, 2)
