"""Entries of a packed card by the numbers of their rows, as an analysis wants them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from punchcard.card.formats import AnyArray
from punchcard.card.layout import RowBlock
from punchcard.card.packed import PackedCard
from punchcard.engines.lowered.graph.nodes import Array


def row_of(card: PackedCard, row: int, columns: npt.NDArray[np.int64] | list[int]) -> Array:
    """One row in some columns, as numbers."""
    block, i = _block_of(card, row)
    field = card.fields.get(block.name)
    if field is None:
        return np.zeros(len(columns))
    if field.dtype.kind == "f":
        return field[columns, i].astype(np.float64)
    result: Array = 2.0 * _bits(field, i, columns) - 1.0
    for place in _empty(card, block):
        result[(np.asarray(columns) >= place.start) & (np.asarray(columns) < place.stop)] = 0.0
    return result


def signs_of(card: PackedCard, row: int, columns: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_] | None:
    """Whether a row holds +1 in some columns, in order; None where it does not hold ±1 in all of them."""
    block, i = _block_of(card, row)
    field = card.fields.get(block.name)
    empty = any(bool(np.any((columns >= place.start) & (columns < place.stop))) for place in _empty(card, block))
    if field is None or field.dtype.kind == "f" or empty:
        return None
    return _bits(field, i, columns).astype(bool)


def _block_of(card: PackedCard, row: int) -> tuple[RowBlock, int]:
    """The block of a row, and which of its rows it is."""
    layout = card.layout
    block = next(b for b in layout.blocks if layout.rows(b.name).start <= row < layout.rows(b.name).stop)
    return block, row - layout.rows(block.name).start


def _empty(card: PackedCard, block: RowBlock) -> list[slice]:
    """The regions in which a block holds nothing."""
    return [card.layout.region(region.name) for region in card.layout.regions if region.name not in block.holds]


def _bits(field: AnyArray, i: int, columns: npt.NDArray[np.int64] | list[int]) -> AnyArray:
    words: AnyArray = field if field.ndim == 1 else field[:, i // 64]
    together = len(columns) > 1 and columns[-1] - columns[0] == len(columns) - 1
    chosen = words[columns[0] : columns[-1] + 1] if together else words[columns]
    bits: AnyArray = chosen >> words.dtype.type(i % 64) & words.dtype.type(1)
    return bits
