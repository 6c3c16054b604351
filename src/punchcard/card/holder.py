"""A base class for values with a card: as the engine gave it, packed or dense, and as a tensor."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from punchcard.card.layout import Card, as_tensor
from punchcard.card.packed import PackedCard

if TYPE_CHECKING:
    from torch import Tensor


class CardHolder:
    """A value with a card: `raw_card` as the engine gave it, `card` as a tensor."""

    raw_card: Card

    @cached_property
    def card(self) -> Tensor:
        """The card as a tensor, made on first use."""
        return as_tensor(self.raw_card)

    @property
    def packed(self) -> PackedCard | None:
        """The raw card if it is packed, or None."""
        return self.raw_card if isinstance(self.raw_card, PackedCard) else None
