"""NumPy's types of entries, as far as they change what a program means: real numbers, integers, False and True.

The machine has real numbers alone. NumPy cuts off what is stored in an array of integers, adds comparisons as `or`, and
has no minus for them; so every value knows which types its entries may have, and what would mean something else is
refused. A value that is an integer on one way of control flow and a real number on another may have both types.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

Kinds: TypeAlias = frozenset[str]
"""The types that entries may have: b, i and f, as NumPy calls them."""
REAL: Kinds = frozenset("f")
WHOLE: Kinds = frozenset("i")
TRUTH: Kinds = frozenset("b")
ORDER = "bif"
"""Of two types together, the later one is the result's."""
NAMES = {"b": "comparisons", "i": "integers", "f": "real numbers"}


def promoted(a: Kinds, b: Kinds) -> Kinds:
    """The types of a sum or product."""
    return frozenset(max(x, y, key=ORDER.index) for x in a for y in b)


def counted(kinds: Kinds) -> Kinds:
    """The types of a sum of entries: comparisons are counted."""
    return frozenset("i" if kind == "b" else kind for kind in kinds)


def keeps(old: Kinds, new: Kinds) -> bool:
    """Whether an array holds new entries as they are, on every way."""
    return max(map(ORDER.index, new)) <= min(map(ORDER.index, old))


def least(kinds: Kinds) -> str:
    """The type that holds the fewest numbers, in words."""
    return NAMES[min(kinds, key=ORDER.index)]


def kinds_of(value: object) -> Kinds | None:
    """The types of a number or an array; None where NumPy would round its results, or wrap them around."""
    dtype = np.asarray(value).dtype
    if isinstance(value, int | np.integer):
        return TRUTH if isinstance(value, bool) else WHOLE
    return {np.dtype(bool): TRUTH, np.dtype(np.int64): WHOLE, np.dtype(np.float64): REAL}.get(dtype)
