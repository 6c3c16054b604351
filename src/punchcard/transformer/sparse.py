"""A matrix of weights by its entries that are not 0: most are. For engines and proofs, and for bounds of its sums."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from punchcard.card.formats import AnyArray
from punchcard.transformer.expression import Array
from punchcard.transformer.grids import Flags, grids_of

Number = TypeVar("Number")


class SparseMatrix:
    """The entries that are not 0, row after row: where they are, and what they are, as float64."""

    def __init__(self, matrix: AnyArray) -> None:
        self.height, self.width = matrix.shape
        places = np.flatnonzero(matrix)
        self.rows, self.columns = np.divmod(places, self.width or 1)
        self.entries: Array = matrix.reshape(-1)[places].astype(np.float64)

    def by_row(self, number: Callable[[float], Number]) -> list[list[tuple[int, Number]]]:
        """For each row the places that are not 0, in order, and the entries there, made numbers by `float` or `Fraction`.

        Every number of a format up to float64 is a float64 and a fraction with a power of two below, so nothing is rounded.
        """
        return self._listed(self.height, self.rows, self.columns, number)

    def by_column(self, number: Callable[[float], Number]) -> list[list[tuple[int, Number]]]:
        """The same for each column."""
        return self._listed(self.width, self.columns, self.rows, number)

    def _listed(self, count: int, lists: npt.NDArray[np.intp], places: npt.NDArray[np.intp],
                number: Callable[[float], Number]) -> list[list[tuple[int, Number]]]:
        found: list[list[tuple[int, Number]]] = [[] for _ in range(count)]
        for one, place, entry in zip(lists.tolist(), places.tolist(), self.entries.tolist(), strict=True):
            found[one].append((place, number(entry)))
        return found

    # Sums

    @cached_property
    def _sizes(self) -> Array:
        return np.abs(self.entries)

    @cached_property
    def powers(self) -> Array:
        """The largest power of two that divides each entry."""
        return grids_of(self.entries)

    @cached_property
    def _first(self) -> npt.NDArray[np.intp]:
        """Where each row begins that is not 0 throughout."""
        return np.flatnonzero(np.diff(self.rows, prepend=-1))

    @cached_property
    def used(self) -> npt.NDArray[np.intp]:
        """The rows that are not 0 throughout."""
        return self.rows[self._first]

    @cached_property
    def terms(self) -> Array:
        """How many terms each sum of `matrix @ x` has."""
        return np.bincount(self.rows, minlength=self.height).astype(np.float64)

    def totals(self, size: Array) -> Array:
        """The sums of the absolute values of the terms of `matrix @ x`, for columns x up to a size."""
        return self._reduced(np.add, self._sizes[:, None] * size[self.columns], 0.0)

    def ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        """The least and the greatest `matrix @ x`."""
        one, other = (self.entries[:, None] * end[self.columns] for end in (low, high))
        return self._reduced(np.add, np.minimum(one, other), 0.0), self._reduced(np.add, np.maximum(one, other), 0.0)

    def grids(self, grid: Array, real: Flags) -> tuple[Array, Flags]:
        """The grids of `matrix @ x`, given those of x, and which of the sums have real numbers in them."""
        is_real = real[self.columns]
        with np.errstate(over="ignore"):
            steps = np.where(is_real, self._sizes, self.powers) * grid[self.columns]
        return self._reduced(np.minimum, steps, np.inf), self._reduced(np.logical_or, is_real, False)

    def _reduced(self, of: np.ufunc, terms: AnyArray, empty: float | bool) -> AnyArray:
        """The terms of each row, taken together."""
        found = np.full((self.height, *terms.shape[1:]), empty)
        if len(self._first):
            found[self.used] = of.reduceat(terms, self._first, axis=0)
        return found
