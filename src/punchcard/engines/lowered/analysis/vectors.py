"""K x or Q x of all passive columns: a matrix, or a word for each column where all columns hold the same sizes.

Addresses are ±1 codes: then a column's vector is a word of signs, and a million columns are a million words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from punchcard.card.formats import AnyArray
from punchcard.engines.lowered.analysis.exact_sums import Dimensions, Indices
from punchcard.engines.lowered.graph.nodes import Array
from punchcard.transformer.grids import powers_of_two

Signs = AnyArray
FEW_KEYS = 8
MOST_SCORES = 1 << 24
PART = 1 << 16
"""Columns that are scored at once."""
BYTE = 8


class SignRow(NamedTuple):
    """The signs of one dimension in all columns: a bit of each column's word, 1 for +1; times a size."""

    size: float
    words: AnyArray
    bit: int


Dimension: TypeAlias = Array | SignRow
"""The values of one dimension in all columns, or in one where all are alike; or signs."""


@dataclass(frozen=True)
class VectorRanges:
    """Each dimension of many vectors: least and greatest entry, and the common size, or 0 where sizes differ."""

    low: Array
    high: Array
    size: Array

    @property
    def largest(self) -> Array:
        """How large an entry of each dimension may be."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def used(self) -> npt.NDArray[np.bool_]:
        """Dimensions that are not 0 throughout."""
        used: npt.NDArray[np.bool_] = (self.low != 0) | (self.high != 0)
        return used

    def product(self, other: Array) -> tuple[float, float]:
        """Least and greatest product with another vector."""
        a, b = self.low * other, self.high * other
        return float(np.minimum(a, b).sum()), float(np.maximum(a, b).sum())


class Vectors:
    """Vectors, one for each passive column: signs times sizes, dimension by dimension; or a matrix."""

    def __init__(self, count: int, sizes: Array, signs: Signs | None = None, matrix: Array | None = None) -> None:
        self.count, self.sizes, self.signs, self._matrix = count, sizes, signs, matrix

    @classmethod
    def of(cls, dimensions: Sequence[Dimension], count: int) -> Vectors:
        """From the values of each dimension, or from a size and signs."""
        if len(dimensions) <= 64 and all(isinstance(d, SignRow) or d.size == 1 for d in dimensions):
            sizes = np.array([d.size if isinstance(d, SignRow) else d[0] for d in dimensions])
            return cls(count, sizes, _sign_words(dimensions, count))
        whole = [np.broadcast_to(_numbers(d) if isinstance(d, SignRow) else d, (count,)) for d in dimensions]
        return cls(count, np.zeros(len(dimensions)), None, np.stack(whole, axis=1) if whole else np.zeros((count, 0)))

    def __len__(self) -> int:
        return self.count

    def part(self, start: int, stop: int) -> Array:
        """Some of the vectors as a matrix."""
        if self.signs is None:
            assert self._matrix is not None
            return self._matrix[start:stop]
        places = np.arange(len(self.sizes), dtype=self.signs.dtype)
        bits = self.signs[start:stop, None] >> places & self.signs.dtype.type(1)
        return np.where(bits == 1, self.sizes, -self.sizes)

    @cached_property
    def matrix(self) -> Array:
        return self.part(0, self.count)

    @cached_property
    def spread(self) -> VectorRanges:
        if self.signs is None:
            matrix = self.matrix
            sizes = np.abs(matrix[0])
            return VectorRanges(matrix.min(axis=0), matrix.max(axis=0),
                          np.where((np.abs(matrix) == sizes).all(axis=0), sizes, 0.0))
        places = np.arange(len(self.sizes), dtype=np.uint64)
        some, every = (int(of.reduce(self.signs)) for of in (np.bitwise_or, np.bitwise_and))
        up = np.array([some >> int(place) & 1 for place in places], dtype=bool)
        down = np.array([not every >> int(place) & 1 for place in places], dtype=bool)
        high = np.where(up, self.sizes, -self.sizes)
        low = np.where(down, -self.sizes, self.sizes)
        return VectorRanges(np.minimum(low, high), np.maximum(low, high), np.abs(self.sizes))

    @cached_property
    def dimensions(self) -> Dimensions:
        grids = powers_of_two(self.matrix).min(axis=0, initial=np.inf) if self.signs is None else powers_of_two(self.sizes)
        return Dimensions(self.spread.largest, grids)

    def times(self, other: Array) -> Array:
        """The product of every vector with another one. Of signs, eight dimensions at a time: there are 256 sums of them."""
        if self.signs is None:
            product: Array = self.matrix @ other
            return product
        found, weights = np.zeros(self.count), self.sizes * other
        for first in range(0, len(weights), BYTE):
            some = weights[first : first + BYTE]
            if not some.any():
                continue
            signs = np.arange(1 << len(some))[:, None] >> np.arange(len(some)) & 1
            sums, kind = np.where(signs == 1, some, -some).sum(axis=1), self.signs.dtype.type
            for start in range(0, self.count, PART):
                these = slice(start, start + PART)
                found[these] += sums[self.signs[these] >> kind(first) & kind(len(sums) - 1)]
        return found

    def codes(self, dims: Sequence[int]) -> Indices:
        """The integers whose bits are the signs in some dimensions."""
        if self.signs is None:
            return code_numbers(self.matrix[:, list(dims)])
        result = np.zeros(self.count, dtype=np.int64)
        flipped = sum(1 << i for i, dim in enumerate(dims) if self.sizes[dim] < 0)
        if list(dims) == list(range(dims[0], dims[0] + len(dims))) if len(dims) else False:
            kind = self.signs.dtype.type
            result = (self.signs >> kind(dims[0]) & kind((1 << len(dims)) - 1)).astype(np.int64)
        else:
            for i, dim in enumerate(dims):
                result |= (self.signs >> self.signs.dtype.type(dim) & self.signs.dtype.type(1)).astype(np.int64) << i
        return result ^ flipped if flipped else result

    def few(self) -> tuple[Array, Indices, Indices] | None:
        """The different vectors, where each is first, and how many hold it; if they are few."""
        if self.signs is not None:
            if len(np.unique(self.signs[:PART])) > FEW_KEYS:
                return None
            firsts: list[int] = []
            counts: list[int] = []
            left = np.ones(self.count, dtype=bool)
            while len(firsts) <= FEW_KEYS and left[at := int(left.argmax())]:
                same = self.signs == self.signs[at]
                firsts.append(at)
                counts.append(int(np.count_nonzero(same)))
                left &= ~same
            if len(firsts) > FEW_KEYS:
                return None
            order = sorted(range(len(firsts)), key=lambda i: tuple(self.part(firsts[i], firsts[i] + 1)[0]))
            return (np.stack([self.part(firsts[i], firsts[i] + 1)[0] for i in order]), np.array([firsts[i] for i in order]),
                    np.array([counts[i] for i in order]))
        matrix = self.matrix
        if len(np.unique(matrix @ np.random.default_rng(1).normal(size=matrix.shape[1]))) > FEW_KEYS:
            return None
        vectors, places, numbers = np.unique(matrix, axis=0, return_index=True, return_counts=True)
        return vectors, places, numbers


def _sign_words(dimensions: Sequence[Dimension], count: int) -> Signs:
    """A word for each column, with a bit for each dimension: 1 where it is positive, or where all columns are alike.

    Dimensions that are bits of one word, as far apart there as here, are taken together.
    """
    kind: Any = np.uint32 if len(dimensions) <= 32 else np.uint64
    alike, masks = 0, dict[tuple[int, int], int]()
    words: dict[int, AnyArray] = {}
    for place, d in enumerate(dimensions):
        if not isinstance(d, SignRow):
            alike |= 1 << place
            continue
        words[id(d.words)] = d.words
        name = id(d.words), d.bit - place
        masks[name] = masks.get(name, 0) | 1 << place
    signs = np.full(count, alike, dtype=kind)
    for start in range(0, count, PART):
        these = slice(start, start + PART)
        for (source, shift), mask in masks.items():
            word = words[source][these]
            if word.dtype.itemsize < signs.itemsize:
                word = word.astype(kind)
            moved = word >> word.dtype.type(shift) if shift >= 0 else word << word.dtype.type(-shift)
            signs[these] |= (moved & word.dtype.type(mask)).astype(kind)
    return signs


def _numbers(row: SignRow) -> Array:
    kind = row.words.dtype.type
    return np.where(row.words >> kind(row.bit) & kind(1), row.size, -row.size)


def distinct(codes: Indices) -> bool:
    """Whether no code is there twice."""
    if len(codes) < 2 or bool(np.all(codes[1:] - codes[:-1] == 1)):  # each is the one before plus 1
        return True
    most = int(codes.max())
    if most > 16 * len(codes) + 4096:
        return len(np.unique(codes)) == len(codes)
    seen = np.zeros(most + 1, dtype=bool)
    seen[codes] = True
    return int(np.count_nonzero(seen)) == len(codes)


def code_numbers(bits: Array) -> Indices:
    """The integers whose bits are the signs."""
    return (bits > 0).astype(np.int64) @ (np.int64(1) << np.arange(bits.shape[1], dtype=np.int64))
