"""The operations of a loop, each declared once: what it computes, its range and grid, how it folds, and its code.

A value is one row in a group of columns that compute alike, with an entry for each column. All operations but
mixtures work entry by entry.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from punchcard.engines.lowered.graph.grids import grid_of, product_of_grids
from punchcard.engines.lowered.graph.nodes import BIT, Array, Linear, Node, all_zero
from punchcard.transformer.grids import grid_of_number

if TYPE_CHECKING:
    from punchcard.engines.lowered.codegen.emit import LoopEmitter
    from punchcard.engines.lowered.graph.builder import Graph

FEW_VALUES = 4
"""Values that a node's domain lists at most."""
Domain = tuple[float, ...]
Ends = tuple[Array | float, Array | float]


@dataclass(frozen=True, eq=False)
class NodeKind:
    """What a kind of node means. Each function is given the node's data and then something for each argument.

    emit     its code
    value    what it computes, on arrays of numbers
    ends     the least and greatest value of every entry, from the arguments; a leaf may be given its own
    domain   all values that it can take, where these are few
    grid     a power of two of which every value is a multiple, from the arguments' grids; 0 where none is known
    again    the operation on other linear forms, simplified
    key      what tells its data apart, where that cannot be hashed
    steps    1 if what it computes is not linear;  row  the row that a leaf stands for
    place    where a ReLU opens, or the number of a table: other nodes have the place of their first argument
    folds    whether few values of the arguments are followed through it
    """

    name: str
    emit: Callable[[LoopEmitter, Node], Any]
    value: Callable[..., Array] | None = None
    ends: Callable[..., Ends] | None = None
    domain: Callable[..., Domain | None] = lambda *_: None
    grid: Callable[..., float] = lambda *_: 0.0
    again: Callable[..., Linear] | None = None
    key: Callable[[Any], Any] = lambda data: data
    folds: bool = False
    steps: int = 1
    row: Callable[[Any], float | None] = lambda _: None
    place: Callable[[Any], float | None] = lambda _: None


# Leaves

CONSTANT = NodeKind(  # data: values
    "constant", lambda e, node: e.floats.vector(node.data, node.width),
    value=lambda values: values, ends=lambda values: (values, values), grid=lambda values: grid_of(values.flat),
    key=lambda values: values.tobytes(), steps=0)
COLUMN = NodeKind(  # a certain passive column; data: its number
    "column", lambda e, node: e.integer(node.data), ends=lambda column: (column, column))
STATE = NodeKind(  # a row that a group carries from loop to loop; data: slot
    "state", lambda e, node: e.state(node),
    ends=lambda slot: (np.full(slot.width, -slot.limit), np.full(slot.width, slot.limit)),
    domain=lambda slot: BIT if slot.content == "bits" else None, steps=0, row=lambda slot: slot.row)
LOAD = NodeKind(  # a row of the passive column at hand; data: row
    "load", lambda e, node: e.row(e.own, node.data), steps=0, row=lambda row: row)
GIVEN = NodeKind(  # a value that an active column hands to a passive one; data: layer, head, row, ends, domain
    "given", lambda e, node: e.given(node), ends=lambda given: given[3:5], domain=lambda given: given[5],
    row=lambda given: given[2])
UNKNOWN = NodeKind(  # a value that was not worked out: nothing may depend on it; data: name, ends
    "unknown", lambda e, node: e.bound[node], ends=lambda name: name[-2:])


# Sums, ReLUs and products


def _ends_of_sum(c: float, x: Node, y: Node | None = None) -> Ends:
    if x.range is not None and (y is None or y.range is not None):
        one, other = x.range if c > 0 else x.range[::-1]
        if y is None or y.range is None:
            return c * one, c * other
        return c * one + y.range[0], c * other + y.range[1]
    low, high = (c * x.low, c * x.high) if c > 0 else (c * x.high, c * x.low)
    return (low, high) if y is None else (low + y.low, high + y.high)


def _values_of_sum(c: float, x: Node, y: Node | None = None) -> Domain | None:
    if x.domain is None or y is None or y.domain is None:
        return None
    values = sorted({c * s + t for s in x.domain for t in y.domain})
    return tuple(values) if len(values) <= FEW_VALUES else None


def _sum_again(graph: Graph, c: float, x: Linear, y: Linear | None = None) -> Linear:
    total = x.times(c)
    if y is not None:
        total.add(y)
    return graph.gathered(total)


FMA = NodeKind(  # c x + y, or c x; data: c
    "fma", lambda e, node: e.floats.scaled(node.data, *e.args(node)),
    value=lambda c, x, y=0.0: c * x + y, ends=_ends_of_sum, domain=_values_of_sum,
    grid=lambda c, x, *y: min(product_of_grids(grid_of_number(c), x), *y, np.inf), again=_sum_again, folds=True, steps=0)


def _affine_ends(factor: float, bias: Array, x: Node) -> tuple[Array, Array]:
    ends = factor * x.low + bias, factor * x.high + bias
    return ends if factor > 0 else ends[::-1]


def _relu_ends(data: tuple[float, Array], x: Node) -> Ends:
    if x.range is not None and len(data[1]) == 1:
        factor, bias = data[0], data[1].item()
        one, other = x.range if factor > 0 else x.range[::-1]
        return max(factor * one + bias, 0.0), max(factor * other + bias, 0.0)
    low, high = _affine_ends(*data, x)
    return np.maximum(low, 0), np.maximum(high, 0)


def _relu_grid(data: tuple[float, Array], x: float) -> float:
    grid = product_of_grids(abs(data[0]), x)
    return grid if all_zero(data[1]) else min(grid, grid_of(data[1].tolist()))


def _relu_again(graph: Graph, data: tuple[float, Array], x: Linear) -> Linear:
    inner = Linear({}, data[1])
    inner.add(x, data[0])
    return graph.relu(inner)


RELU = NodeKind(  # relu(s x + b); data: s, b
    "relu", lambda e, node: e.floats.most(e.affine(node), e.floats.number(0.0, node.width)),
    value=lambda data, x: np.maximum(data[0] * x + data[1], 0), ends=_relu_ends, grid=_relu_grid, again=_relu_again,
    key=lambda data: (data[0], data[1].tobytes()), folds=True, place=lambda data: -data[1].item(0) / data[0])


def _ends_of_product(_: None, x: Node, y: Node) -> Ends:
    if x.range is not None and y.range is not None:
        corners = [s * t for s in x.range for t in y.range]
        return min(corners), max(corners)
    p, q, r, s = x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high
    return np.minimum(np.minimum(p, q), np.minimum(r, s)), np.maximum(np.maximum(p, q), np.maximum(r, s))


def _bytes_of(end: Array | float) -> Hashable:
    return end.tobytes() if isinstance(end, np.ndarray) else end


MUL = NodeKind(  # x y
    "mul", lambda e, node: e.b.fmul(*e.args(node)), value=lambda _, x, y: x * y, ends=_ends_of_product,
    grid=lambda _, x, y: product_of_grids(x, y), again=lambda graph, _, x, y: graph.product(x, y), folds=True)

SAME = NodeKind(  # x, whose range is known better; data: its domain, or None, and its ends
    "same", lambda e, node: e.args(node)[0], value=lambda _, x: x, domain=lambda data, x: data[0], grid=lambda _, x: x,
    ends=lambda data, x: data[1:], again=lambda graph, _, x: x, key=lambda data: (data[0], *map(_bytes_of, data[1:])),
    folds=True, steps=0)
BITS = NodeKind(  # x, checked to be ±1; data: None, or a family of rows and the place in it
    "bit", lambda e, node: e.check_bits(e.args(node)[0]), ends=lambda _, x: (-np.ones(x.width), np.ones(x.width)),
    domain=lambda _, x: BIT, steps=0)


# What a softmax needs


def _exp_ends(data: tuple[float, Array, float], x: Node) -> Ends:
    factor, bias, most = data
    with np.errstate(over="ignore"):
        low, high = (np.minimum(np.exp(end), most) for end in _affine_ends(factor, bias, x))
    return low, high


def _largest_exponent(node: Node) -> float:
    """The largest size of the argument of an exponential."""
    factor, bias, _ = node.data
    return float(np.max(np.abs(_affine_ends(factor, bias, node.args[0]))))


EXP = NodeKind(  # e^(s x + b), known to be at most m; data: s, b, m
    "exp", lambda e, node: e.floats.exponential(e.affine(node), node.width, _largest_exponent(node)), ends=_exp_ends,
    key=lambda data: (data[0], data[1].tobytes(), data[2]))
RECIP = NodeKind(  # 1 / x
    "recip", lambda e, node: e.b.fdiv(e.floats.number(1.0, node.width), e.args(node)[0]),
    ends=lambda _, x: (1 / x.high, 1 / x.low))
MAX = NodeKind(  # the larger of x and y
    "max", lambda e, node: e.floats.most(*e.args(node)), grid=lambda _, *grids: min(grids),
    ends=lambda _, x, y: (np.maximum(x.low, y.low), np.maximum(x.high, y.high)))
LEAST = NodeKind(  # x, or data if that is more
    "least", lambda e, node: e.floats.most(e.args(node)[0], e.floats.number(node.data, node.width)),
    ends=lambda least, x: (np.maximum(x.low, least), np.maximum(x.high, least)))


def _mix_ends(matrix: Array, x: Node) -> Ends:
    up, down = np.maximum(matrix, 0), np.minimum(matrix, 0)
    low, high = (np.broadcast_to(end, matrix.shape[1:]) for end in (x.low, x.high))
    return up @ low + down @ high, up @ high + down @ low


MIX = NodeKind(  # sums over columns of constant weights times x; data: matrix
    "mix", lambda e, node: e.floats.mixture(e.values[node.args[0]], node.data), ends=_mix_ends,
    grid=lambda matrix, x: product_of_grids(x, grid_of(matrix.flat)), key=lambda matrix: (matrix.shape, matrix.tobytes()))


# Matching

CODE = NodeKind(  # the integer whose bits are the signs of the arguments; data: their own signs
    "code", lambda e, node: e.code(node),
    ends=lambda signs, *bits: (np.zeros(max((bit.width for bit in bits), default=1)), 2.0 ** len(bits)))
CODES = NodeKind(  # a code with an entry for each column, and then each of them by itself
    "codes", lambda e, node: e.entry_codes(node), ends=lambda _, code, *entries: (code.low, code.high))
MATCH = NodeKind(  # 1 where two codes agree, in the columns of a mask, else 0; data: mask
    "match", lambda e, node: e.match(e.args(node), node.data),
    ends=lambda mask, *codes: (np.zeros(w := max(len(mask), *(c.width for c in codes))), np.broadcast_to(mask, (w,))),
    grid=lambda *_: 1.0, key=lambda mask: mask.tobytes())
INDEX = NodeKind(  # the passive column that a table has for a code, or any where a match excuses it; data: table numbers
    "index", lambda e, node: e.look_up(e.values[node.args[0]], node.data, node.width, e.excuse(node)),
    ends=lambda tables, code, *_: (np.zeros(width := max(code.width, len(tables))), np.full(width, 2.0**31)),
    place=lambda tables: tables[0])
GATHER = NodeKind(  # a row of the passive columns at an index; data: row
    "gather", lambda e, node: e.gather(node.args[0], node.data), row=lambda row: row)
