"""What keeps a card as it came, packed or dense."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from punchcard.card.layout import Card, as_tensor
from punchcard.card.packed import PackedCard

if TYPE_CHECKING:
    from torch import Tensor


class Held:
    """Something with a card: `held` as it came, `card` as a tensor for those who ask for one."""

    held: Card

    @cached_property
    def card(self) -> Tensor:
        """The card as a tensor, made when somebody asks."""
        return as_tensor(self.held)

    @property
    def packed(self) -> PackedCard | None:
        """The card as it came, if that is packed."""
        return self.held if isinstance(self.held, PackedCard) else None
