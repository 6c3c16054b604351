"""The looped transformer: the paper's equation (TF) and nothing else.

For a card X of d rows and n columns, one layer is

    Attn(X) = X + sum_h V_h X softmax(lambda_h (K_h X)^T (Q_h X))                 (TF, attention)
    f(X)    = Attn(X) + W2 relu(W1 Attn(X) + b1 1^T) + b2 1^T                     (TF, feed-forward)

where the softmax runs down each column and lambda_h is the head's temperature. There is no layer norm, no mask and no
branch on content. This file needs nothing but torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class LayerShape:
    """The sizes of one layer: its heads, the height of K and Q, and its hidden units."""

    heads: int
    key_size: int
    hidden: int


class TransformerLayer(nn.Module):
    """One layer f of equation (TF). Weights are zero until they are loaded, and are never trained."""

    def __init__(self, width: int, shape: LayerShape, dtype: torch.dtype = torch.float64) -> None:
        super().__init__()

        def zeros(*size: int) -> nn.Parameter:
            return nn.Parameter(torch.zeros(*size, dtype=dtype), requires_grad=False)

        self.shape = shape
        self.key = zeros(shape.heads, shape.key_size, width)
        self.query = zeros(shape.heads, shape.key_size, width)
        self.value = zeros(shape.heads, width, width)
        self.temperature = zeros(shape.heads)
        self.w1 = zeros(shape.hidden, width)
        self.b1 = zeros(shape.hidden, 1)
        self.w2 = zeros(width, shape.hidden)
        self.b2 = zeros(width, 1)

    def extra_repr(self) -> str:
        """What torch prints of a layer."""
        return f"{self.shape.heads} heads with keys of {self.shape.key_size}, {self.shape.hidden} hidden units"

    def attention(self, card: Tensor, head: int) -> Tensor:
        """softmax(lambda (K X)^T (Q X)): entry (i, j) is how much column j takes from column i."""
        return self._weights(self.key[head] @ card, card, head)

    def _weights(self, keys: Tensor, card: Tensor, head: int) -> Tensor:
        scores = keys.transpose(-1, -2) @ (self.query[head] @ card)
        return torch.softmax(self.temperature[head] * scores, dim=-2)

    def offers(self, card: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """K X and V X of each head: what the columns are found by, and what they give."""
        return ((self.key[head] @ card, self.value[head] @ card) for head in range(self.shape.heads))

    def attend(self, card: Tensor, offers: Iterable[tuple[Tensor, Tensor]] | None = None) -> Tensor:
        """Attn(X). With the offers of another card, the columns of X take from its columns: X may be a part of it."""
        attended = card
        for head, (keys, values) in enumerate(self.offers(card) if offers is None else offers):
            attended = attended + values @ self._weights(keys, card, head)
        return attended

    def activation(self, hidden: Tensor) -> Tensor:
        """relu."""
        return torch.relu(hidden)

    def feed_forward(self, card: Tensor) -> Tensor:
        """X + W2 relu(W1 X + b1 1^T) + b2 1^T."""
        return card + self.w2 @ self.activation(self.w1 @ card + self.b1) + self.b2

    def forward(self, card: Tensor) -> Tensor:
        return self.feed_forward(self.attend(card))


class LoopedTransformer(nn.Module):
    """A stack of transformer layers, TF(W; X), as an `nn.Module`. Applied to its own output in a loop, it is a computer.

        card = machine.model(card)      # one loop

    A card has d rows and n columns; batch dimensions may come first: (..., d, n).
    """

    layer_class = TransformerLayer

    def __init__(self, width: int, shapes: Sequence[LayerShape], dtype: torch.dtype = torch.float64) -> None:
        super().__init__()
        self.width = width
        self.dtype = dtype
        self.layers = nn.ModuleList(self.layer_class(width, shape, dtype) for shape in shapes)

    def extra_repr(self) -> str:
        """Sizes, for `print(model)`."""
        return f"{self.width} rows, {self.dtype}"

    def forward(self, card: Tensor) -> Tensor:
        for layer in self.layers:
            card = layer(card)
        return card

    def stages(self, card: Tensor) -> list[Tensor]:
        """The card before each layer and after its attention, then the card after the last layer."""
        found = [card]
        for layer in self.layers:
            assert isinstance(layer, TransformerLayer)
            found.append(layer.attend(found[-1]))
            found.append(layer.feed_forward(found[-1]))
        return found

    @property
    def shapes(self) -> tuple[LayerShape, ...]:
        return tuple(layer.shape for layer in self.layers if isinstance(layer, TransformerLayer))

    def parameter_count(self) -> tuple[int, int]:
        """The number of parameters, and how many of them are not zero."""
        tensors = list(self.parameters())
        return sum(t.numel() for t in tensors), sum(int(torch.count_nonzero(t)) for t in tensors)
