"""Ports of a machine: what a host does between loops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Literal

from punchcard.card.layout import Card, Pattern
from punchcard.engines import Port
from punchcard.machines.streams import Traffic


class Host(ABC):
    """Serves the events of a run between loops, and says why it ended, where the card does not.

    Its ports are given the card as the engine has it, a tensor or packed: they use calls of the layout.

    ended   "halted", "fault" or "interrupted", once the host has stopped the run
    fault   what went wrong, as the machine's interpreter says it
    errors  what the program wrote to its second stream, where its machine has such a thing
    status  the exit status of a program that has halted, where its machine has such a thing
    """

    ended: Literal["halted", "fault", "interrupted"] | None = None
    fault: Any = None
    errors: bytes = b""
    status: int | None = None

    @property
    @abstractmethod
    def ports(self) -> Mapping[Pattern, Port]:
        """What to call at which pattern."""

    @property
    @abstractmethod
    def traffic(self) -> Traffic:
        """What has passed so far."""

    def begin(self, card: Card) -> Card:
        """The card to begin with, where something was left to do when the run was stopped."""
        return card
