"""The words that come from elsewhere: what the variables in a loop's integer operations stand for."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from punchcard.engines.lowered.analysis.buffer_layout import Field, StateWord
from punchcard.engines.lowered.graph.nodes import Node


@dataclass(frozen=True)
class StateBits:
    """A state that is a word."""

    state: StateWord


@dataclass(frozen=True)
class FieldBits:
    """A field of the column at an index; without an index, of the column at hand."""

    index: Node | None
    field: Field


@dataclass(frozen=True)
class FieldPresence:
    """Whether that column holds something in the field."""

    index: Node | None
    field: Field


@dataclass(frozen=True)
class FormSign:
    """Whether a linear form, known by its key, is positive."""

    key: Hashable
