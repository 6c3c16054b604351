"""Methods that belong to a thing, though what they call stands above it: views and exports know machines, not the other way.

`plot`, `view`, `as_layer` and `circuit` find what they call here by name, when they are called. Nothing else may be reached
this way; `tests/test_imports.py` says from where.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def above(place: str) -> Any:
    """What stands at a place of a higher room: `above("view.pictures:card_figure")`."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"punchcard.{module}"), name)
