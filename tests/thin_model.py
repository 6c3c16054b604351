"""Equation (TF) without its products with 0, for tests that apply a model of many rows to many cards.

Nearly all weights of a FLEQ machine are 0. Rows and columns of K, Q and V that hold nothing else are left out, and W1 and
W2 are sparse. What is left is added up in another order, so real numbers may differ in the last bits, and no more than that:
`test_a_thin_model_is_the_model`.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from punchcard.transformer.model import LoopedTransformer, TransformerLayer


class _ThinLayer:
    def __init__(self, layer: TransformerLayer) -> None:
        self.heads = []
        for key, query, value, temperature in zip(layer.key, layer.query, layer.value, layer.temperature, strict=True):
            seen = _used(key, 0) | _used(query, 0)
            into, taken = _used(value, 1).nonzero()[:, 0], _used(value, 0)
            self.heads.append((seen, key[:, seen], query[:, seen], temperature, into, taken, value[into][:, taken]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "CSR support is in beta"
            self.w1, self.w2 = layer.w1.to_sparse_csr(), layer.w2.to_sparse_csr()
        self.b1, self.b2 = layer.b1, layer.b2

    def __call__(self, cards: Tensor) -> Tensor:
        attended = cards.clone()
        for seen, key, query, temperature, into, taken, value in self.heads:
            x = cards[:, seen]
            scores = (key @ x).transpose(-1, -2) @ (query @ x)
            attended[:, into] += value @ cards[:, taken] @ torch.softmax(temperature * scores, dim=-2)
        count, width, columns = attended.shape
        beside = attended.transpose(0, 1).reshape(width, count * columns)
        changed = beside + self.w2 @ torch.relu(self.w1 @ beside + self.b1) + self.b2
        return changed.reshape(width, count, columns).transpose(0, 1).contiguous()


class ThinModel:
    """A model for batches of cards, (count, rows, columns)."""

    def __init__(self, model: LoopedTransformer) -> None:
        self.layers = [_ThinLayer(layer) for layer in model.layers if isinstance(layer, TransformerLayer)]

    def __call__(self, cards: Tensor) -> Tensor:
        for layer in self.layers:
            cards = layer(cards)
        return cards


def _used(matrix: Tensor, along: int) -> Tensor:
    """Which columns (along 0) or rows (along 1) are not 0."""
    return (matrix != 0).any(dim=along)
