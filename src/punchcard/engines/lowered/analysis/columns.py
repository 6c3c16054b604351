"""The columns of a card, sorted: active groups, which compute in every loop, and passive columns, which only hold and take.

A region is active when a loop may change rows there that a head's keys or queries read. What the layout declares of a
region becomes symbolic rows: constants, values carried from loop to loop (states), and rows of a passive column (loads).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from punchcard.card.formats import AnyArray
from punchcard.card.layout import Content, Layout, Place, RowBlock
from punchcard.card.packed import CHUNK, PackedCard
from punchcard.engines.lowered.analysis.exact_sums import Rows
from punchcard.engines.lowered.analysis.weights import LayerLists
from punchcard.engines.lowered.graph.builder import Graph
from punchcard.engines.lowered.graph.nodes import Array, Linear, Node, constant
from punchcard.engines.lowered.graph.operations import LOAD, STATE
from punchcard.errors import LoweringError

UNBOUNDED = 2.0**40
"""The limit of numbers for which none is declared."""
FEW = 4
MOST_LATE = 2
"""Late selectors: each setting of them has code of its own, which is compiled whether it is met or not."""

MOST_SLOTS = 1 << 16
"""Numbers that active columns carry: with more, as where changed keys make all columns active, code has no end."""


@dataclass(frozen=True)
class ActiveGroup:
    """Columns `start` to `stop` of an active region, which compute alike."""

    region: str
    start: int
    stop: int

    @property
    def width(self) -> int:
        return self.stop - self.start

    @property
    def columns(self) -> list[int]:
        return list(range(self.start, self.stop))


@dataclass(frozen=True)
class StateSlot:
    """A row that active columns carry from loop to loop: for one group, or one value for all (group None).

    `passing`: it is carried within a loop, from the layers that the selectors decide to those that they do not.
    """

    row: int
    group: int | None
    width: int
    content: str
    limit: float
    passing: bool = False


@dataclass(frozen=True)
class SharedLayers:
    """What the cases of a loop share: all layers from `cut` on, and some of the first one.

    passing   the rows that the layers before the cut write, all of them bits
    taken     those that the first layer's heads bring, in all cases;  given  those that its units give, in all cases
    late      of those that are passing, rows that decide between versions of the layers from the cut on
    """

    cut: int
    passing: Sequence[StateSlot] = ()
    taken: Sequence[StateSlot] = ()
    given: Sequence[StateSlot] = ()
    late: Sequence[int] = ()


class CardColumns:
    """Active groups and passive columns of a card, with their rows at the beginning of a loop."""

    def __init__(self, layout: Layout, layers: list[LayerLists], card: PackedCard, uniform: bool = True) -> None:
        self.layout, self.card, self.layers, self.uniform = layout, card, layers, uniform
        if sum(b.size for b in layout.blocks) < layout.width or sum(r.size for r in layout.regions) < layout.columns:
            raise LoweringError("the layout says nothing about some rows or columns, which lie between others")
        self.block_of = {row: block for block in layout.blocks for row in rows_of(layout, block.name)}
        changing = {region for layer in layers for row in layer.matched for region in self.block_of[row].changes}
        self.active = [r.name for r in layout.regions if r.name in changing]
        if not self.active:
            raise LoweringError("no region of the layout changes what a head asks for: there is nothing to lower")
        self.passive_places = {r.name: layout.region(r.name) for r in layout.regions if r.name not in self.active}
        self.passive_regions = list(self.passive_places)
        if not self.passive_regions:
            raise LoweringError("every region of the layout is active")
        self.groups: list[ActiveGroup] = []
        for region in layout.regions:
            if region.name in self.active:
                ends = accumulate(region.groups or (1,) * region.size, initial=layout.region(region.name).start)
                self.groups += [ActiveGroup(region.name, *pair) for pair in pairwise(ends)]
        self.active_columns = self.of_group(None)
        self.passive = np.concatenate([np.arange(place.start, place.stop) for place in self.passive_places.values()])
        self.changing = {row for row, block in self.block_of.items() if set(block.changes) & set(self.passive_regions)}
        """Rows that a loop may change in passive columns."""
        selectors = [row for block in layout.blocks for part in block.selects
                     for row in rows_of(layout, f"{block.name}.{part}")]
        carried = [row for row in selectors if all(self.block_of[row].holds.get(region) == "bits" for region in self.active)]
        self.selectors = carried or selectors
        """Rows that decide what the rest of a loop does."""
        self.late_selectors = [row for row in selectors if row not in self.selectors]
        """Rows that do so in the middle of a loop, where others do from the beginning on."""
        self.slots: dict[StateSlot, None] = {}
        self._begun: tuple[Graph, list[Node], list[Rows]] | None = None
        """The graph for which `active_rows` were found last, and they."""
        self.assumed: list[bytes] = []
        """What was taken from the card itself, and not only from the layout: part of the compiled code's name."""

    def of_group(self, group: int | None) -> list[int]:
        """The columns of a group, or of all groups."""
        return [column for g in (self.groups if group is None else [self.groups[group]]) for column in g.columns]

    def active_rows(self, graph: Graph) -> list[Rows]:
        """The rows of every group when a loop begins. A graph that has their nodes gives the same ones again."""
        if self._begun is not None and self._begun[0] is graph and graph.holds(self._begun[1]):
            return [dict(rows) for rows in self._begun[2]]
        self.slots = {}
        shared, found = self.shared_rows(), []
        for number, group in enumerate(self.groups):
            rows = {row: self._active_row(graph, row, number, row in shared)
                    for row, block in self.block_of.items() if group.region in block.holds}
            found.append({row: graph.kept(linear) for row, linear in rows.items() if not linear.is_zero})
        nodes = [node for rows in found for linear in rows.values() for node in linear.terms]
        self._begun = graph, nodes, found
        return [dict(rows) for rows in found]

    def shared_rows(self) -> set[int]:
        """Rows that every active column holds, with the same value in all of them on this card and after every loop."""
        if not self.uniform:
            return set()
        return {row for row, block in self.block_of.items() if set(self.active) <= set(block.changes)
                and row not in self.parted and is_even(self.card, row, self.active_columns)}

    @cached_property
    def parted(self) -> set[int]:
        """Rows that active columns may come to hold differently: they depend on constants in which these columns differ.

        A column takes by its query: equal queries find the same. Rows that are 0 between loops are equal again there.
        """
        if len(self.active_columns) == 1:
            return set()
        fixed, carried = set[int](), set[int]()
        for row, block in self.block_of.items():
            contents = {block.holds.get(region) for region in self.active}
            if contents == {"fixed"} and not is_even(self.card, row, self.active_columns):
                fixed.add(row)
            elif contents & {"bits", "real"}:
                carried.add(row)
        found = fixed
        while True:
            after = set(found)
            for layer in self.layers:
                after = layer.spread(after)
            if after & carried <= found:
                return found
            found = fixed | found | after & carried

    def _active_row(self, graph: Graph, row: int, number: int, shared: bool) -> Linear:
        group, block = self.groups[number], self.block_of[row]
        content = block.holds[group.region]
        if content == "one":
            return constant(1.0)
        if content == "fixed":
            values = row_of(self.card, row, group.columns)
            self.assumed.append(values.tobytes())
            return constant(values)
        slot = StateSlot(row, None if shared else number, 1 if shared else group.width, content, limit_of(block, content))
        self.slots[slot] = None
        if len(self.slots) > MOST_SLOTS:
            raise LoweringError(f"active columns carry more than {MOST_SLOTS:,} numbers from loop to loop")
        return Linear({graph.node(STATE, (), slot): 1.0})

    def passive_rows(self, graph: Graph) -> Rows:
        """The rows of any passive column when a loop begins: what is true of all of them."""
        rows: Rows = {}
        for row, block in self.block_of.items():
            if set(self.passive_regions).isdisjoint(block.holds):
                continue
            domain = self._domain(row, block)
            if domain is not None and len(domain) == 1:
                rows[row] = constant(domain[0])
                continue
            limit = max(limit_of(block, "real"), 1.0) if domain is None else 0.0
            ends = (-limit, limit) if domain is None else (domain[0], domain[-1])
            rows[row] = Linear({graph.node(LOAD, (), row, ends=ends, domain=domain): 1.0})
        return rows

    def _domain(self, row: int, block: RowBlock) -> tuple[float, ...] | None:
        """The values of a row in passive columns, where they are few."""
        contents = {block.holds.get(name) for name in self.passive_regions}
        if "real" in contents:
            return None
        found: set[float] = set()
        for content in contents:
            if content == "fixed":
                values = np.unique(row_of(self.card, row, self.passive))
                self.assumed.append(values[: FEW + 1].tobytes())
                found |= set(values.tolist())
            else:
                found |= {"bits": {-1.0, 1.0}, "one": {1.0}}.get(content or "", {0.0})
        return tuple(sorted(found)) if len(found) <= FEW else None

    def contents_at(self, column: int) -> dict[int, float]:
        """The rows of one passive column that are known from the layout: 0 and 1."""
        region = next(name for name, place in self.passive_places.items() if place.start <= column < place.stop)
        return {row: 1.0 if region in block.holds else 0.0 for row, block in self.block_of.items()
                if block.holds.get(region) in (None, "one")}

    def limit_at(self, row: int) -> tuple[str, float]:
        """What must be true of a value that is stored to a row of a passive column."""
        block = self.block_of[row]
        contents = {block.holds.get(name) for name in self.passive_regions}
        return "real" if "real" in contents else "bits" if "bits" in contents else "fixed", limit_of(block, "real")

    def closed(self, rows: Iterable[int]) -> list[str]:
        """Passive regions in which one of these rows must stay what it is: a store there is against the facts."""
        open_to = {row: ("real",) if self.limit_at(row)[0] == "real" else ("bits", "real") for row in rows}
        return [name for name in self.passive_regions
                if any(self.block_of[row].holds.get(name) not in kinds for row, kinds in open_to.items())]

    def share_layers(self) -> SharedLayers:
        """How many layers are compiled for each case: those after them are the same for all, and are compiled once.

        They combine selectors with nothing else; and what the layers before have written is declared to be ±1 bits, for
        each of the active columns by itself, or no layer after them looks at it. Selectors that active columns do not carry
        from loop to loop are met too late. Of several such places the one is taken where the fewest bits are handed over:
        what is shared is computed in every loop, and a case knows more. Where late selectors are written before one of these
        places, and none was used yet, that place is taken: what is shared has a version for each of their
        settings. Of the first layer, what its heads take and what its units give may be the same for all cases as well.
        """
        layers, chosen, late = self.layers, set(self.selectors), self.late_selectors
        carried = all(self.block_of[row].holds.get(region) == "bits" for row in chosen for region in self.active)
        least = max((number for number, layer in enumerate(layers, start=1) if layer.combined & chosen), default=len(layers))
        cuts = {cut: found for cut in range(least, len(layers)) if (found := self._passing(cut)) is not None}
        if not chosen or not carried or len(self.active_columns) > 1 or not cuts:
            return SharedLayers(len(layers))
        places = [cut for cut in cuts if self._is_turn(cut)] if 0 < len(late) <= MOST_LATE else []
        late = late if places else []
        cut = places[-1] if places else min(cuts, key=lambda cut: self._handed_over(cut, cuts[cut]))
        passing = cuts[cut]
        first = layers[0]
        taken = {row for head in first.heads for row in head.value}
        given = {row for entries in first.outputs for row, _ in entries}
        if chosen & first.attended or taken & given:
            return SharedLayers(cut, passing, late=late)
        free = first.free_of(chosen)
        early, known = ([state for state in passing if state.row in rows] for rows in (taken, free))
        return SharedLayers(cut, passing, early, known, late)

    def _is_turn(self, cut: int) -> bool:
        """Whether late selectors are written before a cut, and looked at after it alone."""
        before, late = self.layers[:cut], set(self.late_selectors)
        return (late <= {row for layer in before for row in layer.written}
                and not any(late & layer.combined for layer in before))

    def _passing(self, cut: int) -> list[StateSlot] | None:
        """The bits that the layers before a cut write in active columns; None if they write what is not declared a bit.

        What is not declared a bit may be there if no layer after the cut looks at it. Then it is 0 again, or what it was:
        that is shown for each case.
        """
        found, later = [], {row for layer in self.layers[cut:] for row in (*layer.looked_at, *layer.written)}
        for row in sorted({row for layer in self.layers[:cut] for row in layer.written}):
            block = self.block_of[row]
            held = {block.holds.get(name) for name in self.active}
            if held == {"bits"} or (held == {None} and block.within == "bits"):
                found.append(StateSlot(row, 0, 1, "bits", 1.0, passing=True))
            elif row in later:
                return None
        return found

    def _handed_over(self, cut: int, passing: Sequence[StateSlot]) -> int:
        """How many of the bits at a cut matter beside other rows later on; others are only cleared."""
        used = {row for layer in self.layers[cut:] for row in layer.combined}
        return sum(slot.row in used for slot in passing)


def limit_of(block: RowBlock, content: Content) -> float:
    """What no entry of a block exceeds in size, where it holds such content."""
    return 1.0 if content in ("bits", "one") else UNBOUNDED if block.limit is None else block.limit


def within(linear: Linear, limit: float) -> bool:
    """Whether a form is never larger in size, as far as its ranges tell."""
    low, high = linear.ends
    return bool(np.all(low >= -limit)) and bool(np.all(high <= limit))


def rows_of(layout: Layout, name: str) -> range:
    """The rows of a block, or of a part of one."""
    place = layout.rows(name)
    return range(place.start, place.stop)


# Entries of a packed card by the numbers of their rows


class SignPlace(NamedTuple):
    """A row of ±1 bits: the block, which of its words of a column it is in, and the bit there."""

    block: str
    chunk: int
    bit: int


def row_of(card: PackedCard, row: int, columns: npt.NDArray[np.int64] | list[int]) -> Array:
    """One row in some columns, as numbers."""
    place, field, i = _place(card, row)
    if field is None:
        return np.zeros(len(columns))
    if field.dtype.kind == "f":
        return field[columns, i].astype(np.float64)
    result: Array = 2.0 * _bits(field, i, columns) - 1.0
    for start, stop in place.empty:
        if _meets(columns, start, stop):
            result[(np.asarray(columns) >= start) & (np.asarray(columns) < stop)] = 0.0
    return result


def is_even(card: PackedCard, row: int, columns: list[int]) -> bool:
    """Whether a row holds the same in some columns."""
    values = row_of(card, row, columns)
    return bool(np.all(values == values[0]))


def sign_place(card: PackedCard, row: int, columns: npt.NDArray[np.int64]) -> SignPlace | None:
    """Where the signs of a row are; None where it does not hold ±1 in all of some columns."""
    place, field, i = _place(card, row)
    if field is None or field.dtype.kind == "f" or any(_meets(columns, *span) for span in place.empty):
        return None
    return SignPlace(place.block.name, *divmod(i, CHUNK))


def words_at(card: PackedCard, place: SignPlace, columns: npt.NDArray[np.int64]) -> AnyArray:
    """The words in some columns."""
    return _words(card.fields[place.block], place.chunk, columns)


def _place(card: PackedCard, row: int) -> tuple[Place, AnyArray | None, int]:
    """The block of a row, its field on the card, and which of its rows it is."""
    places = (card.layout.place(block.name) for block in card.layout.blocks)
    place = next(place for place in places if place.rows.start <= row < place.rows.stop)
    return place, card.fields.get(place.block.name), row - place.rows.start


def _bits(field: AnyArray, i: int, columns: npt.NDArray[np.int64] | list[int]) -> AnyArray:
    words = _words(field, i // CHUNK, columns)
    bits: AnyArray = words >> words.dtype.type(i % CHUNK) & words.dtype.type(1)
    return bits


def _words(field: AnyArray, chunk: int, columns: npt.NDArray[np.int64] | list[int]) -> AnyArray:
    words: AnyArray = field if field.ndim == 1 else field[:, chunk]
    return words[columns[0] : columns[-1] + 1] if _together(columns) else words[columns]


def _together(columns: npt.NDArray[np.int64] | list[int]) -> bool:
    """Whether columns, which are in order, follow one another."""
    return len(columns) > 1 and bool(columns[-1] - columns[0] == len(columns) - 1)


def _meets(columns: npt.NDArray[np.int64] | list[int], start: int, stop: int) -> bool:
    """Whether some of the columns are among those from `start` to `stop`."""
    if _together(columns):
        return bool(columns[0] < stop and columns[-1] >= start)
    return bool(np.any((np.asarray(columns) >= start) & (np.asarray(columns) < stop)))
