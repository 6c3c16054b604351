"""Entries of a packed card by the numbers of their rows, as an analysis wants them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from punchcard.card.packed import PackedCard
from punchcard.engines.lowered.graph.nodes import Array


def row_of(card: PackedCard, row: int, columns: npt.NDArray[np.int64] | list[int]) -> Array:
    """One row in some columns, as numbers."""
    layout = card.layout
    block = next(b for b in layout.blocks if layout.rows(b.name).start <= row < layout.rows(b.name).stop)
    i = row - layout.rows(block.name).start
    field = card.fields.get(block.name)
    if field is None:
        return np.zeros(len(columns))
    if field.dtype.kind == "f":
        return field[columns, i].astype(np.float64)
    words: npt.NDArray[Any] = field if field.ndim == 1 else field[:, i // 64]
    bits = words[columns] >> words.dtype.type(i % 64) & words.dtype.type(1)
    result: Array = 2.0 * bits - 1.0
    for region in layout.regions:
        if region.name not in block.holds:
            place = layout.region(region.name)
            result[(np.asarray(columns) >= place.start) & (np.asarray(columns) < place.stop)] = 0.0
    return result
