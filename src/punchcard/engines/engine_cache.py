"""Compiled code in memory, so that a second run need not compile it again: each machine has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from punchcard.engines.lowered.compiled_model import CompiledModel


class EngineCache:
    """The compiled models of one machine: code and tables, each for all cards with the same static rows.

    They belong to the weights that were compiled. With other weights, also in the same tensors, the cache starts empty.
    """

    def __init__(self) -> None:
        self._weights = b""
        self._compiled_models: list[CompiledModel] = []

    def compiled_models(self, weights: bytes) -> list[CompiledModel]:
        """Those for weights with this digest: a list to search and to extend."""
        if weights != self._weights:
            self._weights, self._compiled_models = weights, []
        return self._compiled_models
