"""Quiet columns: what they hold before each layer, and whom they find, when no busy column asks anything of them.

Keys and queries of quiet columns must depend on rows that never change. Then whom a quiet column finds among quiet
columns is settled once for a card, and the only question left in a loop is whether a busy column's key beats it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from punchcard.engines.lowered.analysis.columns import UNBOUNDED, Columns
from punchcard.engines.lowered.analysis.contents import row_of
from punchcard.engines.lowered.analysis.weights import HeadWeights, LayerLists, Rows
from punchcard.engines.lowered.graph.builder import Graph
from punchcard.engines.lowered.graph.nodes import Array, Linear, Node, leaves
from punchcard.engines.lowered.graph.operations import LOAD, MURK
from punchcard.errors import LoweringError

FEW_KEYS = 8
MOST_SCORES = 1 << 24
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Spread:
    """Each dimension of many vectors: least and greatest entry, and the common size, or 0 where sizes differ."""

    low: Array
    high: Array
    size: Array

    @classmethod
    def of(cls, vectors: Array) -> Spread:
        sizes = np.abs(vectors[0])
        return cls(vectors.min(axis=0), vectors.max(axis=0), np.where((np.abs(vectors) == sizes).all(axis=0), sizes, 0.0))

    def arrays(self) -> tuple[Array, Array, Array]:
        return self.low, self.high, self.size

    @property
    def used(self) -> npt.NDArray[np.bool_]:
        """Dimensions that are not 0 throughout."""
        used: npt.NDArray[np.bool_] = (self.low != 0) | (self.high != 0)
        return used

    def product(self, other: Array) -> tuple[float, float]:
        """Least and greatest product with another vector."""
        a, b = self.low * other, self.high * other
        return float(np.minimum(a, b).sum()), float(np.maximum(a, b).sum())


@dataclass(frozen=True)
class FewKey:
    """A key that one or more quiet columns hold: its vector, how many hold it, and the first that does."""

    vector: Array
    count: int
    column: int


@dataclass
class QuietHead:
    """One head as quiet columns see it: an array row for every quiet column.

    keys, queries     K x and Q x
    score             the score of the quiet column found
    few               the different keys, where they are few
    moved             V x of a quiet column, symbolic
    own               whether every quiet column finds itself;  default  what it takes then
    loose             quiet columns take a mixture that is not worked out
    """

    weights: HeadWeights
    keys: Array
    queries: Array
    score: Array
    few: list[FewKey] | None
    moved: Rows
    own: bool
    default: Rows
    loose: bool = False

    def __post_init__(self) -> None:
        self.key_range = Spread.of(self.keys)
        self.query_range = Spread.of(self.queries)
        self.least_score, self.greatest_score = float(self.score.min()), float(self.score.max())

    def summary(self) -> bytes:
        """All that the code depends on."""
        numbers = [self.least_score, self.greatest_score]
        return np.concatenate([numbers, *self.key_range.arrays(), *self.query_range.arrays()]).tobytes()


@dataclass
class QuietLayer:
    """The rows of a quiet column before a layer, and its heads."""

    rows: Rows
    heads: list[QuietHead] = field(default_factory=list)


class Quiet:
    """All layers, and what a whole loop makes of a quiet column that nobody stores to."""

    def __init__(self, columns: Columns, layers: list[LayerLists], graph: Graph) -> None:
        self.columns, self.lists, self.graph = columns, layers, graph
        self._values: dict[Node, Array] = {}
        self._found: dict[object, tuple[Array, Indices] | None] = {}
        self.read: set[int] = set()
        """Rows that keys and queries of quiet columns depend on."""
        self.changing = columns.changing_rows()
        self.layers: list[QuietLayer] = []
        self.begin = columns.quiet_rows(graph)
        rows = dict(self.begin)
        for number in range(len(layers)):
            layer = QuietLayer(rows)
            for head, weights in enumerate(layers[number].heads):
                layer.heads.append(self._head(weights, rows, f"layer {number + 1}, head {head + 1}"))
            self.layers.append(layer)
            rows = self.through(number, rows, [head.default for head in layer.heads])
        self.end = rows
        self._check_rests()

    def through(self, number: int, rows: Rows, taken: list[Rows]) -> Rows:
        """One layer on a quiet column, with what its heads take."""
        after = {row: linear.copy() for row, linear in rows.items()}
        for moved in taken:
            for row, linear in moved.items():
                after.setdefault(row, Linear()).add(linear)
        return self.lists[number].feed_forward(self.graph, {r: self.graph.gathered(x) for r, x in after.items()}, 1)

    def finds(self, number: int, rows: Rows) -> list[Rows]:
        """What a quiet column with these rows takes in a layer, when it finds whom it always finds there."""
        layer = self.layers[number]
        taken = []
        for head in layer.heads:
            for side in (head.weights.key, head.weights.query):
                if any(not a.same(b) for a, b in zip(head.weights.apply(side, rows), head.weights.apply(side, layer.rows),
                                                     strict=True)):
                    raise LoweringError(f"a store changes what a quiet column asks for in layer {number + 1}")
            taken.append(head.weights.moved(rows) if head.own and not head.loose else head.default)
        return taken

    def _check_rests(self) -> None:
        """A second loop must change nothing more, so that only columns that were just stored to need a visit."""
        self.settles = {row: linear for row, linear in self.end.items() if not linear.same(self.begin.get(row, Linear()))}
        self.settles |= {row: Linear() for row in self.begin if row not in self.end}
        again = {node: self.end.get(row, Linear()) for row, linear in self.begin.items() for node in linear.terms}
        for row, linear in self.end.items():
            if leaves(linear, MURK):
                raise LoweringError(f"row {row} of a quiet column takes from several columns")
            if not self.graph.gathered(self.graph.substitute(linear, again)).same(linear):
                raise LoweringError(f"row {row} of a quiet column goes on changing by itself")
            if row not in self.begin and not linear.same(Linear()):
                raise LoweringError(f"row {row} of a quiet column, which the layout leaves empty, gets a value")

    # Numbers

    def evaluate(self, linear: Linear) -> Array:
        """A form of static rows, for every quiet column."""
        total = np.broadcast_to(linear.constant, (len(self.columns.quiet),)).astype(np.float64)
        for node, c in linear.terms.items():
            total = total + c * self._value(node)
        return total

    def _value(self, node: Node) -> Array:
        if node not in self._values:
            if node.op is LOAD:
                if node.data in self.changing:
                    raise LoweringError(f"row {node.data}, which keys or queries outside the busy columns read, changes")
                self.read.add(node.data)
                value = row_of(self.columns.card, node.data, self.columns.quiet)
            elif node.op.value is not None:
                value = node.op.value(node.data, *map(self._value, node.args))
            else:
                raise LoweringError("keys or queries outside the busy columns depend on a mixture of many columns")
            self._values[node] = value
        return self._values[node]

    # Heads

    def _head(self, weights: HeadWeights, rows: Rows, where: str) -> QuietHead:
        key_forms, query_forms = weights.apply(weights.key, rows), weights.apply(weights.query, rows)
        name = (tuple(f.key() for f in key_forms), tuple(f.key() for f in query_forms), weights.gap)
        keys = np.stack([self.evaluate(f) for f in key_forms], axis=1)
        queries = np.stack([self.evaluate(f) for f in query_forms], axis=1)
        moved = weights.moved(rows)
        if name not in self._found:
            try:
                self._found[name] = best_matches(queries, keys, weights.gap, where)
            except LoweringError:
                self._found[name] = None
        found = self._found[name]
        if found is None:
            self.columns.assumed.append(b"loose")
            default = {row: self.graph.murk((where, row), -UNBOUNDED, UNBOUNDED) for row in weights.value}
            result = QuietHead(weights, keys, queries, np.zeros(1), self._few(keys), moved, False, default, loose=True)
            self.columns.assumed.append(result.summary())
            return result
        score, winner = found
        own = bool(np.all(winner == np.arange(len(winner))))
        if own:
            default = moved
        elif len(set(winner.tolist())) == 1:
            default = self._at(moved, int(self.columns.quiet[winner[0]]), where)
        else:
            raise LoweringError(f"{where}: quiet columns find other quiet columns, each its own")
        few = self._few(keys)
        self.columns.assumed.append(b"own" if own else str(winner[0]).encode())
        result = QuietHead(weights, keys, queries, score, few, moved, own, default)
        self.columns.assumed.append(result.summary())
        return result

    def _few(self, keys: Array) -> list[FewKey] | None:
        few = few_keys(keys, self.columns.quiet)
        for key in few or ():
            self.columns.assumed.append(key.vector.tobytes() + bytes(f"{key.count > 1} {key.column}", "ascii"))
        return few

    def _at(self, moved: Rows, column: int, where: str) -> Rows:
        """V x of one certain quiet column; it must follow from the layout."""
        known = {node: Linear({}, np.array([value])) for row, value in self.columns.contents_at(column).items()
                 for node in self.begin.get(row, Linear()).terms}
        found = {}
        for row, linear in moved.items():
            value = self.graph.substitute(linear, known)
            if not value.is_constant:
                raise LoweringError(f"{where}: quiet columns find column {column}, whose values may change")
            if not value.is_zero:
                found[row] = value
        return found


def few_keys(keys: Array, columns: Indices) -> list[FewKey] | None:
    """The different keys, if there are few."""
    if len(np.unique(keys @ np.random.default_rng(1).normal(size=keys.shape[1]))) > FEW_KEYS:
        return None
    vectors, first, counts = np.unique(keys, axis=0, return_index=True, return_counts=True)
    return [FewKey(v, int(n), int(columns[f])) for v, f, n in zip(vectors, first, counts, strict=True)]


def best_matches(queries: Array, keys: Array, gap: float, where: str) -> tuple[Array, Indices]:
    """The best score of every query, and the one key that has it.

    Every other key must score less by at least `gap`. Equal queries and keys are scored once. Where there are many of
    both, they must be ±1 codes up to a factor for each dimension: then the key with the query's signs has the
    largest score that any key could have, and a key with another sign in dimension i loses 2 |q_i k_i| at least.
    """
    if len(queries) * len(keys) > MOST_SCORES:
        try:  # before they are sorted, which takes longer
            winner, best, second = _by_code(queries, keys, where)
        except LoweringError:
            pass
        else:
            if bool(np.all(best - second >= gap)):
                return best, winner
    different, inverse = np.unique(queries, axis=0, return_inverse=True)
    if len(different) * len(keys) <= MOST_SCORES:
        scores = different @ keys.T
        winner = scores.argmax(axis=1)
        best = scores[np.arange(len(scores)), winner]
        scores[np.arange(len(scores)), winner] = -np.inf
        second = scores.max(axis=1) if keys.shape[0] > 1 else np.full(len(best), -np.inf)
    else:
        winner, best, second = _by_code(different, keys, where)
    if bool(np.any(best - second < gap)):
        raise LoweringError(f"{where}: a quiet column finds several others, or nothing that stands out")
    inverse = inverse.reshape(-1)
    return best[inverse], winner[inverse]


def _by_code(queries: Array, keys: Array, where: str) -> tuple[Indices, Array, Array]:
    used = (queries != 0).any(axis=0)
    queries, keys = queries[:, used], keys[:, used]
    sizes = np.abs(queries[0]), np.abs(keys[0])
    codes = [bool(np.all(np.abs(vectors) == size)) for vectors, size in zip((queries, keys), sizes, strict=True)]
    if not all(codes) or not bool(np.all(sizes[1] > 0)):
        raise LoweringError(f"{where}: too many different keys that are not ±1 codes")
    wanted, held = code_numbers(queries), code_numbers(keys)
    order = np.argsort(held, kind="stable")
    place = np.minimum(np.searchsorted(held[order], wanted), len(order) - 1)
    winner = order[place]
    if bool(np.any(held[winner] != wanted)) or bool(np.any(np.diff(held[order]) == 0)):
        raise LoweringError(f"{where}: a quiet column finds several others, or nothing that stands out")
    best = np.full(len(queries), float(sizes[0] @ sizes[1]))
    return winner, best, best - 2 * float(np.min(sizes[0] * sizes[1]))


def code_numbers(bits: Array) -> Indices:
    """The integers whose bits are the signs."""
    return (bits > 0).astype(np.int64) @ (np.int64(1) << np.arange(bits.shape[1], dtype=np.int64))
