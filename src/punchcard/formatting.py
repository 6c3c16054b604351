"""Values in one line, for what people print, and values as plain data, for JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from punchcard.errors import shortened

LONGEST = 40


def plural(number: int, what: str) -> str:
    """`1 loop`, `2,000 loops`."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def short_number(number: float) -> str:
    """A large number in three digits: `940`, `12.3 k`, `14 M`."""
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def join_some(parts: Sequence[str], most: int = 8) -> str:
    """Some of many: `a 7, b 9 and 4 more`."""
    more = len(parts) - most
    return ", ".join(parts) if more <= 0 else f"{', '.join(parts[:most])} and {more:,} more"


def format_value(value: Any, most: int = LONGEST) -> str:
    """A value: a matrix as `[4 1 ; 2 3]`, a text as it is; a long one is cut."""
    if isinstance(value, str):
        return value if len(value) <= most and value.isprintable() else shortened(value, most)
    if isinstance(value, float):
        return f"{value:.6g}"
    if getattr(value, "ndim", None) not in (1, 2):
        return shortened(value, most)
    rows: Any = value if value.ndim == 2 else value[None]
    text = " ; ".join(" ".join(f"{float(number):.4g}" for number in row[:most]) for row in rows[:most])
    size = " by ".join(map(str, value.shape))
    return f"[{text}]" if len(text) <= most else f"[{text[:most]}...] ({size})"


def json_text(value: object) -> str:
    """Plain data as JSON, which has no word for NaN and infinity."""
    return json.dumps(plain_data(value), allow_nan=False)


def plain_data(value: object) -> Any:
    """What JSON can hold: numbers that are not finite, and all other things, as text."""
    if isinstance(value, Mapping):
        return {str(name): plain_data(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
