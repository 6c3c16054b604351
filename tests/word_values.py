"""The numbers that words are, for all values of their leaves at once, so that tests can compare with plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from punchcard.engines.lowered.bits.builder import FULL, Bit, WordBuilder
from punchcard.engines.lowered.bits.table import BitTable
from punchcard.words.integers import evaluate_arrays
from punchcard.words.word import Word

WHOLE = (1 << FULL) - 1
Numbers = npt.NDArray[Any]
"""Python's integers, one for each setting of the leaves."""
Leaves = Mapping[Word, Numbers]


def value_of(word: Word, leaves: Leaves) -> Numbers:
    """The 64 bits of a word; a flag is 0 or 1."""
    return evaluate_arrays(word, {leaf.data: values.astype(np.uint64) for leaf, values in leaves.items()}).astype(object)


def bit_of(bit: Bit, leaves: Leaves) -> Numbers:
    return value_of(bit.word, leaves) >> bit.place & 1


def table_value(table: BitTable, leaves: Leaves) -> Numbers:
    """The value of a function of bits."""
    places = sum((bit_of(bit, leaves) << j for j, bit in enumerate(table.bits)), start=np.zeros(1, dtype=object))
    return np.array(table.values, dtype=object)[places.astype(np.int64)]


def leaf_words(words: WordBuilder, *widths: int) -> list[Word]:
    return [words.leaf(number, width) for number, width in enumerate(widths)]


def all_values(leaves: Sequence[Word]) -> Leaves:
    """Every setting of narrow leaves."""
    grids = np.meshgrid(*(np.arange(1 << leaf.width) for leaf in leaves), indexing="ij")
    return {leaf: grid.ravel().astype(object) for leaf, grid in zip(leaves, grids, strict=True)}
