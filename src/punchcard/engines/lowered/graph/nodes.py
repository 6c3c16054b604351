"""What a loop computes, as a graph of operations (see `operations`) and linear forms over them.

A value is one row in a group of columns that compute alike: an array with an entry for each column, or with one
entry where all columns agree. Every node knows the least and greatest value of each entry; equal nodes are one node, so
what several columns or formulas share is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from punchcard.engines.lowered.graph.grids import grid_of, product_of_grids
from punchcard.transformer.grids import grid_of_number

if TYPE_CHECKING:
    from punchcard.engines.lowered.graph.operations import NodeKind

Array = npt.NDArray[np.float64]
ZERO: Array = np.zeros(1)
BIT = (-1.0, 1.0)


class Node:
    """One operation on some arguments. `domain` lists all values that it can take, where these are few."""

    __slots__ = ("args", "data", "domain", "grid", "high", "low", "number", "op", "range", "sizes")

    def __init__(self, number: int, op: NodeKind, args: tuple[Node, ...], data: Any, low: Array, high: Array,
                 domain: tuple[float, ...] | None) -> None:
        self.number, self.op, self.args, self.data = number, op, args, data
        self.low, self.high, self.domain = low, high, domain
        self.range = (float(low[0]), float(high[0])) if len(low) == 1 else None
        self.sizes = np.maximum(np.abs(low), np.abs(high))
        self.grid: float = op.grid(data, *(a.grid for a in args)) if domain is None else grid_of(domain)
        """A power of two of which every value is a multiple; 0 where none is known."""

    @property
    def width(self) -> int:
        return len(self.low)

    def __repr__(self) -> str:
        return f"{self.op.name}{self.number}"


class LinearBounds(NamedTuple):
    """What is known of a form: `ends`, `sizes` and `grids` of its entries."""

    low: Array
    high: Array
    sizes: Array
    grids: Array

    @property
    def width(self) -> int:
        return max(map(len, self))

    @property
    def numbers(self) -> tuple[float, ...] | None:
        """The same as numbers, where there is one entry."""
        return tuple(part.item() for part in self) if self.width == 1 else None


@dataclass
class Linear:
    """A sum of nodes with coefficients, and a constant for each column."""

    terms: dict[Node, float] = field(default_factory=dict)
    constant: Array = field(default_factory=lambda: ZERO)
    _bounds: LinearBounds | None = field(default=None, init=False, repr=False, compare=False)
    _numbers: tuple[float, ...] | None = field(default=None, init=False, repr=False, compare=False)

    def add(self, other: Linear, factor: float = 1.0) -> None:
        """self += factor * other; terms that cancel go away."""
        self._bounds = self._numbers = None
        for node, coefficient in other.terms.items():
            total = self.terms.get(node, 0.0) + factor * coefficient
            if total == 0.0:
                self.terms.pop(node, None)
            else:
                self.terms[node] = total
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
        return not self.terms and (self.constant is ZERO or not self.constant.any())

    @property
    def single(self) -> tuple[Node, float] | None:
        """Node and coefficient, if the form is a multiple of one node."""
        if len(self.terms) != 1 or (self.constant is not ZERO and self.constant.any()):
            return None
        return next(iter(self.terms.items()))

    @property
    def ends(self) -> tuple[Array, Array]:
        """Least and greatest value of each entry."""
        if len(self.constant) == 1:
            least = most = float(self.constant[0])
            for node, c in self.terms.items():
                if node.range is None:
                    break
                one, other = node.range if c > 0 else node.range[::-1]
                least, most = least + c * one, most + c * other
            else:
                return np.array([least]), np.array([most])
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
    def bounds(self) -> LinearBounds:
        """All bounds of a form that is complete, worked out once: most rows go through many layers as they are."""
        if self._bounds is None:
            (low, high), grids = self.ends, self.grids
            self._bounds = LinearBounds(low, high, self.sizes, grids)
            self._numbers = self._bounds.numbers
        return self._bounds

    @property
    def bound_numbers(self) -> tuple[float, ...] | None:
        """All bounds as numbers, where there is one entry; worked out once, too."""
        return self._numbers or self.bounds.numbers

    @property
    def low(self) -> Array:
        return self.ends[0]

    @property
    def high(self) -> Array:
        return self.ends[1]

    def same(self, other: Linear) -> bool:
        return self.terms == other.terms and bool(np.all(self.constant == other.constant))

    def key(self) -> tuple[Hashable, ...]:
        """Equal for equal forms."""
        return (tuple(sorted((n.number, c) for n, c in self.terms.items())), trim(self.constant).tobytes())


def constant(values: Array | float) -> Linear:
    return Linear({}, trim(np.atleast_1d(np.asarray(values, dtype=np.float64))))


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
    return sorted((node for node in reachable([linear]) if node.op is op), key=lambda node: node.number)
