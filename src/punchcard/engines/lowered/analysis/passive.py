"""Passive columns: what they hold before each layer, and whom they find, when no active column asks anything of them.

Keys and queries of passive columns must depend on rows that never change. Then whom a passive column finds among passive
columns is settled once for a card, and the only question left in a loop is whether an active column's key beats it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from punchcard.card.formats import AnyArray
from punchcard.card.packed import PackedCard
from punchcard.engines.lowered.analysis.columns import (
    UNBOUNDED,
    CardColumns,
    SignPlace,
    is_even,
    limit_of,
    row_of,
    sign_place,
    within,
    words_at,
)
from punchcard.engines.lowered.analysis.exact_sums import Rows
from punchcard.engines.lowered.analysis.vectors import MOST_SCORES, Dimension, SignRow, Vectors, distinct
from punchcard.engines.lowered.analysis.weights import HeadLists
from punchcard.engines.lowered.graph.builder import Graph
from punchcard.engines.lowered.graph.nodes import Array, Linear, Node, arguments_first, constant, leaves
from punchcard.engines.lowered.graph.operations import LOAD, UNKNOWN
from punchcard.engines.lowered.graph.rules import value_of
from punchcard.errors import LoweringError


@dataclass(frozen=True)
class DistinctKey:
    """A key that one or more passive columns hold: its vector, how many hold it, and the first that does."""

    vector: Array
    count: int
    column: int


@dataclass
class PassiveHead:
    """One head as passive columns see it.

    keys, queries     K x and Q x of every passive column
    score             the least and the greatest score of the passive column found
    few               the different keys, where they are few
    moved             V x of a passive column, symbolic
    own               whether every passive column finds itself;  default  what it takes then
    loose             passive columns take a mixture that is not worked out
    """

    weights: HeadLists
    keys: Vectors
    queries: Vectors
    score: tuple[float, float]
    few: list[DistinctKey] | None
    moved: Rows
    own: bool
    default: Rows
    loose: bool = False

    def __post_init__(self) -> None:
        self.key_range = self.keys.spread
        self.query_range = self.queries.spread
        self.least_score, self.greatest_score = self.score

    def summary(self) -> bytes:
        """All that the code depends on."""
        ranges = [array for of in (self.key_range, self.query_range) for array in (of.low, of.high, of.size)]
        return np.concatenate([self.score, *ranges]).tobytes()


@dataclass
class PassiveLayer:
    """The rows of a passive column before a layer, and its heads."""

    rows: Rows
    heads: list[PassiveHead]


class Passive:
    """All layers, and what a whole loop makes of a passive column to which nothing is stored."""

    def __init__(self, columns: CardColumns, graph: Graph) -> None:
        self.columns, self.graph = columns, graph
        self._values: dict[Node, Array] = {}
        self._vectors: dict[object, Vectors] = {}
        self._sign_words: dict[tuple[str, int], AnyArray] = {}
        self._found: dict[object, Match | None] = {}
        self.read: set[int] = set()
        """Rows that keys and queries of passive columns depend on."""
        self.changing = columns.changing
        self.layers: list[PassiveLayer] = []
        self.begin = columns.passive_rows(graph)
        rows = dict(self.begin)
        for number, lists in enumerate(columns.layers):
            lists.check_heads(graph, [rows])
            layer = PassiveLayer(rows, [self._head(weights, rows, f"layer {number + 1}, head {head + 1}")
                                        for head, weights in enumerate(lists.heads)])
            self.layers.append(layer)
            rows = self.through(number, rows, [head.default for head in layer.heads])
        self.end = rows
        self._check_rests()

    def through(self, number: int, rows: Rows, taken: list[Rows]) -> Rows:
        """One layer on a passive column, with what its heads take."""
        layer = self.columns.layers[number]
        after = layer.sums.add(layer.where, rows, taken)
        return layer.feed_forward(self.graph, {row: self.graph.gathered(linear) for row, linear in after.items()})

    def finds(self, number: int, rows: Rows) -> list[Rows]:
        """What a passive column with these rows takes in a layer, when it finds whom it always finds there."""
        layer = self.layers[number]
        taken = []
        for head in layer.heads:
            for side in (head.weights.key, head.weights.query):
                if any(not a.same(b) for a, b in zip(head.weights.apply(side, rows), head.weights.apply(side, layer.rows),
                                                     strict=True)):
                    raise LoweringError(f"a store changes what a passive column asks for in layer {number + 1}")
            taken.append(head.weights.moved(rows) if head.own and not head.loose else head.default)
        return taken

    def _check_rests(self) -> None:
        """A second loop must change nothing more, so that only columns that were just stored to need a visit."""
        self.settles = {row: linear for row, linear in self.end.items() if not linear.same(self.begin.get(row, Linear()))}
        self.settles |= {row: Linear() for row in self.begin if row not in self.end}
        again = {node: self.end.get(row, Linear()) for row, linear in self.begin.items() for node in linear.terms}
        for row, linear in self.end.items():
            if leaves(linear, UNKNOWN):
                raise LoweringError(f"row {row} of a passive column takes from several columns")
            if not self.graph.gathered(self.graph.substitute(linear, again)).same(linear):
                raise LoweringError(f"row {row} of a passive column keeps changing by itself")
            if row not in self.begin and not linear.same(Linear()):
                raise LoweringError(f"row {row} of a passive column, which the layout leaves empty, gets a value")
        for region in self.columns.passive_regions:
            self._check_declared(region)

    def _check_declared(self, region: str) -> None:
        """What the layout declares constant in a region is the same after a loop, also where it is not in others."""
        known, contents = {}, {}
        for row, block in self.columns.block_of.items():
            content = block.holds.get(region)
            free = region in block.changes and (content == "real" or (content == "bits" and not block.real))
            contents[row] = "changes" if free else content
            if content in (None, "one"):
                known.update({node: constant(1.0 if content else 0.0) for node in self.begin.get(row, Linear()).terms
                              if node.op is LOAD})
        for row, linear in self.settles.items():
            now = self.graph.gathered(self.graph.substitute(linear, known))
            before = self.graph.gathered(self.graph.substitute(self.begin.get(row, Linear()), known))
            if contents[row] != "changes" and not now.same(before):
                raise LoweringError(f"row {row} changes in {region!r}, where the layout says that it never does")

    def keeps_limits(self, card: PackedCard) -> bool:
        """Whether all numbers of a card stay within their limits when they settle."""
        known: dict[Node, Array] = {}
        for row, linear in self.settles.items():
            kind, limit = self.columns.limit_at(row)
            if kind == "real" and not within(linear, limit):
                for node in leaves(linear, LOAD):
                    if node not in known:
                        known[node] = row_of(card, node.data, self.columns.passive)
                for node in linear.terms:
                    for part in arguments_first(node, known, lambda made: made.args):
                        known[part] = value_of(part, known)
                total = linear.constant + sum(c * known[node] for node, c in linear.terms.items())
                if not bool(np.all(np.abs(total) <= limit)):
                    return False
        return True

    # Numbers

    def vectors(self, forms: list[Linear]) -> Vectors:
        """K x or Q x of every passive column."""
        key = tuple(form.key() for form in forms)
        if key not in self._vectors:
            self._vectors[key] = Vectors.of([self._dimension(form) for form in forms], len(self.columns.passive))
        return self._vectors[key]

    def _dimension(self, form: Linear) -> Dimension:
        """One dimension: a constant, a size and signs, or any numbers."""
        if form.is_constant:
            return form.constant[:1]
        single = form.single
        if single is None or single[0].op is not LOAD:
            return self.evaluate(form)
        self._reads(single[0].data)
        place = sign_place(self.columns.card, single[0].data, self.columns.passive)
        return single[1] * self._value(single[0]) if place is None else SignRow(single[1], self._words(place), place.bit)

    def _words(self, place: SignPlace) -> AnyArray:
        """The words that hold signs, in every passive column: one array for all signs in them."""
        name = place.block, place.chunk
        if name not in self._sign_words:
            self._sign_words[name] = words_at(self.columns.card, place, self.columns.passive)
        return self._sign_words[name]

    def evaluate(self, linear: Linear) -> Array:
        """A form of static rows, for every passive column."""
        total = np.broadcast_to(linear.constant, (len(self.columns.passive),)).astype(np.float64)
        for node, c in linear.terms.items():
            total = total + c * self._value(node)
        return total

    def _value(self, node: Node) -> Array:
        if node.op is LOAD:
            self._reads(node.data)
            return row_of(self.columns.card, node.data, self.columns.passive)
        if node not in self._values:
            if node.op.value is not None:
                value = node.op.value(node.data, *map(self._value, node.args))
            else:
                raise LoweringError("keys or queries outside the active columns depend on a mixture of many columns")
            self._values[node] = value
        return self._values[node]

    def _reads(self, row: int) -> None:
        """Keys or queries of passive columns depend on a row, which must be static."""
        if row in self.changing:
            raise LoweringError(f"row {row}, which keys or queries outside the active columns read, changes")
        self.read.add(row)

    # Heads

    def _head(self, weights: HeadLists, rows: Rows, where: str) -> PassiveHead:
        key_forms, query_forms = weights.apply(weights.key, rows), weights.apply(weights.query, rows)
        keys, queries = self.vectors(key_forms), self.vectors(query_forms)
        lead = weights.lead(weights.scores_of(queries.dimensions, keys.dimensions))
        name = (tuple(f.key() for f in key_forms), tuple(f.key() for f in query_forms), lead)
        moved = weights.moved(rows)
        if name not in self._found:
            try:
                self._found[name] = best_matches(queries, keys, lead, where)
            except OtherMatches:
                raise
            except LoweringError:
                self._found[name] = None
        found, own, default = self._found[name], False, moved
        if found is None:
            default = {row: self.graph.unknown((where, row), -UNBOUNDED, UNBOUNDED) for row in weights.value}
        elif found.one is None:
            own = True
        else:
            default = self._at(moved, int(self.columns.passive[found.one]), where)
        score = (0.0, 0.0) if found is None else found.score
        result = PassiveHead(weights, keys, queries, score, self._few(keys), moved, own, default, loose=found is None)
        self.columns.assumed += [b"loose" if found is None else str(found.one).encode(), result.summary()]
        return result

    def _few(self, keys: Vectors) -> list[DistinctKey] | None:
        """The different keys, if there are few."""
        found = keys.few()
        if found is None:
            return None
        few = [DistinctKey(v, int(n), int(self.columns.passive[f])) for v, f, n in zip(*found, strict=True)]
        self.columns.assumed += [key.vector.tobytes() + f"{key.count > 1} {key.column}".encode() for key in few]
        return few

    def _at(self, moved: Rows, column: int, where: str) -> Rows:
        """V x of one certain passive column; it must follow from the layout."""
        known = {node: Linear({}, np.array([value])) for row, value in self.columns.contents_at(column).items()
                 for node in self.begin.get(row, Linear()).terms}
        found = {}
        for row, linear in moved.items():
            value = self.graph.substitute(linear, known)
            if not value.is_constant:
                raise LoweringError(f"{where}: passive columns find column {column}, whose values may change")
            if not value.is_zero:
                found[row] = value
        return found


@dataclass(frozen=True)
class Match:
    """Whom passive columns find: each itself, or all of them one; with the least and the greatest score."""

    one: int | None
    score: tuple[float, float]


class OtherMatches(LoweringError):
    """Passive columns find others, each its own."""


def best_matches(queries: Vectors, keys: Vectors, lead: float, where: str) -> Match:
    """Whom every query finds: the one key whose score is the best.

    Every other key must score less by at least `lead`. Where there are many of both, they must be ±1 codes up to a factor
    for each dimension: then the key with the query's signs has the largest score that any key could have, and a key with
    another sign in dimension i loses 2 |q_i k_i| at least.
    """
    found = _by_code(queries, keys, lead)
    if found is not None:
        return found
    if np.array_equal(queries.spread.low, queries.spread.high):  # all ask for the same
        different, inverse = queries.part(0, 1), np.zeros(len(queries), dtype=np.int64)
        scores = keys.times(different[0])[None, :]
    else:
        different, inverse = np.unique(queries.matrix, axis=0, return_inverse=True)
        if len(different) * len(keys) > MOST_SCORES:
            raise LoweringError(f"{where}: too many different keys that are not ±1 codes")
        scores = different @ keys.matrix.T
    winner = scores.argmax(axis=1)
    best = scores[np.arange(len(scores)), winner]
    scores[np.arange(len(scores)), winner] = -np.inf
    second = scores.max(axis=1) if len(keys) > 1 else np.full(len(best), -np.inf)
    if bool(np.any(best - second < lead)):
        raise LoweringError(f"{where}: a passive column finds several others, or nothing that stands out")
    chosen = winner[inverse.reshape(-1)]
    score = float(best.min()), float(best.max())
    if bool(np.all(chosen == np.arange(len(chosen)))):
        return Match(None, score)
    if len(np.unique(winner)) == 1:
        return Match(int(winner[0]), score)
    raise OtherMatches(f"{where}: passive columns find other passive columns, each its own")


def _by_code(queries: Vectors, keys: Vectors, lead: float) -> Match | None:
    """Signs that are the same in key and query of every column, and no two alike: then each finds itself."""
    if queries.signs is None or keys.signs is None or len(keys) < 2:
        return None
    dims = np.flatnonzero(queries.sizes != 0).tolist()
    products = queries.sizes[dims] * keys.sizes[dims]
    if not dims or not bool(np.all(products != 0)) or float(2 * np.min(np.abs(products))) < lead:
        return None
    wanted, held = queries.codes(dims), keys.codes(dims)
    if not np.array_equal(wanted, held) or not distinct(held):
        return None
    best = float(np.abs(products).sum())
    return Match(None, (best, best))


class CardRequirements:
    """The requirements on the cards of one machine: static rows, limits of numbers, active columns that hold the same."""

    def __init__(self, passive: Passive, card: PackedCard) -> None:
        columns, read, layout = passive.columns, passive.read, passive.columns.layout
        self.passive = passive
        self.static: list[tuple[str, slice, AnyArray]] = []
        self.limits: list[tuple[str, float]] = []
        for block in layout.blocks:
            field, rows = card.fields.get(block.name), layout.rows(block.name)
            if field is None:
                continue
            if field.dtype.kind == "f":
                self.limits.append((block.name, limit_of(block, "real")))
            for region, content in block.holds.items():
                asked = region not in columns.active and bool(read & set(range(rows.start, rows.stop)))
                if content == "fixed" or (asked and content != "one"):
                    place = layout.region(region)
                    self.static.append((block.name, place, field[place].copy()))
        self.alike = sorted(columns.shared_rows())
        self.active = columns.active_columns
        self.breakable = bool(self.limits or any(layout.place(name).block.changes for name, _, _ in self.static)
                              or len(self.active) > 1)
        """Whether a card may fail after a change in blocks that a loop may change, by words of their bits."""

    @cached_property
    def digest(self) -> bytes:
        """A name for the static rows."""
        digest = hashlib.sha256()
        for name, place, values in self.static:
            digest.update(f"{name} {place.start} {values.dtype} {values.shape}".encode())
            digest.update(np.ascontiguousarray(values).data)
        return digest.digest()

    def hold(self, card: PackedCard, *, everywhere: bool = True) -> bool:
        """Whether the code was made for cards like this; or at least for its active columns."""
        columns: Any = slice(None) if everywhere else self.active
        if any(not bool(np.all(np.abs(card.fields[name][columns]) <= limit)) for name, limit in self.limits):
            return False
        if everywhere and any(not np.array_equal(card.fields[name][place], values) for name, place, values in self.static):
            return False
        if everywhere and not self.passive.keeps_limits(card):
            return False
        if len(self.active) == 1:
            return True
        return all(is_even(card, row, self.active) for row in self.alike)
