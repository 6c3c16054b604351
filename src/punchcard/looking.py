"""What one looks at a thing with stands above it: a view knows machines, and a machine knows no view.

Methods such as `plot` and `view` belong to what is looked at. So they find the view here by name, when they are called.
Nothing else may be reached this way.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def looking(name: str) -> Any:
    """Something of the view by its place there: `looking("pictures:card_figure")`."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(f"punchcard.view.{module}"), attribute)
