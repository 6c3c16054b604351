"""Pages of the docs: their texts, and the snippets in them."""

from __future__ import annotations

import re
from typing import Any

from tests.cases import ROOT


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def snippets(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def run_snippets(text: str, **given: Any) -> dict[str, Any]:
    """One after the other in one namespace, as they are read: the names that they leave."""
    names: dict[str, Any] = {"__name__": "page", **given}
    for snippet in snippets(text):
        exec(compile(snippet, "page", "exec"), names)
    return names
