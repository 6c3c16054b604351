"""Docstrings as the site shows them: words in aligned columns keep their columns."""

from __future__ import annotations

import re
from typing import Any

import griffe

ALIGNED = re.compile(r"\S.*?\S?(  +)\S")


def in_columns(paragraph: str) -> bool:
    """Whether all lines of a paragraph have a gap inside, as a table without rules has."""
    lines = paragraph.splitlines()
    return len(lines) > 1 and all(ALIGNED.match(line) for line in lines)


def shown(docstring: str) -> str:
    """Markdown: a paragraph in columns becomes a block of code, which keeps its gaps."""
    return "\n\n".join(re.sub("^", "    ", part, flags=re.MULTILINE) if in_columns(part) else part
                       for part in docstring.split("\n\n"))


class Columns(griffe.Extension):
    """What mkdocstrings calls for each object it reads."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            obj.docstring.value = shown(obj.docstring.value)
