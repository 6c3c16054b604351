"""The columns of a card, sorted: active groups, which compute in every loop, and passive columns, which only hold and take.

A region is active when a loop may change rows there that a head's keys or queries read. What the layout declares of a
region becomes symbolic rows: constants, values carried from loop to loop (states), and rows of a passive column (loads).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from punchcard.card.formats import AnyArray
from punchcard.card.layout import Content, Layout, RowBlock
from punchcard.card.packed import PackedCard
from punchcard.engines.lowered.analysis.weights import LayerLists, Rows
from punchcard.engines.lowered.graph.builder import Graph
from punchcard.engines.lowered.graph.nodes import Array, Linear, constant
from punchcard.engines.lowered.graph.operations import LOAD, STATE
from punchcard.errors import LoweringError

UNBOUNDED = 2.0**40
"""The limit of numbers for which none is declared."""
FEW = 4


@dataclass(frozen=True)
class ActiveGroup:
    """Columns `start` to `stop` of an active region, which compute alike."""

    region: str
    start: int
    stop: int

    @property
    def width(self) -> int:
        return self.stop - self.start


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


class CardColumns:
    """Active groups and passive columns of a card, with their rows at the beginning of a loop."""

    def __init__(self, layout: Layout, layers: list[LayerLists], card: PackedCard, uniform: bool = True) -> None:
        self.layout, self.card = layout, card
        if sum(b.size for b in layout.blocks) < layout.width or sum(r.size for r in layout.regions) < layout.columns:
            raise LoweringError("the layout says nothing about some rows or columns, which lie between others")
        asked = {row for layer in layers for head in layer.heads for side in (head.key, head.query)
                 for entries in side for row, _ in entries}
        self.active = [r.name for r in layout.regions if any(
            r.name in b.changes and asked & set(range(*span(layout, b.name))) for b in layout.blocks)]
        if not self.active:
            raise LoweringError("no region of the layout changes what a head asks for: there is nothing to lower")
        self.passive_regions = [r.name for r in layout.regions if r.name not in self.active]
        self.groups: list[ActiveGroup] = []
        for region in layout.regions:
            if region.name in self.active:
                at = layout.region(region.name).start
                for size in region.groups or (1,) * region.size:
                    self.groups.append(ActiveGroup(region.name, at, at + size))
                    at += size
        self.passive = np.concatenate([np.arange(*_columns(layout, name)) for name in self.passive_regions]
                                    or [np.zeros(0, dtype=np.int64)])
        if not len(self.passive):
            raise LoweringError("every region of the layout is active")
        self.slots: list[StateSlot] = []
        self.uniform = uniform
        self.layers = layers
        self.assumed: list[bytes] = []
        """What was taken from the card itself, and not only from the layout: part of the compiled code's name."""

    def active_rows(self, graph: Graph) -> list[Rows]:
        """The rows of every group when a loop begins."""
        self.slots = []
        found: list[Rows] = []
        shared = self.shared_rows()
        for number, group in enumerate(self.groups):
            rows: Rows = {}
            for block in self.layout.blocks:
                content = block.holds.get(group.region)
                if content is None:
                    continue
                limit = limit_of(block, content)
                for row in range(*span(self.layout, block.name)):
                    rows[row] = self._active_row(graph, row, number, content, limit, row in shared)
            found.append({row: linear for row, linear in rows.items() if not linear.is_zero})
        return found

    def shared_rows(self) -> set[int]:
        """Rows that every active column holds, with the same value in all of them on this card and after every loop."""
        if not self.uniform:
            return set()
        columns = [c for g in self.groups for c in range(g.start, g.stop)]
        return {
            row for block in self.layout.blocks if set(self.active) <= set(block.changes)
            for row in range(*span(self.layout, block.name))
            if row not in self.parted and bool(np.all((found := row_of(self.card, row, columns)) == found[0]))
        }

    @cached_property
    def parted(self) -> set[int]:
        """Rows that active columns may come to hold differently: they depend on constants in which these columns differ.

        A column takes by its query: equal queries find the same. Rows that are 0 between loops are equal again there.
        """
        columns = [c for g in self.groups for c in range(g.start, g.stop)]
        if len(columns) == 1:
            return set()
        fixed, carried = set[int](), set[int]()
        for block in self.layout.blocks:
            rows, contents = range(*span(self.layout, block.name)), {block.holds.get(region) for region in self.active}
            if contents == {"fixed"}:
                fixed |= {row for row in rows if not _equal(row_of(self.card, row, columns))}
            elif contents & {"bits", "real"}:
                carried |= set(rows)
        found = fixed
        while True:
            after = set(found)
            for layer in self.layers:
                after = layer.spread(after)
            if after & carried <= found:
                return found
            found = fixed | found | after & carried

    def _active_row(self, graph: Graph, row: int, number: int, content: str, limit: float, shared: bool) -> Linear:
        group = self.groups[number]
        if content == "one":
            return constant(1.0)
        if content == "fixed":
            values = row_of(self.card, row, list(range(group.start, group.stop)))
            self.assumed.append(values.tobytes())
            return constant(values)
        slot = StateSlot(row, None if shared else number, 1 if shared else group.width, content, limit)
        if slot not in self.slots:
            self.slots.append(slot)
        return Linear({graph.node(STATE, (), slot): 1.0})

    def passive_rows(self, graph: Graph) -> Rows:
        """The rows of any passive column when a loop begins: what is true of all of them."""
        rows: Rows = {}
        for block in self.layout.blocks:
            contents: set[str | None] = {block.holds.get(name) for name in self.passive_regions}
            if contents == {None}:
                continue
            for row in range(*span(self.layout, block.name)):
                domain = self._domain(row, contents)
                if domain is not None and len(domain) == 1:
                    rows[row] = constant(domain[0])
                    continue
                limit = max(limit_of(block, "real"), 1.0) if domain is None else 0.0
                ends = (-limit, limit) if domain is None else (domain[0], domain[-1])
                rows[row] = Linear({graph.node(LOAD, (), row, ends=ends, domain=domain): 1.0})
        return rows

    def _domain(self, row: int, contents: set[str | None]) -> tuple[float, ...] | None:
        """The values of a row in passive columns, where they are few."""
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

    def changing_rows(self) -> set[int]:
        """Rows that a loop may change in passive columns."""
        return {row for block in self.layout.blocks if set(block.changes) & set(self.passive_regions)
                for row in range(*span(self.layout, block.name))}

    def contents_at(self, column: int) -> dict[int, float]:
        """The rows of one passive column that are known from the layout: 0 and 1."""
        region = next(n for n in self.passive_regions if _columns(self.layout, n)[0] <= column < _columns(self.layout, n)[1])
        known: dict[int, float] = {}
        for block in self.layout.blocks:
            content = block.holds.get(region)
            if content in (None, "one"):
                known.update(dict.fromkeys(range(*span(self.layout, block.name)), 1.0 if content == "one" else 0.0))
        return known

    def limits(self) -> dict[int, tuple[str, float]]:
        """For every row that a passive column may change: what must be true of a value stored there."""
        found: dict[int, tuple[str, float]] = {}
        for block in self.layout.blocks:
            contents = {block.holds.get(name) for name in self.passive_regions}
            kind = "real" if "real" in contents else "bits" if "bits" in contents else "fixed"
            for row in range(*span(self.layout, block.name)):
                found[row] = (kind, limit_of(block, "real"))
        return found

    def closed(self, rows: Iterable[int]) -> list[str]:
        """Passive regions in which one of these rows must stay what it is: a store there is against the facts."""
        kinds = self.limits()
        wanted = set(rows)
        return [
            name for name in self.passive_regions if any(
                block.holds.get(name) not in (("real",) if kinds[row][0] == "real" else ("bits", "real"))
                for block in self.layout.blocks for row in range(*span(self.layout, block.name)) if row in wanted)
        ]

    def following(self) -> set[int]:
        """Rows whose entries follow from those of the selectors, as the layout says."""
        return {row for block in self.layout.blocks if block.follows for row in range(*span(self.layout, block.name))}

    def selectors(self) -> list[int]:
        """Rows that decide what the rest of a loop does."""
        return [row for block in self.layout.blocks for part in block.selects
                for row in range(*span(self.layout, f"{block.name}.{part}"))]

    def cut(self, layers: list[LayerLists]) -> int:
        """How many layers are compiled for each case: those after them are the same for all, and are compiled once.

        They combine selectors with nothing else; and what the layers before have written is declared to be ±1 bits, for
        each of the active columns by itself. Selectors that active columns do not carry from loop to loop are met too late.
        """
        chosen = set(self.selectors())
        used = [number for number, layer in enumerate(layers, start=1) if layer.combines(chosen)]
        cut = max(used, default=len(layers))
        deciding = [b for b in self.layout.blocks if b.selects]
        carried = all(b.holds.get(region) == "bits" for b in deciding for region in self.active)
        if not chosen or not carried or len(self.groups) > 1 or self.groups[0].width > 1:
            return len(layers)
        return cut if self.passing(layers[:cut]) is not None else len(layers)

    def common(self, layers: list[LayerLists], passing: Sequence[StateSlot]) -> tuple[list[StateSlot], list[StateSlot]]:
        """What of the first layer is the same for all cases, of what is passing: what its heads take, and its units give."""
        first, chosen = layers[0], set(self.selectors())
        sides = [entries for head in first.heads for entries in (*head.key, *head.query, *head.value.values())]
        if any(row in chosen for entries in sides for row, _ in entries):
            return [], []
        taken, free = {row for head in first.heads for row in head.value}, first.free_of(chosen)
        given = {row for entries in first.outputs for row, _ in entries}
        if taken & given:
            return [], []
        return [s for s in passing if s.row in taken], [s for s in passing if s.row in free - taken]

    def passing(self, layers: list[LayerLists]) -> list[StateSlot] | None:
        """The rows that these layers, the first of a loop, write in active columns; None if one is not declared a bit."""
        found = []
        for row in sorted({row for layer in layers for row in layer.written}):
            block = next(b for b in self.layout.blocks if row in range(*span(self.layout, b.name)))
            held = {block.holds.get(name) for name in self.active}
            if held == {"bits"} or (held == {None} and block.within == "bits"):
                found.append(StateSlot(row, 0, 1, "bits", 1.0, passing=True))
            else:
                return None
        return found

    def bits_within(self) -> dict[int, int]:
        """Rows that hold ±1 in the middle of a loop, where they are not 0; and the first row of their block."""
        return {row: self.layout.rows(block.name).start for block in self.layout.blocks if block.within == "bits"
                for row in range(*span(self.layout, block.name))}


def _equal(values: Array) -> bool:
    return bool(np.all(values == values[0]))


def limit_of(block: RowBlock, content: Content) -> float:
    """What no entry of a block exceeds in size, where it holds such content."""
    return 1.0 if content in ("bits", "one") else UNBOUNDED if block.limit is None else block.limit


def within(linear: Linear, limit: float) -> bool:
    """Whether a form is never larger in size, as far as its ranges tell."""
    low, high = linear.ends
    return bool(np.all(low >= -limit)) and bool(np.all(high <= limit))


def span(layout: Layout, rows: str) -> tuple[int, int]:
    place = layout.rows(rows)
    return place.start, place.stop


def _columns(layout: Layout, region: str) -> tuple[int, int]:
    place = layout.region(region)
    return place.start, place.stop


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
