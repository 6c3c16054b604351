"""Rewrite rules on linear forms: a ReLU, a sum of ReLUs, a product or a mixture with fewer nodes.

Each rule has its lemma as its docstring. The graph tries them in the order in which they are written here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from punchcard.engines.lowered.graph import operations as op
from punchcard.engines.lowered.graph.nodes import BIT, Array, Linear, Node, constant, trim
from punchcard.engines.lowered.graph.operations import FEW_VALUES, RELU
from punchcard.engines.lowered.rules import RuleTable

if TYPE_CHECKING:
    from punchcard.engines.lowered.graph.builder import Graph

MOST_CASES, MOST_NODES = 32, 48
"""The most combinations of values that are tried, and the most nodes that are visited."""
End: TypeAlias = Array | float
"""The least or greatest value of each entry; a number where there is one entry."""


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
    return sorted(found, key=lambda node: node.rank) if cases <= MOST_CASES else None


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


def always(condition: bool | npt.NDArray[np.bool_]) -> bool:
    """Whether a condition holds in all entries, of which there may be one."""
    return condition if isinstance(condition, bool) else bool(condition.all())


RELUS: RuleTable[[Graph, Linear, End, End], Linear] = RuleTable("ReLUs of a form")
"""relu of a form, and the least and greatest value of the form."""
NODE_RELUS: RuleTable[[Node, float, Array], Linear] = RuleTable("ReLUs of a node")
"""relu(factor node + bias)."""
SUMS: RuleTable[[Graph, Linear], Linear] = RuleTable("sums")
"""Each is tried, one after the other, on what the one before has left."""
RANGES: RuleTable[[Graph, Linear, Node], Linear] = RuleTable("ranges")
"""A form that is a node: the same value as a node of which more is known."""
PRODUCTS: RuleTable[[Linear, Linear], Linear] = RuleTable("products")
MIXTURES: RuleTable[[Node, Array], Linear] = RuleTable("mixtures")
"""Entry i of the result is the sum over j of matrix[i, j] times entry j of a node."""


@RELUS
def drop_closed_relu(graph: Graph, linear: Linear, low: End, high: End) -> Linear | None:
    """relu(f) = 0 if f <= 0."""
    return Linear() if always(high <= 0) else None


@RELUS
def drop_open_relu(graph: Graph, linear: Linear, low: End, high: End) -> Linear | None:
    """relu(f) = f if f >= 0; as one node, like those of the other ReLUs of this form."""
    return graph.gathered(linear) if always(low >= 0) else None


@RELUS
def fold_constant_relu(graph: Graph, linear: Linear, low: End, high: End) -> Linear | None:
    """relu(c) = max(c, 0)."""
    return constant(np.maximum(linear.constant, 0)) if linear.is_constant else None


@RELUS
def gate_by_bit(graph: Graph, linear: Linear, low: End, high: End) -> Linear | None:
    """relu(f + c b) = (1 + b) / 2 relu(f + c) for a ±1 bit b and f <= c: b = -1 closes it. So all bits share one ReLU.

    With c < 0 the bit is -b. Sums of bits keep their ReLUs: more is known of the range of a function of one sum.
    """
    if len(linear.terms) < 2 or sum(node.domain == BIT for node in linear.terms) != 1:
        return None
    bit, c = next((node, c) for node, c in linear.terms.items() if node.domain == BIT)
    rest = Linear({n: w for n, w in linear.terms.items() if n is not bit}, linear.constant)
    most = rest.range[1] if rest.range is not None else rest.high
    if not always(most <= abs(c)):
        return None
    inner = graph.relu(Linear(rest.terms, rest.constant + abs(c)))
    result = inner.times(0.5)
    result.add(graph.product(Linear({bit: 1.0}), graph.gathered(inner)), math.copysign(0.5, c))
    return result


@NODE_RELUS
def fold_two_valued_relu(node: Node, factor: float, bias: Array) -> Linear | None:
    """Any function of a number with two values is linear in it; this one is taken if no coefficient is rounded."""
    if node.domain is None or len(node.domain) != 2:
        return None
    u, v = map(Fraction, node.domain)
    at_u, at_v = ([max(Fraction(factor) * t + Fraction(b), Fraction(0)) for b in bias.tolist()] for t in (u, v))
    slopes = {(high - low) / (v - u) for low, high in zip(at_u, at_v, strict=True)}
    slope = slopes.pop()
    start = [low - slope * u for low in at_u]
    if slopes or any(Fraction(float(each)) != each for each in (slope, *start)):
        return None
    return Linear({node: float(slope)} if slope else {}, np.array([float(each) for each in start]))


@SUMS
def factor_out_bit(graph: Graph, linear: Linear) -> Linear | None:
    """b x + b y = b (x + y), for a bit b."""
    by_bit: dict[Node, list[Node]] = {}
    for node in linear.terms:
        bit = next((a for a in node.args if a.domain == BIT), None) if node.op is op.MUL else None
        if bit is not None:
            by_bit.setdefault(bit, []).append(node)
    result = linear.copy()
    for bit, products in by_bit.items():
        if len(products) > 1:
            total = Linear()
            for node in products:
                other = node.args[1] if node.args[0] is bit else node.args[0]
                total.add(Linear({other: 1.0}), result.terms.pop(node))
            result.add(graph.product(Linear({bit: 1.0}), graph.narrowed(graph.tidy(total))))
    return result


@SUMS
def merge_mirrored_relus(graph: Graph, linear: Linear) -> Linear | None:
    """w relu(f) - w relu(-f) = w f."""
    result = linear.copy()
    for node in linear.terms:
        if node.op is op.RELU and node in result.terms:
            factor, bias = node.data
            partner = graph.known(op.RELU, node.args, (-factor, trim(-bias)))
            weight = result.terms[node]
            if partner is not None and result.terms.get(partner) == -weight:
                del result.terms[node], result.terms[partner]
                result.add(Linear({node.args[0]: factor}, bias), weight)
    return result


@SUMS
def tabulate(graph: Graph, linear: Linear) -> Linear | None:
    """A form over a few nodes with few values each is the linear form that agrees with it at all of them, if there is one,
    and no coefficient of it is rounded. If there is none, all values that it takes are known.
    """
    atoms = atoms_of(linear) if len(linear.terms) > 1 and len(linear.constant) == 1 else None
    if atoms is None:
        return None
    cases = list(product(*(atom.domain or () for atom in atoms)))
    values = dict(zip(atoms, np.array(cases).T, strict=True))
    totals = linear.constant + sum(c * value_of(node, values) for node, c in linear.terms.items())
    found = dict(zip(cases, totals.tolist(), strict=True))
    least = tuple((atom.domain or ())[0] for atom in atoms)
    start, slopes = Fraction(found[least]), dict[Node, Fraction]()
    for i, atom in enumerate(atoms):
        last = (atom.domain or ())[-1]
        if last != least[i]:
            rise = Fraction(found[(*least[:i], last, *least[i + 1 :])]) - Fraction(found[least])
            slopes[atom] = rise / (Fraction(last) - Fraction(least[i]))
            start -= slopes[atom] * Fraction(least[i])
    if all(Fraction(float(each)) == each for each in (start, *slopes.values())) and all(
            start + sum(slopes.get(atom, 0) * Fraction(t) for atom, t in zip(atoms, case, strict=True)) == Fraction(total)
            for case, total in found.items()):
        return Linear({atom: float(slope) for atom, slope in slopes.items() if slope}, np.array([float(start)]))
    domain = tuple(sorted(set(found.values())))
    return None if len(domain) > op.FEW_VALUES else graph.same(graph.as_node(linear), domain[0], domain[-1], domain)


@RANGES
def list_steps(graph: Graph, linear: Linear, node: Node) -> Linear | None:
    """A sum of ReLUs of one node that is flat but for steps between the node's values has the values of its flat parts."""
    domain = values_on_grid(linear)
    return None if domain is None else graph.same(node, domain[0], domain[-1], domain)


@RANGES
def bound_by_kinks(graph: Graph, linear: Linear, node: Node) -> Linear | None:
    """A sum of ReLUs of one node is piecewise linear: its least and greatest value are at the kinks or the ends."""
    low, high = linear.constant, linear.constant
    for base, terms in by_base(linear).items():
        points = _kinks(base, [n for n, _ in terms if n is not base])
        values = np.zeros_like(points)
        for term, weight in terms:
            values += weight * value_of(term, {base: points})
        low, high = low + values.min(axis=0), high + values.max(axis=0)
    ends = linear.ends
    better = bool(np.any(low > ends[0])) or bool(np.any(high < ends[1]))
    return graph.same(node, low, high) if better else None


def _kinks(base: Node, relus: list[Node]) -> Array:
    """Where ReLUs of a node may bend, one place after the other, by entries; and the ends of its range."""
    if base.range is not None and all(len(relu.data[1]) == 1 for relu in relus):
        low, high = base.range
        return np.array([low, high, *(min(max(-relu.data[1].item() / relu.data[0], low), high) for relu in relus)])[:, None]
    kinks = [np.clip(-relu.data[1] / relu.data[0], base.low, base.high) for relu in relus]
    width = max(len(ends) for ends in (base.low, *kinks))
    return np.stack([np.broadcast_to(place, (width,)) for place in (base.low, base.high, *kinks)])


@PRODUCTS
def scale_by_constant(a: Linear, b: Linear) -> Linear | None:
    """A product with a constant is a multiple."""
    for one, other in ((a, b), (b, a)):
        if one.is_constant and len(trim(one.constant)) == 1:
            return other.times(float(one.constant[0]))
    return None


@MIXTURES
def mix_even_node(node: Node, matrix: Array) -> Linear | None:
    """A node that is the same in all columns, with weights of one sum in all columns, is multiplied by that sum."""
    sums = trim(matrix.sum(axis=1))
    if node.width > 1 or len(sums) > 1:
        return None
    return Linear({node: float(sums[0])}) if sums[0] else Linear()


@MIXTURES
def drop_unused_columns(node: Node, matrix: Array) -> Linear | None:
    """Columns in which the node is always 0 add nothing."""
    return None if used_entries(node, matrix).any() else Linear()


@MIXTURES
def mix_by_diagonal(node: Node, matrix: Array) -> Linear | None:
    """A matrix that is c in the diagonal, and 0 elsewhere, where the node is not 0, multiplies by c."""
    width, used = matrix.shape[1], used_entries(node, matrix)
    factors = trim(np.diag(matrix).copy())
    if matrix.shape[0] != width or node.width != width or len(factors) > 1 or bool(np.any(used != np.diag(np.diag(used)))):
        return None
    return Linear({node: float(factors[0])})


def used_entries(node: Node, matrix: Array) -> Array:
    """The entries of a matrix that meet a value that is not always 0."""
    found: Array = matrix * ((node.low != 0) | (node.high != 0))
    return found
