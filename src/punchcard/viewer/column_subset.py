"""A loop of a large card in some columns only, without a matrix of all columns by all columns.

The columns that are wanted ask, and all columns can be found: a query is compared with the keys of all n columns. A column
that is found but not among the wanted ones is wanted too, from the beginning of the loop, and the loop is made again. So
what a wanted column takes is computed as the equation has it, layer by layer, from columns that were computed so
themselves.

One assumption: the keys of the other columns do not change within the loop. That is true where no earlier layer of the loop
writes a row that a head matches by. Where a layer does, it is checked in some columns of each region, the *witnesses*, which
compute like the others of their region; and if an engine made the loop, its card is compared. If a check fails,
the loop is computed in all columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np

from punchcard.card.formats import FORMATS, AnyArray
from punchcard.card.layout import Card, Layout
from punchcard.card.packed import PackedCard
from punchcard.transformer import equation
from punchcard.transformer.softmax import Scores, hard_lead
from punchcard.transformer.weights import LayerArrays, Weights
from punchcard.viewer.stages import Columns, LoopStages, differing_columns, entries_of

MOST_COLUMNS = 1024
"""Beyond so many columns that need one another, the loop is computed in all of them."""
WITNESSES = (0, 1, -1)
"""Columns of each region that are always computed."""


class NeedsAllColumns(Exception):
    """The loop cannot be restricted to a few columns; the text says why."""


@dataclass
class HeadKeys:
    """The keys of all columns in one head as a loop begins: (size, n). Dimensions that no query uses are left out."""

    dimensions: Columns
    rows: Columns
    weights: AnyArray
    """K of the head in these dimensions and rows."""
    matrix: AnyArray


class ColumnSubset:
    """Loops of one machine's cards; what is known about all columns is kept from one loop to the next."""

    def __init__(self, weights: Weights, layout: Layout) -> None:
        self.weights, self.layout = weights, layout
        self.layers = weights.layers
        self._card: Card | None = None
        self._least = weights.format.least / 2  # what the number format rounds to 0
        self._keys = [[self._head(layer, head) for head in range(layer.heads)] for layer in self.layers]
        self._spans = [layout.region(region.name) for region in layout.regions]
        self.witnesses = np.unique([range(span.start, span.stop)[at] for span in self._spans
                                    for at in WITNESSES if -1 <= at < span.stop - span.start])

    @staticmethod
    def _head(layer: LayerArrays, head: int) -> HeadKeys:
        used = np.flatnonzero(layer.key[head].any(axis=1) & layer.query[head].any(axis=1))
        rows = np.flatnonzero(layer.key[head][used].any(axis=0))
        return HeadKeys(used, rows, layer.key[head][np.ix_(used, rows)], np.zeros((len(used), 0), layer.key.dtype))

    def loop(self, card: Card, wanted: Columns) -> LoopStages:
        """A loop from a card, in the wanted columns and all that they need."""
        self.take(card)
        columns = np.union1d(wanted, self.witnesses).astype(np.intp)
        with equation.one_thread(), equation.silent():
            return self._closed(card, columns)

    def _closed(self, card: Card, columns: Columns) -> LoopStages:
        """The loop in these columns and in all that they need."""
        while True:
            if len(columns) > MOST_COLUMNS:
                raise NeedsAllColumns(f"{len(columns)} columns need one another")
            start = entries_of(card, columns)
            found, missing = self._pass(start, columns)
            if not len(missing):
                return found
            columns = np.union1d(columns, missing)

    def _pass(self, card: AnyArray, columns: Columns) -> tuple[LoopStages, Columns]:
        stages = [card]
        for number, layer in enumerate(self.layers):
            attended, missing = self._attend(number, layer, card, columns)
            if len(missing):
                return LoopStages(columns, stages), missing
            card = equation.feed_forward(layer, attended)
            self._check_witnesses(number, card, columns)
            stages += [attended, card]
        return LoopStages(columns, stages), np.zeros(0, np.intp)

    def _attend(self, number: int, layer: LayerArrays, card: AnyArray, columns: Columns) -> tuple[AnyArray, Columns]:
        """The card after the attention, or the columns that are missing for it."""
        attended, missing = card.copy(), [np.zeros(0, np.intp)]
        for head in range(layer.heads):
            rows, values = equation.moved(layer, head, card)
            for part in equation.columns_at_once(len(columns), self.layout.columns):
                sources, weights, _ = self.weights_of(number, head, card, columns, part)
                place = np.searchsorted(columns, sources)
                known = (place < len(columns)) & (columns[np.minimum(place, len(columns) - 1)] == sources)
                if not known.all():
                    missing.append(sources[~known])
                else:
                    equation.take(attended[:, part], rows, values[:, place], weights)
        return attended, np.unique(np.concatenate(missing))

    def weights_of(self, number: int, head: int, card: AnyArray, columns: Columns,
                   part: slice) -> tuple[Columns, AnyArray, AnyArray]:
        """Whom some of the columns find: the sources, the weights (sources by columns), and the scores of all n keys."""
        layer, keys = self.layers[number], self._keys[number][head]
        query = layer.query[head][keys.dimensions] @ card[:, part]
        before = keys.matrix[:, columns]
        keys.matrix[:, columns] = keys.weights @ card[keys.rows]
        scores = (query.T @ keys.matrix).T  # so that the keys of one query lie side by side
        largest = float((np.abs(query).max(axis=1, initial=0.0) * np.abs(keys.matrix).max(axis=1, initial=0.0)).sum())
        keys.matrix[:, columns] = before
        lead = hard_lead(self.weights.dtype, float(layer.temperature[head]),
                         Scores(largest, self.weights.width + len(keys.dimensions)))
        near = ~(scores < scores.max(axis=0) - lead).T  # all columns, where scores are not numbers
        sources = np.unique(np.concatenate([np.flatnonzero(row) for row in near]))
        weights = equation.softmax(layer.temperature[head] * scores[sources])
        weights = np.where(weights < self._least, 0, weights)
        used = weights.any(axis=1)
        return sources[used], weights[used], scores

    def _check_witnesses(self, number: int, card: AnyArray, columns: Columns) -> None:
        """Witnesses have the keys that they had when the loop began, in all heads that are still to come."""
        outside = self._outside(columns)
        place = np.searchsorted(columns, outside)
        for keys in chain.from_iterable(self._keys[number + 1 :]):
            if not np.array_equal(keys.weights @ card[np.ix_(keys.rows, place)], keys.matrix[:, outside]):
                raise NeedsAllColumns(f"layer {number + 1} changes what columns are found by")

    def _outside(self, columns: Columns) -> Columns:
        """The witnesses of regions that are not computed whole."""
        parts = [span for span in self._spans
                 if np.searchsorted(columns, span.stop) - np.searchsorted(columns, span.start) < span.stop - span.start]
        return np.array([column for column in self.witnesses.tolist()
                         if any(span.start <= column < span.stop for span in parts)], np.intp)

    # The keys of all columns

    def take(self, card: Card) -> None:
        """Bring the keys up to date with a card: only those of columns that differ from the last one."""
        every = [*chain.from_iterable(self._keys)]
        if self._card is None:
            rows = np.unique(np.concatenate([keys.rows for keys in every] or [np.zeros(0, np.intp)]))
            entries = self._rows(card, rows)
            for keys in every:
                keys.matrix = keys.weights @ entries[np.searchsorted(rows, keys.rows)]
        elif len(changed := differing_columns(self._card, card)):
            entries = entries_of(card, changed)
            for keys in every:
                keys.matrix[:, changed] = keys.weights @ entries[keys.rows]
        self._card = card

    def _rows(self, card: Card, rows: Columns) -> AnyArray:
        if not isinstance(card, PackedCard):
            return entries_of(card)[rows]
        found = np.zeros((len(rows), self.layout.columns), FORMATS[card.dtype].array)
        for block in self.layout.blocks:
            place = self.layout.rows(block.name)
            there = np.flatnonzero((place.start <= rows) & (rows < place.stop))
            for region in block.holds if len(there) else ():
                entries = card.entries(block.name, region)
                found[there, self.layout.region(region)] = entries[rows[there] - place.start]
        return found
