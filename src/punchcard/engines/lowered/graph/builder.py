"""Makes the nodes of a loop, each once, and simplifies what it can on the way."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from punchcard.engines.lowered.graph import operations as op
from punchcard.engines.lowered.graph.domains import atoms_of, base_of, value_of, values_on_grid
from punchcard.engines.lowered.graph.nodes import BIT, Array, Linear, Node, constant, trim

BLOCK = 4
"""Terms that are added up one after the other."""


class Graph:
    """Makes nodes, each once."""

    def __init__(self) -> None:
        self._nodes: dict[Any, Node] = {}

    def known(self, kind: op.NodeKind, args: tuple[Node, ...], data: Any = None) -> Node | None:
        """The node with these parts, if there is one."""
        return self._nodes.get((kind, tuple(a.number for a in args), kind.key(data)))

    def node(self, kind: op.NodeKind, args: tuple[Node, ...] = (), data: Any = None, *, ends: op.Ends | None = None,
             domain: op.Domain | None = None) -> Node:
        """The node with these parts, new or known; `ends` and `domain` where more is known than the operation says."""
        name = (kind, tuple(a.number for a in args), kind.key(data))
        found = self._nodes.get(name)
        if found is None:
            if ends is None:
                if kind.ends is None:
                    raise TypeError(f"the range of a {kind.name} is known to whoever makes it")
                ends = kind.ends(data, *args)
            low, high = (np.atleast_1d(np.asarray(end, dtype=np.float64)) for end in ends)
            found = Node(len(self._nodes), kind, args, data, low, high, domain or kind.domain(data, *args))
            self._nodes[name] = found
        return found

    @property
    def size(self) -> int:
        return len(self._nodes)

    def forget(self, size: int) -> None:
        """Go back to the first nodes: what is traced next must not depend on what was traced before."""
        while len(self._nodes) > size:
            self._nodes.popitem()

    def unknown(self, name: tuple[Any, ...], low: float, high: float) -> Linear:
        """A value between two bounds that is not worked out, since it should turn out not to matter."""
        return Linear({self.node(op.UNKNOWN, (), (*name, low, high)): 1.0})

    # Linear forms

    def form(self, linear: Linear) -> tuple[Node, float]:
        """The terms of a linear form as one node and a factor, without the constant.

        Terms are added up in the order of their nodes, so that forms which begin alike share their beginning, and in
        blocks, so that the last sum need not wait for all others; and the factor, a power of two, is taken out, so that
        f, 2 f and -f are one node.
        """
        terms = sorted(linear.terms.items(), key=lambda item: item[0].number)
        lead = terms[0][1]
        factor = math.copysign(2.0 ** math.floor(math.log2(abs(lead))), lead)
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
        """relu of a linear form; no node where its sign is known or it depends on one two-valued node."""
        low, high = linear.ends
        if bool((high <= 0).all()):
            return Linear()
        if bool((low >= 0).all()):
            return self.gathered(linear)  # one node, like those of the other ReLUs of this form
        if linear.is_constant:
            return constant(np.maximum(linear.constant, 0))
        gated = self._gated(linear)
        if gated is not None:
            return gated
        node, factor = self.form(linear)
        bias = trim(linear.constant)
        if node.domain is not None and len(node.domain) == 2:
            u, v = node.domain
            at_u, at_v = (np.maximum(factor * t + bias, 0) for t in (u, v))
            slope = trim((at_v - at_u) / (v - u))
            if len(slope) == 1:
                return Linear({node: float(slope[0])} if slope[0] else {}, at_u - slope[0] * u)
        return Linear({self.node(op.RELU, (node,), (factor, bias)): 1.0})

    def _gated(self, linear: Linear) -> Linear | None:
        """relu(f + c b) with a ±1 bit b that closes it: (1 + b) / 2 relu(f + c), so that all bits share one ReLU."""
        if len(linear.terms) < 2 or sum(node.domain == BIT for node in linear.terms) != 1:
            return None  # sums of bits keep their ReLUs: a function of one sum has a better known range
        for bit, c in linear.terms.items():
            if bit.domain != BIT:
                continue
            rest = Linear({n: w for n, w in linear.terms.items() if n is not bit}, linear.constant)
            if bool((rest.ends[1] <= abs(c)).all()):
                opened = self.relu(Linear(rest.terms, rest.constant + abs(c)))
                result = opened.times(0.5)
                result.add(self.product(Linear({bit: 1.0}), self.gathered(opened)), math.copysign(0.5, c))
                return result
        return None

    def _factored(self, linear: Linear) -> Linear:
        """b x + b y becomes b (x + y), for a bit b."""
        by_bit: dict[Node, list[Node]] = {}
        for node in linear.terms:
            if node.op is op.MUL:
                bit = next((a for a in node.args if a.domain == BIT), None)
                if bit is not None:
                    by_bit.setdefault(bit, []).append(node)
        result = linear
        for bit, products in by_bit.items():
            if len(products) < 2:
                continue
            result = result.copy() if result is linear else result
            total = Linear()
            for node in products:
                other = node.args[1] if node.args[0] is bit else node.args[0]
                total.add(Linear({other: 1.0}), result.terms.pop(node))
            result.add(self.product(Linear({bit: 1.0}), self.narrowed(self.tidy(total))))
        return result

    def tidy(self, linear: Linear) -> Linear:
        """w relu(f) - w relu(-f) becomes w f; a function of one node with few values becomes linear where it is."""
        if len(linear.terms) < 2:
            return linear
        result = self._factored(linear).copy()
        for node in list(result.terms):
            if node.op is not op.RELU or node not in result.terms:
                continue
            factor, bias = node.data
            partner = self.known(op.RELU, node.args, (-factor, trim(-bias)))
            weight = result.terms[node]
            if partner is not None and result.terms.get(partner) == -weight:
                del result.terms[node], result.terms[partner]
                result.add(Linear({node.args[0]: factor}, bias), weight)
        return self._enumerated(result)

    def _enumerated(self, linear: Linear) -> Linear:
        """A form over a few nodes that take few values each, at all of them: linear if it is, or with known values."""
        if len(linear.terms) < 2 or len(linear.constant) > 1:
            return linear
        atoms = atoms_of(linear)
        if atoms is None:
            return linear
        cases = list(product(*(atom.domain or () for atom in atoms)))
        known = dict(zip(atoms, np.array(cases).T, strict=True))
        totals = linear.constant + sum(c * value_of(node, known) for node, c in linear.terms.items())
        found = dict(zip(cases, totals.tolist(), strict=True))
        least = tuple((atom.domain or ())[0] for atom in atoms)
        result = Linear({}, np.array([found[least]]))
        for i, atom in enumerate(atoms):
            last = (atom.domain or ())[-1]
            slope = (found[(*least[:i], last, *least[i + 1 :])] - found[least]) / (last - least[i])
            result.add(Linear({atom: slope} if slope else {}, np.array([-slope * least[i]])))
        if np.array_equal(totals, result.constant + sum(c * known[atom] for atom, c in result.terms.items())):
            return result
        values_of_it = tuple(sorted(set(found.values())))
        if len(values_of_it) > op.FEW_VALUES:
            return linear
        node = self.as_node(linear)
        return Linear({self.node(op.SAME, (node,), values_of_it, ends=(values_of_it[0], values_of_it[-1])): 1.0})

    def narrowed(self, linear: Linear) -> Linear:
        """The same value with at most one term, and with the range that its ReLUs leave it.

        A sum of ReLUs of one node is piecewise linear in it: its least and greatest value are at the kinks or the ends.
        """
        if len(linear.terms) <= 1:
            return linear
        low, high = linear.constant, linear.constant
        by_base: dict[Node, list[tuple[Node, float]]] = {}
        for node, weight in linear.terms.items():
            by_base.setdefault(base_of(node), []).append((node, weight))
        for base, terms in by_base.items():
            width = max(n.width for n, _ in terms)
            points = [base.low, base.high]
            points += [np.clip(-n.data[1] / n.data[0], base.low, base.high) for n, _ in terms if n is not base]
            values = np.zeros((len(points), width))
            for node, weight in terms:
                for at, t in zip(values, points, strict=True):
                    at += weight * value_of(node, {base: t})
            low, high = low + values.min(axis=0), high + values.max(axis=0)
        node = self.as_node(linear)  # with its constant, which may well be far larger than the sum
        ends = linear.ends
        domain = values_on_grid(linear, by_base)
        if domain is not None:
            return Linear({self.node(op.SAME, (node,), domain, ends=(domain[0], domain[-1])): 1.0})
        if bool(np.any(low > ends[0])) or bool(np.any(high < ends[1])):
            node = self.node(op.SAME, (node,), ends=(low, high))
        return Linear({node: 1.0})

    def product(self, a: Linear, b: Linear) -> Linear:
        """a b."""
        if a.is_constant and len(trim(a.constant)) == 1:
            return b.times(float(a.constant[0]))
        if b.is_constant and len(trim(b.constant)) == 1:
            return self.product(b, a)
        x, y = self.as_node(a), self.as_node(b)
        if x.number > y.number:
            x, y = y, x
        return Linear({self.node(op.MUL, (x, y)): 1.0})

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
            if node.width == 1:
                rows = trim(matrix.sum(axis=1))
                if len(rows) == 1:
                    result.add(Linear({node: c * float(rows[0])}) if rows[0] else Linear())
                    continue
            used = matrix * ((node.low != 0) | (node.high != 0))  # entries that are always 0 need not be looked at
            if not used.any():
                continue
            if matrix.shape == (width, width) and node.width == width and bool(np.all(used == np.diag(np.diag(used)))):
                diagonal = trim(np.diag(matrix).copy())
                if len(diagonal) == 1:
                    result.add(Linear({node: c * float(diagonal[0])}))
                    continue
            result.add(Linear({self.node(op.MIX, (node,), used): c}))
        return result

    def lane(self, linear: Linear, width: int, lane: int) -> Linear:
        """Entry `lane` of a form: `mix` with one 1."""
        result = Linear({}, linear.constant if len(linear.constant) == 1 else linear.constant[lane : lane + 1])
        for node, c in linear.terms.items():
            low, high = node.low[lane : lane + 1], node.high[lane : lane + 1]
            if node.width == 1:
                result.add(Linear({node: c}))
            elif low[0] or high[0]:
                result.add(Linear({self.node(op.MIX, (node,), one_hot(width, lane), ends=(low, high)): c}))
        return result

    # Matching

    def code(self, bits: list[tuple[Node, float]]) -> Node:
        """The integer whose bit i is 1 where bit node i, times its sign, is positive."""
        signs = tuple(math.copysign(1.0, sign) for _, sign in bits)
        return self.node(op.CODE, tuple(n for n, _ in bits), signs)

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
