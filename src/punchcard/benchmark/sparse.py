"""The equation with its zeros left out: weights as CSR matrices, all columns computed. A fairer rival than dense products.

Scores and softmax are those of the dense equation; of a value matrix only the rows that are not empty are moved.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from punchcard.transformer.model import LoopedTransformer, TransformerLayer


@dataclass(frozen=True)
class SparseHead:
    """K, Q and the rows of V that are not empty."""

    key: Tensor
    query: Tensor
    value: Tensor
    rows: Tensor
    temperature: Tensor


class SparseModel:
    """`model(card)` is one loop, as `LoopedTransformer` has it up to the order of additions."""

    def __init__(self, model: LoopedTransformer) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
            self.layers = [(_heads(layer), _csr(layer.w1), layer.b1, _csr(layer.w2), layer.b2)
                           for layer in model.layers if isinstance(layer, TransformerLayer)]

    def __call__(self, card: Tensor) -> Tensor:
        for heads, w1, b1, w2, b2 in self.layers:
            attended = card.clone()
            for head in heads:
                scores = (head.key @ card).T @ (head.query @ card)
                moved = (head.value @ card) @ torch.softmax(head.temperature * scores, dim=0)
                attended.index_add_(0, head.rows, moved)
            card = attended + w2 @ torch.relu(w1 @ attended + b1) + b2
        return card


def _heads(layer: TransformerLayer) -> list[SparseHead]:
    heads = []
    for key, query, value, temperature in zip(layer.key, layer.query, layer.value, layer.temperature, strict=True):
        rows = value.any(dim=1).nonzero()[:, 0]
        heads.append(SparseHead(_csr(key), _csr(query), _csr(value[rows]), rows, temperature))
    return heads


def _csr(matrix: Tensor) -> Tensor:
    return matrix.detach().to_sparse_csr()
