"""Words as numbers: Python's integers; or NumPy arrays of 64-bit integers, for words of up to 64 bits."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

from punchcard.words.operations import INTEGERS, operations
from punchcard.words.renderer import Renderer
from punchcard.words.word import Word

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]


def evaluate(word: Word, values: Mapping[Hashable, int]) -> int:
    """The number of a word, for numbers of its variables by name."""
    return Renderer(INTEGERS, lambda leaf: values[leaf.data])(word)


def evaluate_arrays(word: Word, values: Mapping[Hashable, Numbers]) -> Numbers:
    """The numbers of a word, for arrays of numbers of its variables. The arrays are brought to one shape, as NumPy does."""
    import numpy as np

    def numbers(value: object) -> Numbers:
        return np.asarray(value).astype(np.uint64)

    def pick(truth: Numbers, yes: Numbers, no: Numbers) -> Numbers:
        return np.where(truth != 0, yes, no)

    with np.errstate(over="ignore"):
        return Renderer(operations(numbers, numbers, pick), lambda leaf: numbers(values[leaf.data]))(word)
