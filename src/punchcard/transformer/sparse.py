"""The entries of a weight matrix that are not 0, row by row and exactly, for what works out sums symbolically."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from punchcard.card.formats import AnyArray

Number = TypeVar("Number")


def sparse_rows(matrix: AnyArray, number: Callable[[float], Number]) -> list[list[tuple[int, Number]]]:
    """For each row the places that are not 0, in order, and the entries there, made numbers by `float` or `Fraction`.

    Every number of a format up to float64 is a float64 and a fraction with a power of two below, so nothing is rounded.
    """
    found: list[list[tuple[int, Number]]] = [[] for _ in matrix]
    rows, columns = np.nonzero(matrix)
    entries = matrix[rows, columns].astype(np.float64)
    for row, column, entry in zip(rows.tolist(), columns.tolist(), entries.tolist(), strict=True):
        found[row].append((column, number(entry)))
    return found
