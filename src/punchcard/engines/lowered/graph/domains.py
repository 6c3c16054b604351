"""Nodes that take few values: which, and what depends on nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from punchcard.engines.lowered.graph.nodes import Array, Linear, Node
from punchcard.engines.lowered.graph.operations import FEW_VALUES, RELU

MOST_CASES, MOST_NODES = 32, 48
"""The most combinations of values that are tried, and the most nodes that are visited."""


def atoms_of(linear: Linear) -> list[Node] | None:
    """The nodes with few values that a form depends on, if these are few and there is nothing else."""
    found: dict[Node, None] = {}
    stack, seen = list(linear.terms), 0
    while stack:
        node = stack.pop()
        seen += 1
        if node.domain is not None:
            found[node] = None
        elif node.op.folds and seen <= MOST_NODES and node.width == 1:
            stack.extend(node.args)
        else:
            return None
    cases = math.prod(len(node.domain or ()) for node in found)
    return sorted(found, key=lambda node: node.number) if cases <= MOST_CASES else None


def value_of(node: Node, known: Mapping[Node, Array]) -> Array:
    """A node's values where its atoms have these values."""
    if node in known:
        return known[node]
    if node.op.value is None:
        raise TypeError(f"{node} is not followed with numbers")
    return node.op.value(node.data, *(value_of(a, known) for a in node.args))


def by_base(linear: Linear) -> dict[Node, list[tuple[Node, float]]]:
    """The terms of a form by what they are functions of: of a ReLU, its argument; any other node, itself."""
    found: dict[Node, list[tuple[Node, float]]] = {}
    for node, weight in linear.terms.items():
        found.setdefault(node.args[0] if node.op is RELU else node, []).append((node, weight))
    return found


def values_on_grid(linear: Linear) -> tuple[float, ...] | None:
    """The values of a piecewise linear function of one node on its grid, where it is flat but for steps between points."""
    bases = by_base(linear)
    if len(bases) != 1 or len(linear.constant) > 1:
        return None
    ((base, terms),) = bases.items()
    if not base.grid or base.width > 1 or any(n is not base and len(n.data[1]) > 1 for n, _ in terms):
        return None
    grid = base.grid
    low, high = math.ceil(float(base.low[0]) / grid) * grid, math.floor(float(base.high[0]) / grid) * grid
    points = {low, high}
    for node, _ in terms:
        if node is not base:
            kink = -float(node.data[1][0]) / node.data[0]
            points |= {t for t in (math.floor(kink / grid) * grid, math.ceil(kink / grid) * grid) if low <= t <= high}
    places = sorted(points)
    values = (linear.constant + sum(w * value_of(n, {base: np.array(places)}) for n, w in terms)).tolist()
    steps = zip(places, places[1:], values, values[1:], strict=False)
    if any(q - p > grid and f != g for p, q, f, g in steps):
        return None
    found = tuple(sorted(set(values)))
    return found if len(found) <= FEW_VALUES else None
