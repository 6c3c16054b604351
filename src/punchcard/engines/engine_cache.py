"""Compiled code in memory, so that a second run need not compile it again: each machine has one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from punchcard.engines.lowered.compiled_model import CompiledModel


@dataclass
class EngineCache:
    """The compiled models of one machine: code and tables, each for all cards with the same static rows.

    They belong to the weights and the layout that were compiled. With other ones, also in the same tensors, the cache starts
    empty.
    """

    model: object = None
    """The digest of the weights, and the description of the layout."""
    compiled_models: list[CompiledModel] = field(default_factory=list)
