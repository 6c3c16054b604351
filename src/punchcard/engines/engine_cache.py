"""Compiled code in memory, so that a second run need not compile it again: each machine has one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from punchcard.engines.lowered.compiled_model import CompiledModel


@dataclass
class EngineCache:
    """The compiled models of one machine: code and tables, each for all cards with the same static rows.

    They belong to the weights that were compiled, which `digest` names. With other weights the cache starts empty.
    """

    digest: bytes = b""
    compiled_models: list[CompiledModel] = field(default_factory=list)
