"""Makes the nodes of a loop, each once, and simplifies what it can on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

import numpy as np

from punchcard.engines.lowered.graph import operations as op
from punchcard.engines.lowered.graph import rules
from punchcard.engines.lowered.graph.nodes import Array, Linear, Node, constant, order_in_sum, trim

Made = TypeVar("Made")
BLOCK = 4
"""Terms that are added up one after the other."""


class Graph:
    """Makes nodes, each once."""

    def __init__(self) -> None:
        self._nodes: dict[Hashable, Node] = {}
        self._entries: dict[tuple[Node, int], Linear] = {}
        self._forms: dict[Hashable, Linear] = {}
        self._known: dict[Hashable, Any] = {}

    def known(self, kind: op.NodeKind, args: tuple[Node, ...], data: Any = None) -> Node | None:
        """The node with these parts, if there is one."""
        return self._nodes.get((kind, args, kind.key(data)))

    def node(self, kind: op.NodeKind, args: tuple[Node, ...] = (), data: Any = None, *, ends: op.Ends | None = None,
             domain: op.Domain | None = None) -> Node:
        """The node with these parts, new or known; `ends` and `domain` where more is known than the operation says."""
        name = (kind, args, kind.key(data))
        found = self._nodes.get(name)
        if found is None:
            if ends is None:
                if kind.ends is None:
                    raise TypeError(f"a {kind.name} must be given its range")
                ends = kind.ends(data, *args)
            found = Node(kind, args, data, *ends, domain or kind.domain(data, *args))
            self._nodes[name] = found
        return found

    @property
    def size(self) -> int:
        return len(self._nodes)

    def holds(self, nodes: Iterable[Node]) -> bool:
        """Whether nodes that it has made were not forgotten since."""
        return all(self._nodes.get((n.op, n.args, n.op.key(n.data))) is n for n in nodes)

    def forget(self, size: int) -> None:
        """Go back to the first nodes: what is traced next must not depend on what was traced before."""
        while len(self._nodes) > size:
            self._nodes.popitem()
        self._entries.clear()
        self._forms.clear()
        self._known.clear()

    def unknown(self, name: tuple[Hashable, ...], low: float, high: float) -> Linear:
        """A value between two bounds that is not worked out, since it should turn out not to matter."""
        return Linear({self.node(op.UNKNOWN, (), (*name, low, high)): 1.0})

    # Linear forms

    def form(self, linear: Linear) -> tuple[Node, float]:
        """The terms of a linear form as one node and a factor, without the constant.

        Terms are added up in the order of their nodes, so that forms which begin alike share their beginning, and in
        blocks, so that the last sum need not wait for all others; and the factor, a power of two, is taken out, so that
        f, 2 f and -f are one node. Where a quotient is beyond the numbers, or below them, the sign alone is taken out.
        """
        terms = list(linear.terms.items())
        if len(terms) == 1 and abs(terms[0][1]) == 1.0:
            return terms[0]
        terms.sort(key=lambda item: order_in_sum(item[0]))
        lead = terms[0][1]
        factor = math.copysign(2.0 ** math.floor(math.log2(abs(lead))), lead)
        if any(c / factor * factor != c for _, c in terms):
            factor = math.copysign(1.0, lead)
        total: Node | None = None
        for start in range(0, len(terms), BLOCK):
            part: Node | None = None
            for node, c in terms[start : start + BLOCK]:
                part = node if part is None and c == factor else self._fma(c / factor, node, part)
            assert part is not None
            total = part if total is None else self._fma(1.0, part, total)
        assert total is not None
        return total, factor

    def _fma(self, c: float, x: Node, y: Node | None) -> Node:
        return self.node(op.FMA, (x,) if y is None else (x, y), c)

    def gathered(self, linear: Linear) -> Linear:
        """The same value with at most one term."""
        if len(linear.terms) <= 1:
            return linear
        node, factor = self.form(linear)
        return Linear({node: factor}, linear.constant)

    # What is not linear

    def relu(self, linear: Linear) -> Linear:
        """relu of a linear form."""
        found = rules.RELUS.first(self, linear, *(linear.range or linear.ends))
        if found is not None:
            return found
        node, factor = self.form(linear)
        bias = trim(linear.constant)
        return rules.NODE_RELUS.first(node, factor, bias) or Linear({self.node(op.RELU, (node,), (factor, bias)): 1.0})

    def once(self, name: Hashable, make: Callable[..., Made], *given: Any) -> Made:
        """What follows from a name alone, worked out once. It must not be changed."""
        found: Made | None = self._known.get(name)
        if found is None:
            found = self._known[name] = make(*given)
        return found

    def kept(self, linear: Linear) -> Linear:
        """The same form, as an object that tells it from all others and so names it. It must not be changed."""
        return self._forms.setdefault(linear.name, linear)

    def known_relu(self, linear: Linear) -> Linear:
        """relu of a linear form, worked out once: many units of several groups have the same."""
        return self.once((op.RELU, linear.name), self._kept_relu, linear)

    def known_sum(self, linear: Linear) -> Linear:
        """The same value with at most one term, by the rules, worked out once."""
        if len(linear.terms) <= 1:
            return self.kept(linear)
        return self.once((op.FMA, linear.name), self._kept_sum, linear)

    def _kept_relu(self, linear: Linear) -> Linear:
        return self.kept(self.relu(linear))

    def _kept_sum(self, linear: Linear) -> Linear:
        return self.kept(self.narrowed(self.tidy(linear)))

    def tidy(self, linear: Linear) -> Linear:
        """The same sum with fewer ReLUs and products, by the rules."""
        if len(linear.terms) > 1:
            for rule in rules.SUMS.rules:
                linear = rule(self, linear) or linear
        return linear

    def narrowed(self, linear: Linear) -> Linear:
        """The same value with at most one term, and with the range that its ReLUs leave it."""
        if len(linear.terms) <= 1:
            return linear
        node = self.as_node(linear)  # with its constant, which may well be far larger than the sum
        return rules.RANGES.first(self, linear, node) or Linear({node: 1.0})

    def same(self, node: Node, low: Array | float, high: Array | float, domain: op.Domain | None = None) -> Linear:
        """A node with a range that is known better, and with its values where these are few."""
        return Linear({self.node(op.SAME, (node,), (domain, low, high)): 1.0})

    def product(self, a: Linear, b: Linear) -> Linear:
        """a b. Signs are taken out, so that a b and -a b are one node."""
        found = rules.PRODUCTS.first(a, b)
        if found is not None:
            return found
        sign, nodes = 1.0, []
        for linear in (a, b):
            single = linear.single
            negated = single is not None and single[1] == -1.0
            nodes.append(single[0] if single is not None and negated else self.as_node(linear))
            sign = -sign if negated else sign
        x, y = sorted(nodes, key=lambda node: node.rank)
        return Linear({self.node(op.MUL, (x, y)): sign})

    def as_node(self, linear: Linear) -> Node:
        """A linear form, its constant included, as one node."""
        if linear.is_constant:
            return self.node(op.CONSTANT, (), trim(linear.constant))
        node, factor = self.form(linear)
        if linear.constant.any():
            return self._fma(factor, node, self.as_node(Linear({}, linear.constant)))
        return node if factor == 1.0 else self._fma(factor, node, None)

    def exp(self, linear: Linear, most: float = np.inf) -> Node:
        """e^linear, which is known to be at most `most`."""
        if linear.is_constant:
            with np.errstate(over="ignore"):
                return self.as_node(constant(np.minimum(np.exp(linear.constant), most)))
        node, factor = self.form(linear)
        return self.node(op.EXP, (node,), (factor, trim(linear.constant), most))

    def largest(self, linears: Iterable[Linear]) -> Node:
        """The largest of several forms."""
        nodes = [self.as_node(linear) for linear in linears]
        best = nodes[0]
        for node in nodes[1:]:
            best = self.node(op.MAX, (best, node))
        return best

    def mix(self, linear: Linear, matrix: Array) -> Linear:
        """Entry i of the result is sum over j of matrix[i, j] times entry j."""
        width = matrix.shape[1]
        result = Linear({}, trim(matrix @ np.broadcast_to(linear.constant, (width,))))
        for node, c in linear.terms.items():
            found = rules.MIXTURES.first(node, matrix)
            result.add(found or Linear({self.node(op.MIX, (node,), rules.used_entries(node, matrix)): 1.0}), c)
        return result

    def lane(self, linear: Linear, width: int, lane: int) -> Linear:
        """Entry `lane` of a form."""
        return self.mix(linear, one_hot(width, lane))

    # Matching

    def code(self, bits: list[tuple[Node, float]]) -> Node:
        """The integer whose bit i is 1 where bit node i, times its sign, is positive."""
        signs = tuple(math.copysign(1.0, sign) for _, sign in bits)
        whole = self.node(op.CODE, tuple(n for n, _ in bits), signs)
        if whole.width == 1:
            return whole
        entries = ([(self.as_node(self.entry(node, i)), sign) for node, sign in bits] for i in range(whole.width))
        return self.node(op.CODES, (whole, *(self.code(entry) for entry in entries)))

    def entry(self, node: Node, place: int) -> Linear:
        """One entry of a node, as what is computed of the entries of its arguments."""
        if node.width == 1:
            return Linear({node: 1.0})
        if (node, place) not in self._entries:
            if node.op is op.CONSTANT:
                found = constant(node.data[place])
            elif node.op.again is None or not node.args:
                found = self.lane(Linear({node: 1.0}), node.width, place)
            else:
                data = node.data
                if node.op is op.RELU and len(data[1]) > 1:
                    data = data[0], data[1][place : place + 1]
                found = node.op.again(self, data, *(self.entry(a, place) for a in node.args))
            self._entries[node, place] = found
        return self._entries[node, place]

    def substitute(self, linear: Linear, into: Mapping[Node, Linear]) -> Linear:
        """The form with some nodes replaced, also inside other nodes."""
        known: dict[Node, Linear] = dict(into)
        result = Linear({}, linear.constant)
        for node, c in linear.terms.items():
            result.add(self._replaced(node, known), c)
        return result

    def _replaced(self, node: Node, known: dict[Node, Linear]) -> Linear:
        found = known.get(node)
        if found is not None:
            return found
        if not node.args:
            found = Linear({node: 1.0})
        elif node.op.again is not None:
            found = node.op.again(self, node.data, *(self._replaced(a, known) for a in node.args))
        else:
            raise TypeError(f"{node} is computed by active columns; a passive column holds loads, sums and ReLUs")
        known[node] = found
        return found


@cache
def one_hot(width: int, lane: int) -> Array:
    """A matrix of one row with one 1."""
    row = np.zeros((1, width))
    row[0, lane] = 1.0
    return row
