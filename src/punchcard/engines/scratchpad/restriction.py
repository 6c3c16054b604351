"""A layer for columns that hold 0 in most rows: the weights that matter there.

A weight that meets 0 adds nothing. So a hidden unit that sees only rows of zeros is relu(b1), and what it writes is the same
in all such columns. A written row is left out where no unit that is left writes to it, and it comes out as 0.
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
    """

    rows: Tensor
    place: Tensor
    written: Tensor
    kept: tuple[Tensor, Tensor]
    w1: Tensor
    b1: Tensor
    w2: Tensor
    b2: Tensor

    def apply(self, entries: Tensor) -> Tensor:
        """The written rows of columns, from their rows after the attention."""
        found = self.w2 @ torch.relu(self.w1 @ entries + self.b1) + self.b2
        return found.index_add_(0, self.kept[0], entries.index_select(0, self.kept[1]))


def restrict(layer: TransformerLayer, written: Tensor, rows: Tensor) -> Restriction:
    """A layer that writes some rows, for columns that are 0 outside others."""
    place = torch.full((layer.w1.shape[1],), -1, device=rows.device)
    place[rows] = torch.arange(len(rows), device=rows.device)
    w1, w2 = layer.w1[:, rows], layer.w2[written]
    seeing = w1.any(1)
    always = w2[:, ~seeing] @ torch.relu(layer.b1[~seeing]) + layer.b2[written]
    w2 = w2[:, seeing]
    own = place[written]
    there = (w2.any(1) | always.any(1) | (own >= 0)).nonzero().squeeze(1)
    kept = (own[there] >= 0).nonzero().squeeze(1)
    return Restriction(rows, place, there, (kept, own[there][kept]), w1[seeing], layer.b1[seeing], w2[there], always[there])


def asking(layer: TransformerLayer) -> Tensor:
    """K and Q of all heads in one matrix: the keys of a head, then its queries."""
    return torch.stack([layer.key, layer.query], 1).flatten(0, 2)
