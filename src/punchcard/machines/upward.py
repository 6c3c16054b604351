"""Calls of a machine that are written in a room above it.

Imports point one way, so no file here may import such a room. The call names its module and function, and the module is
imported when the call is made. `tests/test_imports.py` checks that this is the only file that does so.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

ABOVE = {"as_layer": "punchcard.export.layer", "circuit": "punchcard.export.explaining"}
"""The calls, and the modules that have them: functions of a machine and what the call was given."""


def call(name: str, *given: Any, **named: Any) -> Any:
    """The function of this name in the room above."""
    return getattr(import_module(ABOVE[name]), name)(*given, **named)
