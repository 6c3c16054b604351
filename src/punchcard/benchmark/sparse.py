"""The equation with its zeros left out: weights as CSR matrices, all columns computed. A fairer rival than dense products.

Scores and softmax are those of the dense equation; of a value matrix only the rows that are not empty are moved.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from torch import Tensor, nn

from punchcard.transformer.model import LoopedTransformer, TransformerLayer


class SparseLayer(TransformerLayer):
    """A layer with CSR matrices as weights; those of V without their empty rows."""

    def __init__(self, layer: TransformerLayer) -> None:
        nn.Module.__init__(self)
        self.shape = layer.shape
        self.rows = [value.any(dim=1).nonzero()[:, 0] for value in layer.value]
        self.__dict__.update(  # a parameter would have to be dense
            key=[_csr(key) for key in layer.key], query=[_csr(query) for query in layer.query],
            value=[_csr(value[rows]) for value, rows in zip(layer.value, self.rows, strict=True)],
            temperature=layer.temperature, w1=_csr(layer.w1), b1=layer.b1, w2=_csr(layer.w2), b2=layer.b2)

    def attend(self, card: Tensor, offers: Iterable[tuple[Tensor, Tensor]] | None = None) -> Tensor:
        attended = card.clone()
        for head, (keys, values) in enumerate(self.offers(card) if offers is None else offers):
            attended.index_add_(0, self.rows[head], values @ self._weights(keys, card, head))
        return attended


class SparseModel(nn.Sequential):
    """`model(card)` is one loop, as `LoopedTransformer` has it up to the order of additions."""

    def __init__(self, model: LoopedTransformer) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
            super().__init__(*(SparseLayer(layer) for layer in model.layers if isinstance(layer, TransformerLayer)))


def _csr(matrix: Tensor) -> Tensor:
    return matrix.detach().to_sparse_csr()
