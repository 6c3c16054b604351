"""What a function takes from outside: numbers, arrays and other programs, which are constants when it is compiled.

A program that was compiled is used again only while all of them are as they were.
"""

from __future__ import annotations

import ast
import types
from typing import Any

import numpy as np

from punchcard.python.arrays.signature import is_array_program
from punchcard.python.source import FunctionSource


def outside(source: FunctionSource, seen: frozenset[int] = frozenset()) -> tuple[Any, ...]:
    """What the names outside a function stand for now, in a form that can be compared."""
    found: dict[str, Any] = {}
    for node in ast.walk(source.node):
        if isinstance(node, ast.Name) and node.id in source.names:
            found[node.id] = _state(source.names[node.id], seen)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = source.names.get(node.value.id)
            if isinstance(owner, types.ModuleType):
                found[f"{node.value.id}.{node.attr}"] = _state(getattr(owner, node.attr, None), seen)
    return tuple(sorted(found.items()))


def _state(value: Any, seen: frozenset[int]) -> Any:
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if is_array_program(value):
        inner = () if id(value) in seen else outside(value.source, seen | {id(value)})
        return id(value), repr(value.defaults), inner
    if isinstance(value, bool | int | float | str | tuple | list | np.number | None):
        return type(value).__name__, repr(value)
    return id(value)
