"""What a loop computes, as a graph of operations (see `operations`) and linear forms over them.

A value is one row in a group of columns that compute alike: an array with an entry for each column, or with one
entry where all columns agree. Every node knows the least and greatest value of each entry; equal nodes are one node, so
what several columns or formulas share is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from punchcard.engines.lowered.graph.grids import grid_of, product_of_grids
from punchcard.transformer.grids import grid_of_number

if TYPE_CHECKING:
    from punchcard.engines.lowered.graph.operations import NodeKind

Array = npt.NDArray[np.float64]
ZERO: Array = np.zeros(1)
BIT = (-1.0, 1.0)
Rank = tuple[int, float, int, float, int]
SumOrder = tuple[int, float, float, int, int]


class Node:
    """One operation on some arguments. `domain` lists all values that it can take, where these are few.

    Most nodes have one entry: then `range` has its least and greatest value, and arrays are made where one is asked for.
    Nodes are ordered by `rank`, which follows from what they are made of, and not from when they were made.
    """

    __slots__ = ("_high", "_low", "args", "data", "domain", "grid", "op", "range", "rank", "width")

    def __init__(self, op: NodeKind, args: tuple[Node, ...], data: Any, low: Array | float, high: Array | float,
                 domain: tuple[float, ...] | None) -> None:
        self.op, self.args, self.data, self.domain = op, args, data, domain
        self.rank = rank_of(op, args, data)
        self.range: tuple[float, float] | None
        self._low: Array | None = None
        self._high: Array | None = None
        if isinstance(low, float) and isinstance(high, float):
            self.range = float(low), float(high)
        else:
            self._low, self._high = (np.atleast_1d(np.asarray(end, dtype=np.float64)) for end in (low, high))
            self.range = (float(self._low[0]), float(self._high[0])) if len(self._low) == 1 else None
        self.width = 1 if self._low is None else len(self._low)
        self.grid: float = op.grid(data, *[a.grid for a in args]) if domain is None else grid_of(domain)
        """A power of two of which every value is a multiple; 0 where none is known."""

    @property
    def low(self) -> Array:
        """The least value of each entry."""
        if self._low is None:
            assert self.range is not None
            self._low = np.array([self.range[0]])
        return self._low

    @property
    def high(self) -> Array:
        """The greatest value of each entry."""
        if self._high is None:
            assert self.range is not None
            self._high = np.array([self.range[1]])
        return self._high

    @property
    def sizes(self) -> Array:
        """The greatest absolute value of each entry."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def size(self) -> float:
        """The greatest absolute value of all entries."""
        return max(map(abs, self.range)) if self.range is not None else float(self.sizes.max())

    def __repr__(self) -> str:
        return f"{self.op.name} {self.rank[-1]:x}"


class Linear:
    """A sum of nodes with coefficients, and a constant for each column."""

    __slots__ = ("_bounds", "_numbers", "constant", "terms")

    def __init__(self, terms: dict[Node, float] | None = None, constant: Array = ZERO) -> None:
        self.terms: dict[Node, float] = {} if terms is None else terms
        self.constant = constant
        self._bounds: Array | None = None
        self._numbers: tuple[float, ...] | None = None

    def __repr__(self) -> str:
        return f"Linear({self.terms}, {self.constant})"

    def add(self, other: Linear, factor: float = 1.0) -> None:
        """self += factor * other; terms that cancel go away."""
        self._bounds = self._numbers = None
        terms = self.terms
        for node, coefficient in other.terms.items():
            total = terms.get(node, 0.0) + factor * coefficient
            if total == 0.0:
                terms.pop(node, None)
            else:
                terms[node] = total
        if other.constant is not ZERO:
            self.constant = self.constant + factor * other.constant

    def times(self, factor: float) -> Linear:
        result = Linear()
        result.add(self, factor)
        return result

    def copy(self) -> Linear:
        return Linear(dict(self.terms), self.constant)

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def is_zero(self) -> bool:
        return not self.terms and all_zero(self.constant)

    @property
    def single(self) -> tuple[Node, float] | None:
        """Node and coefficient, if the form is a multiple of one node."""
        if len(self.terms) != 1 or not all_zero(self.constant):
            return None
        return next(iter(self.terms.items()))

    @property
    def range(self) -> tuple[float, float] | None:
        """Least and greatest value, where there is one entry."""
        if len(self.constant) > 1:
            return None
        least = most = self.constant.item()
        for node, c in self.terms.items():
            if node.range is None:
                return None
            one, other = node.range
            if c > 0:
                least, most = least + c * one, most + c * other
            else:
                least, most = least + c * other, most + c * one
        return least, most

    @property
    def ends(self) -> tuple[Array, Array]:
        """Least and greatest value of each entry."""
        found = self.range
        if found is not None:
            return np.array([found[0]]), np.array([found[1]])
        low = high = self.constant
        for node, c in self.terms.items():
            if c > 0:
                low, high = low + c * node.low, high + c * node.high
            else:
                low, high = low + c * node.high, high + c * node.low
        return low, high

    @property
    def sizes(self) -> Array:
        """The absolute total of constant and terms in each entry."""
        found: Array = np.abs(self.constant)
        for node, c in self.terms.items():
            found = found + abs(c) * node.sizes
        return found

    @property
    def grids(self) -> Array:
        """A power of two of which constant and terms are multiples, in each entry; 0 where none is known, infinite for 0."""
        least = min((product_of_grids(grid_of_number(c), node.grid) for node, c in self.terms.items()), default=np.inf)
        return np.array([min(least, grid_of_number(value)) for value in self.constant.tolist()])

    @property
    def bounds(self) -> Array:
        """Least and greatest value, size and grid of each entry; worked out once: most rows go through many layers."""
        if self._bounds is None:
            parts = [*self.ends, self.sizes, self.grids]
            self._bounds = np.empty((len(parts), max(map(len, parts))))
            for at, part in enumerate(parts):
                self._bounds[at] = part
        return self._bounds

    @property
    def bound_numbers(self) -> tuple[float, ...] | None:
        """All bounds as numbers, where there is one entry; worked out once, too."""
        if self._numbers is None:
            ends = self.range
            if ends is None:
                return None
            value = self.constant.item()
            size, grid = abs(value), grid_of_number(value)
            for node, c in self.terms.items():
                size += abs(c) * node.size
                grid = min(grid, product_of_grids(grid_of_number(c), node.grid))
            self._numbers = (*ends, size, grid)
        return self._numbers

    @property
    def low(self) -> Array:
        return self.ends[0]

    @property
    def high(self) -> Array:
        return self.ends[1]

    def same(self, other: Linear) -> bool:
        return self.terms == other.terms and bool(np.all(self.constant == other.constant))

    @property
    def name(self) -> Hashable:
        """Equal only for forms of the same nodes in the same order."""
        constant = self.constant
        return (*self.terms.items(), constant.item() if len(constant) == 1 else constant.tobytes())

    def key(self) -> tuple[Hashable, ...]:
        """Equal for equal forms."""
        return (frozenset(self.terms.items()), trim(self.constant).tobytes())


def rank_of(op: NodeKind, args: tuple[Node, ...], data: Any) -> Rank:
    """The place of a node among others: by how many steps that are not linear lead to it, by the last row that it depends on
    there, after all that it is made of, and by where a ReLU opens or by the table that a column is found with. A digest
    tells apart what is alike in that.
    """
    level, row, height = 0, -1.0, 0
    for node in args:
        before = node.rank
        height = max(height, before[2] + 1)
        if before[:2] > (level, row):
            level, row = before[:2]
    found, place = op.row(data), op.place(data)
    if place is None:
        place = args[0].rank[3] if args else 0.0
    described = repr((op.name, [node.rank[-1] for node in args], op.key(data)))
    return (level + op.steps, row if found is None else found, height, place,
            int.from_bytes(blake2b(described.encode(), digest_size=8).digest(), "little"))


def order_in_sum(node: Node) -> SumOrder:
    """The place of a node in a sum: like its rank, but ReLUs that open last come first.

    So steps for the highest bits of a number stand together.
    """
    level, row, height, place, digest = node.rank
    return level, row, -place, height, digest


def constant(values: Array | float) -> Linear:
    return Linear({}, trim(np.atleast_1d(np.asarray(values, dtype=np.float64))))


def all_zero(values: Array) -> bool:
    """Whether every entry is 0. Most constants are one number, often the same 0."""
    return values is ZERO or not (values.item() if len(values) == 1 else values.any())


def trim(values: Array) -> Array:
    """One entry where all agree; no -0.0, which is another name for 0."""
    values = values + 0.0
    return values[:1] if len(values) > 1 and bool(np.all(values == values[0])) else values


def reachable(linears: Iterable[Linear]) -> set[Node]:
    """All nodes that some forms depend on."""
    seen: set[Node] = set()
    stack = [node for linear in linears for node in linear.terms]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(node.args)
    return seen


def arguments_first(node: Node, known: Container[Node], parts: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """A node and all that it is made of and is not known, each after its parts. What is yielded must become known.

    Graphs are too deep for recursion.
    """
    pending = [] if node in known else [node]
    while pending:
        top = pending[-1]
        missing = [part for part in parts(top) if part not in known]
        if missing:
            pending += missing
            continue
        pending.pop()
        if top not in known:
            yield top


def leaves(linear: Linear, op: NodeKind) -> list[Node]:
    """The nodes of one kind that a form depends on, in an order that is always the same."""
    return sorted((node for node in reachable([linear]) if node.op is op), key=lambda node: node.rank)
