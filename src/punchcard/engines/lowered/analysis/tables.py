"""Tables from the signs of a pointer to a column, filled from the keys and queries on the card."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from punchcard.engines.lowered.analysis.exact_sums import Dimensions, Indices
from punchcard.engines.lowered.analysis.passive import Passive, PassiveHead
from punchcard.engines.lowered.analysis.plan import Lookup
from punchcard.engines.lowered.analysis.vectors import code_numbers, distinct
from punchcard.engines.lowered.graph.nodes import Array
from punchcard.errors import LoweringError
from punchcard.transformer.grids import grids_of

FEW_SPECIAL = 8
FEW_OTHERS = 4
"""Codes that the code compares one by one, where it does without a table."""
CLOSED = -2
"""In a store table: a column that the layout says nothing is stored to."""
Entries = npt.NDArray[np.int32]


@dataclass(frozen=True)
class DirectLookup:
    """A table in which `count` codes from `first` on lead to columns from `column` on, one after the other; and few others.

    others    codes besides, and their columns
    inside    whether every code there can be leads to a column, or to the one before the first or after the last
    """

    first: int
    count: int
    column: int
    others: tuple[tuple[int, int], ...] = ()
    inside: bool = False


def direct(table: Lookup, passive: Passive) -> DirectLookup | None:
    """How a table can be done without: the codes of passive columns follow each other as the columns do, but for a few."""
    codes, columns, is_open = _codes(table, passive), passive.columns.passive, ~_closed(table, passive)
    if not table.dims or codes is None or not is_open.any():
        return None
    found = longest_run(codes[is_open], columns[is_open])
    if found is None:
        return None
    least = found.column - found.first
    return replace(found, inside=least >= -1 and least + (1 << len(table.dims)) - 1 <= passive.columns.layout.columns)


def _codes(table: Lookup, passive: Passive) -> Indices | None:
    """The codes of all passive columns, where no two are alike, and one that is asked for finds its column."""
    head = passive.layers[table.layer].heads[table.head]
    if table.kind == "find" and (head.keys.signs is None or not table.dims or not _stands_out(table, head)):
        return None
    codes = (head.queries if table.kind == "store" else head.keys).codes(table.dims)
    return codes if distinct(codes) else None


def _closed(table: Lookup, passive: Passive) -> npt.NDArray[np.bool_]:
    """Which passive columns nothing may be stored to by a table."""
    closed = np.zeros(len(passive.columns.passive), dtype=bool)
    for place in map(passive.columns.layout.region, table.closed):
        closed |= (passive.columns.passive >= place.start) & (passive.columns.passive < place.stop)
    return closed


def longest_run(codes: Indices, columns: Indices) -> DirectLookup | None:
    """The longest run of codes and columns that follow each other, where nearly all are in it."""
    breaks = np.flatnonzero((np.diff(codes) != 1) | (np.diff(columns) != 1)) + 1
    if len(breaks) > 2 * FEW_OTHERS:
        return None
    ends = [0, *breaks.tolist(), len(codes)]
    start, stop = max(pairwise(ends), key=lambda run: run[1] - run[0])
    others = [*range(start), *range(stop, len(codes))]
    if len(others) > FEW_OTHERS:
        return None
    besides = tuple((int(codes[i]), int(columns[i])) for i in others)
    return DirectLookup(int(codes[start]), stop - start, int(columns[start]), besides)


def _stands_out(table: Lookup, head: PassiveHead) -> bool:
    """Whether a key with the right signs beats all others, where every key is a code of the same sizes."""
    products = np.array(table.sizes) * np.abs(head.keys.sizes[list(table.dims)])
    rest = np.array(table.rest)
    low, high = head.keys.spread.product(rest)
    best = float(products.sum()) + low
    return bool(low == high and 2 * float(products.min()) >= _lead(table, head) and best >= table.least
                and (table.exact is None or best == table.exact))


def _lead(table: Lookup, head: PassiveHead) -> float:
    """How far below the best a score has a weight of exactly 0, for the queries of a table."""
    asked = np.abs(np.array(table.rest))
    asked[list(table.dims)] = table.sizes
    scores = head.weights.scores_of(Dimensions(asked, grids_of(asked)), head.keys.dimensions)
    return head.weights.lead(scores)


def fill(table: Lookup, passive: Passive) -> Entries:
    """All entries of a store table; of a find table, those codes that a passive column holds. Others are -1."""
    head, codes = passive.layers[table.layer].heads[table.head], _codes(table, passive)
    entries = np.full(1 << len(table.dims), -1, dtype=np.int32)
    columns = passive.columns.passive
    if codes is not None:
        entries[codes] = np.where(_closed(table, passive), CLOSED, columns)
        return entries
    if table.kind == "store":
        where = f"layer {table.layer + 1}, head {table.head + 1}"
        raise LoweringError(f"{where}: several passive columns take from one active one")
    if not table.dims:
        entries[0] = find(table, passive, 0)
        return entries
    dims, sizes, rest = list(table.dims), np.array(table.sizes), np.array(table.rest)
    keys = head.keys.matrix
    sides = np.abs(keys[:, dims])
    full = sides == sides.max(axis=0)
    extra = keys @ rest
    plain = full.all(axis=1) & (extra == extra.min())
    special = np.flatnonzero(~plain)
    if len(special) > FEW_SPECIAL or not plain.any():
        return entries
    codes = code_numbers(keys[np.ix_(plain, dims)])
    if len(np.unique(codes)) < len(codes):
        return entries
    products = sizes * sides.max(axis=0)
    best = float(products.sum()) + float(extra.min())
    rivals = np.full(len(codes), best - 2 * float(products.min()))
    for column in special:
        scores = keys[np.ix_(plain, dims)] / sides.max(axis=0) * sizes @ keys[column, dims] + extra[column]
        rivals = np.maximum(rivals, scores)
    good = (best - rivals >= _lead(table, head)) & (best >= table.least) & (table.exact is None or best == table.exact)
    entries[codes[good]] = columns[plain][good]
    return entries


def find(table: Lookup, passive: Passive, code: int) -> int:
    """The passive column for one code, by scoring all of them; -1 if no column wins clearly."""
    head = passive.layers[table.layer].heads[table.head]
    scores = head.keys.times(_query(table, head, code))
    winner = int(scores.argmax())
    best = float(scores[winner])
    scores[winner] = -np.inf
    good = (best - float(scores.max(initial=-np.inf)) >= _lead(table, head) and best >= table.least
            and (table.exact is None or best == table.exact))
    return int(passive.columns.passive[winner]) if good else -1


def _query(table: Lookup, head: PassiveHead, code: int) -> Array:
    query = np.array(table.rest)
    for i, (dim, size) in enumerate(zip(table.dims, table.sizes, strict=True)):
        query[dim] = size if code >> i & 1 else -size
    return query
