"""What preparing has made, in the hands of whoever wants it again: each machine has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from punchcard.engines.lowered.computer import Computer


class Prepared:
    """The computers of one model: code and tables, each for all cards with the same static rows.

    They belong to the weights that were compiled. Other weights, also of the same tensors, begin anew.
    """

    def __init__(self) -> None:
        self._weights = b""
        self._computers: list[Computer] = []

    def computers(self, weights: bytes) -> list[Computer]:
        """Those for weights with this digest, to look through and to add to."""
        if weights != self._weights:
            self._weights, self._computers = weights, []
        return self._computers
