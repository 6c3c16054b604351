"""The texts of formulas, computed by Python: an oracle for what they say."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from punchcard.card.formats import AnyArray


def rows_of(name: str, layout: Any, i: int = 0) -> list[int]:
    """The numbers of rows that a text names."""
    block, _, index = name.partition("[")
    numbers = list(range(layout.rows(block).start, layout.rows(block).stop))
    if not index:
        return numbers
    low, colon, high = index.rstrip("]").partition(":")
    first, last = (int(eval(part, {"i": i})) if part else None for part in (low, high))
    return numbers[slice(first, last)] if colon else [numbers[first or 0]]


def value_of(text: str, layout: Any, column: AnyArray, i: int = 0) -> Any:
    """What a formula says of a column, by Python's own arithmetic."""
    def rows(match: re.Match[str]) -> str:
        return f"x({match.group()!r})"

    names = "|".join(sorted((re.escape(block.name) for block in layout.blocks), key=len, reverse=True))
    code = re.sub(rf"\b(?:{names})\b(?:\.[a-z_0-9A-Z]+)?(?:\[[^\]]*\])?", rows, text).replace("^", "**")
    return eval(code, {"i": i, "x": lambda name: column[rows_of(name, layout, i)], "relu": lambda x: np.maximum(x, 0),
                       "sum": np.sum, "binary": lambda x: (x * 2.0 ** np.arange(len(x))).sum(),
                       "stack": lambda *parts: np.concatenate([np.atleast_1d(part) for part in parts])})
