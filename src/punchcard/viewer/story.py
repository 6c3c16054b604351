"""What a half layer did, in a sentence: the design's own words (`machines/story.py`), or else words made from the formulas.

    The ReLU layer subtracts 7 from 0, ...                              written beside the design
    Head 1: scratchpad takes action from table[4]; ...                  made from what the head moves, and what it moved
    In scratchpad the ReLU layer sets here = 6 and clears next; ...     made from what changed
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from punchcard.card.formats import AnyArray
from punchcard.machines.base import Machine
from punchcard.machines.display_values import bits_of, number_text
from punchcard.machines.story import LEAST_WEIGHT, MOST_MOVES, Quote, Sentence, Story, tell
from punchcard.transformer.formula_text import smallest_blocks
from punchcard.viewer.inspector import HeadAttention
from punchcard.viewer.stages import Columns

PUNCHED = "The card before the first loop: the program and its data are punched on it."
MOST_BANDS = 4
"""Bands of rows that a sentence lists for a column."""
MOST_COLUMNS = 2
"""Columns whose changes a sentence lists."""
MOST_BITS = 64


class StoryBand(NamedTuple):
    """A row block without parts, or a part of one."""

    name: str
    block: str
    rows: slice
    labels: Sequence[str] = ()

    def value(self, entries: Sequence[float]) -> str:
        """` = 5`: the number that its bits make, by its label if it has one, or that it holds; else nothing."""
        found = entries[self.rows]
        if len(found) == 1:
            return f" = {number_text(found[0])}"
        number = bits_of(found) if len(found) <= MOST_BITS else None
        if number is None:
            return ""
        return f" = {(number < len(self.labels) and self.labels[number]) or number}"


@dataclass
class HalfLayer:
    """A half layer as it happened: the computed columns before and after, and whom they attend to in each head.

    `still` gives a column of a large card that is not computed, since no layer of this loop changes it.
    """

    loop: int
    instruction: str | None
    coming: str | None
    columns: Columns
    before: AnyArray
    after: AnyArray
    still: Callable[[int], Sequence[float]]
    attention: Callable[[int], HeadAttention]
    name: Callable[[int], str]

    def __post_init__(self) -> None:
        self._place = {column: i for i, column in enumerate(self.columns.tolist())}
        self._mixtures: dict[int, Mapping[int, Mapping[int, float]]] = {}
        self._takers: dict[int, Mapping[int, int]] = {}

    def at(self, column: int, *, before: bool) -> Sequence[float]:
        place = self._place.get(column)
        return self.still(column) if place is None else (self.before if before else self.after)[:, place].tolist()

    def taken(self, head: int) -> Mapping[int, int]:
        if head not in self._takers:
            self._takers[head] = self._taken(self.attention(head))
        return self._takers[head]

    def mixtures(self, head: int) -> Mapping[int, Mapping[int, float]]:
        if head not in self._mixtures:
            found = self.attention(head)
            large = found.weights >= LEAST_WEIGHT * found.weights.max(axis=0)
            mixtures = {target: {int(found.sources[i]): float(found.weights[i, j]) for i in np.flatnonzero(large[:, j])}
                        for j, target in enumerate(self.columns.tolist())}
            self._mixtures[head] = {target: each for target, each in mixtures.items() if set(each) != {target}}
        return self._mixtures[head]

    def _taken(self, found: HeadAttention) -> Mapping[int, int]:
        weights = np.where(found.sources[:, None] == self.columns[None, :], 0.0, found.weights)
        best = weights.argmax(axis=0)
        takes = weights[best, np.arange(len(self.columns))] >= LEAST_WEIGHT
        return dict(zip(self.columns[takes].tolist(), found.sources[best[takes]].tolist(), strict=True))


class Storyteller:
    """The sentences of a machine. `labels` are of numbers, by the rows that hold them (`Machine.labels`)."""

    def __init__(self, machine: Machine[Any, Any], labels: Mapping[str, Sequence[str]]) -> None:
        self._machine, self._layout = machine, machine.layout
        self.bands = [StoryBand(name, block.name, slice(rows.start, rows.stop), labels.get(name, ()))
                      for name, block, rows in smallest_blocks(machine.layout)]

    @cached_property
    def sentences(self) -> Story:
        """A pair for each layer; without words of the design's own, a pair of None."""
        layers = len(self._machine.weights.layers)
        found = tuple(self._machine.design.story(self._machine.sizes, self._layout))
        return found if len(found) == layers else ((None, None),) * layers

    @cached_property
    def signed(self) -> set[str]:
        """The rows whose words are quoted with a sign."""
        return {quote.rows for pair in self.sentences for sentence in pair if sentence is not None
                for quote in sentence.quotes.values() if isinstance(quote, Quote) and quote.is_signed}

    def plain(self) -> list[list[dict[str, Any] | None]]:
        """The sentences as plain data, for a page that computes cards itself."""
        return [[None if one is None else one.plain(self._layout) for one in pair] for pair in self.sentences]

    def carries(self, layer: int, head: int) -> list[str]:
        """The bands that a head moves something of: those of the rows that its value matrix takes from."""
        rows = np.flatnonzero(self._machine.weights.layers[layer].value[head].any(axis=0))
        return [band.name for band in self.bands if ((rows >= band.rows.start) & (rows < band.rows.stop)).any()]

    def tell(self, layer: int, attends: bool, half: HalfLayer) -> tuple[str, dict[str, str]]:
        """The sentence of a half layer, and the values that it quotes by name."""
        sentence: Sentence | None = self.sentences[layer][0 if attends else 1]
        if sentence is not None:
            return tell(sentence, half, self._layout)
        return (self._attention(layer, half) if attends else self._changes(half)), {}

    def _attention(self, layer: int, half: HalfLayer) -> str:
        """What each head moved, by the rows of its value matrix."""
        told = []
        for head in range(self._machine.weights.layers[layer].heads):
            words = [f"{half.name(target)} takes {what} from {half.name(source)}"
                     for target, source in sorted(half.taken(head).items())
                     if (what := self._moved(layer, head, half.at(source, before=True)))]
            more = len(words) - MOST_MOVES
            if words:
                told.append(f"Head {head + 1}: {'; '.join(words[:MOST_MOVES])}{f'; and {more} more' if more > 0 else ''}.")
        return " ".join(told) or "No column takes anything from another."

    def _moved(self, layer: int, head: int, source: Sequence[float]) -> str:
        """What a head finds in a column, by the names of bands; empty if nothing is there."""
        carried = set(self.carries(layer, head))
        held = [band for band in self.bands if band.name in carried and any(source[band.rows])]
        if len(held) == 1:
            return f"{held[0].name}{held[0].value(source)}"
        return _listed(dict.fromkeys(band.block for band in held))

    def _changes(self, half: HalfLayer) -> str:
        """What is different: columns that get something new, and how many are only cleared."""
        differs = np.flatnonzero((half.before != half.after).any(axis=0))
        new = (half.before != half.after) & (half.after != 0)
        sets = [place for place in differs.tolist() if new[:, place].any()]
        told = []
        for place in (sets or differs.tolist())[:MOST_COLUMNS]:
            before, after = half.before[:, place].tolist(), half.after[:, place].tolist()
            changed = [band for band in self.bands if before[band.rows] != after[band.rows]]
            kept = [f"{band.name}{band.value(after)}" for band in changed if any(after[band.rows])]
            cleared = dict.fromkeys(band.block for band in changed if not any(after[band.rows]))
            parts = [f"sets {_listed(kept)}"] * bool(kept) + [f"clears {_listed(cleared)}"] * bool(cleared)
            told.append((half.name(int(half.columns[place])), " and ".join(parts)))
        if not told:
            return "The ReLU layer changes nothing."
        (first, did), *others = told
        more = len(differs) - len(told)
        return "; ".join([f"In {first} the ReLU layer {did}", *(f"in {column} it {did}" for column, did in others)]) + (
            f"; {more} more columns change." if more > 0 else ".")


def _listed(words: Sequence[str] | Mapping[str, None]) -> str:
    found = list(words)
    more = len(found) - MOST_BANDS
    return ", ".join(found[:MOST_BANDS]) + (f" and {more} more" if more > 0 else "")
