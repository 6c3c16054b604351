"""Lazy imports: the one place that imports by name, so that `import punchcard` and `punchcard --help` do not wait for torch.

A name is written as "module:name", with the whole name of the module. tests/test_imports.py reads these texts as it reads
import statements.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def import_name(place: str) -> Any:
    """What "module:name" is, imported now; "module" is the module itself."""
    module, _, name = place.partition(":")
    found = import_module(module)
    return getattr(found, name) if name else found


def call_name(place: str, *given: Any, **named: Any) -> Any:
    """Call what "module:name" is. `partial(call_name, place)` is a function that is imported when it is first called."""
    return import_name(place)(*given, **named)


def lazy_names(
    package: str, places: Iterable[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], Mapping[str, str]]:
    """`__getattr__` and `__dir__` of a package whose names are imported when they are first used; and where each is.

    A place is "module:name name", or a module.
    """
    homes: dict[str, str] = {}
    for place in places:
        module, _, names = place.partition(":")
        homes |= {name: f"{module}:{name}" for name in names.split()} or {module.rpartition(".")[2]: module}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_name(homes[name])

    return find, lambda: sorted([*vars(sys.modules[package]), *homes]), homes
