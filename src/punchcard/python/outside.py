"""What a function takes from outside: constants and other functions, which are known when it is compiled.

A compiled program is used again only while all of them are as they were.
"""

from __future__ import annotations

import ast
import types
from typing import TypeAlias

import numpy as np

from punchcard.python.front_end import PythonProgram
from punchcard.python.source import FunctionSource

Snapshot: TypeAlias = tuple[tuple[str, object], ...]


def snapshot(source: FunctionSource, seen: frozenset[int] = frozenset()) -> Snapshot:
    """What the names outside a function mean now, in a form that can be compared."""
    found: dict[str, object] = {}
    for node in ast.walk(source.node):
        if isinstance(node, ast.Name) and node.id in source.names:
            found[node.id] = _state(source.names[node.id], seen)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = source.names.get(node.value.id)
            if isinstance(owner, types.ModuleType):
                found[f"{node.value.id}.{node.attr}"] = _state(getattr(owner, node.attr, None), seen)
    return tuple(sorted(found.items()))


def _state(value: object, seen: frozenset[int]) -> object:
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, PythonProgram):
        inner = () if id(value) in seen else snapshot(value.source, seen | {id(value)})
        return id(value), repr(value.defaults), inner
    if isinstance(value, bool | int | float | str | tuple | list | np.number | None):
        return type(value).__name__, repr(value)
    return id(value)
