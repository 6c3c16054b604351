"""Formulas in, matrices out: attention heads and feed-forward formulas become the weights of a layer.

A layer is written as what it does to named rows:

    attend(query=pc + position, key=pc + position, value=command, into=v_new, gap=2)
    assign(flag, relu(b[-1]) + relu((1 - N) * one - b.total()))

`attend` is one head: a column takes `value` from the column whose `key` matches its `query` best, and adds it to the
rows `into`. `assign` sets rows to a formula, `clear` sets them to 0. `Part`s are put together with `+`, and
`build` compiles one part a layer to K, Q, V, W1, b1, W2 and b2. The residual connection is handled here and nowhere
else: to set t to f, the feed-forward adds f - t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from punchcard.errors import FormulaError, PrecisionError
from punchcard.transformer.expression import Array, Expression, Rows
from punchcard.transformer.precision import Precision
from punchcard.transformer.sums import Bounds, LayerSums, violation
from punchcard.transformer.weights import NAMES, LayerArrays, Weights

if TYPE_CHECKING:
    from punchcard.transformer.model import LoopedTransformer


@dataclass(frozen=True)
class Head:
    """One attention head: what it matches, what it moves, and where to.

    `gap` is by how much the best match wins, `winners` how many columns may share it.
    """

    query: Expression
    key: Expression
    value: Expression
    into: Rows
    gap: float
    winners: int
    temperature: float | None = None


@dataclass(frozen=True)
class Assignment:
    """Rows and the formula that they are set to after the attention."""

    target: Rows
    value: Expression


@dataclass(frozen=True)
class Part:
    """Heads and assignments that share a layer."""

    heads: tuple[Head, ...] = ()
    assignments: tuple[Assignment, ...] = ()

    def __add__(self, other: Part) -> Part:
        return Part(self.heads + other.heads, self.assignments + other.assignments)


def attend(
    *, query: Expression, key: Expression, value: Expression, into: Rows, gap: float, winners: int = 1,
    temperature: float | None = None,
) -> Part:
    """A head. `gap` is the least difference between the score of a match and of any other column.

    `winners` is how many columns may share the best score; each has then the weight 1 / winners, a power of two. The
    temperature follows from the gap, unless the head is soft and says its own.
    """
    for name, form in {"query": query, "key": key, "value": value}.items():
        if not form.is_affine:
            raise FormulaError(f"the {name} of a head has a relu: K, Q and V are matrices")
        if form.constant.any():
            raise FormulaError(f"the {name} of a head has a constant: K, Q and V are matrices, use an indicator row")
    if query.size != key.size:
        raise FormulaError(f"a query with {query.size} entries cannot match a key with {key.size}")
    if value.size != into.size:
        raise FormulaError(f"a value with {value.size} entries does not fit {into.name!r} with {into.size} rows")
    if gap <= 0:
        raise FormulaError(f"gap {gap}: a match must win by a positive score")
    if winners < 1 or winners & (winners - 1):
        raise FormulaError(f"{winners} winners: the weight 1 / winners is exact for a power of two")
    return Part(heads=(Head(query, key, value, into, gap, winners, temperature),))


def assign(target: Rows, value: Expression | float) -> Part:
    """Set `target` to a formula; a single formula or number is repeated for all rows of the target."""
    if not isinstance(target, Rows):
        raise FormulaError(f"{target!r} is not a place to write to: assign to rows of a block")
    formula = target * 0.0 + value
    if formula.size != target.size:
        raise FormulaError(f"a formula with {formula.size} entries does not fit {target.name!r} "
                           f"with {target.size} rows")
    return Part(assignments=(Assignment(target, formula),))


def clear(target: Rows) -> Part:
    """Set `target` to 0, by - relu(x) + relu(-x)."""
    return assign(target, 0.0)


@dataclass(frozen=True)
class LayerWeights:
    """The matrices of one layer in float64, before they are cast to the machine's number format.

    part     what the layer was compiled from: head i of the matrices is `part.heads[i]`
    serves   for each hidden unit the numbers of the assignments that use it: formulas with the same relu share a unit
    """

    key: Array
    query: Array
    value: Array
    gaps: Array
    winners: Array
    temperatures: tuple[float | None, ...]
    w1: Array
    b1: Array
    w2: Array
    b2: Array
    part: Part = Part()
    serves: tuple[tuple[int, ...], ...] = ()

    @property
    def hidden(self) -> int:
        return len(self.b1)

    def arrays(self, temperature: Array | None = None) -> LayerArrays:
        """The same matrices, with a temperature for each head; default: 1."""
        return LayerArrays(self.key, self.query, self.value, np.ones(len(self.key)) if temperature is None else temperature,
                           self.w1, self.b1[:, None], self.w2, self.b2[:, None])


def compile_layer(part: Part, width: int) -> LayerWeights:
    """K, Q, V of the heads, and W1, b1, W2, b2 of all assignments together."""
    heads = part.heads
    for rows in (*(h.into for h in heads), *(a.target for a in part.assignments)):
        if rows.width != width:
            raise FormulaError(f"{rows!r} is of a card with {rows.width} rows, the model has {width}")
    key_size = max((h.key.size for h in heads), default=0)
    key, query = np.zeros((2, len(heads), key_size, width))
    value = np.zeros((len(heads), width, width))
    for i, head in enumerate(heads):
        key[i, :head.key.size] = head.key.linear
        query[i, :head.query.size] = head.query.linear
        value[i, head.into.numbers] = head.value.linear
    gaps, winners = np.array([(h.gap, h.winners) for h in heads], dtype=np.float64).reshape(-1, 2).T
    temperatures = tuple(h.temperature for h in heads)
    w1, b1, w2, b2, serves = _compile_feed_forward(part.assignments, width)
    return LayerWeights(key, query, value, gaps, winners, temperatures, w1, b1, w2, b2, part, serves)


def build(parts: Sequence[Part], width: int, precision: Precision) -> LoopedTransformer:
    """The model whose layers are `parts`."""
    return to_weights(compile_layers(parts, width), width, precision).module


def compile_layers(parts: Sequence[Part], width: int) -> list[LayerWeights]:
    """The matrices of all layers, first to last."""
    return [compile_layer(part, width) for part in parts]


def to_weights(layers: Sequence[LayerWeights], width: int, precision: Precision) -> Weights:
    """Cast compiled layers to the number format."""
    return Weights(width, precision.name, [_cast(layer, number, precision) for number, layer in enumerate(layers, start=1)])


def _cast(weights: LayerWeights, number: int, precision: Precision) -> LayerArrays:
    temperature = np.array([precision.temperature_for(gap) if own is None else own
                            for gap, own in zip(weights.gaps, weights.temperatures, strict=True)])
    arrays = weights.arrays(temperature)
    _check_sums(LayerSums(arrays, number), len(arrays.b2), precision)
    return LayerArrays(*(precision.format.rounded(getattr(arrays, name)) for name in NAMES))


def _check_sums(layer: LayerSums, width: int, precision: Precision) -> None:
    """Refuse a temperature, or another constant, with which sums of ±1 entries leave the number format."""
    found = violation(layer.all(Bounds.of_size(1.0, width, precision.format.eps)), precision.format)
    if found is not None:
        raise PrecisionError(f"{found}: use a wider number format, or a lower temperature or gate than {precision!r} has")


FeedForward: TypeAlias = tuple[Array, Array, Array, Array, tuple[tuple[int, ...], ...]]
"""W1, b1, W2, b2, and for each hidden unit the assignments that use it."""


def _compile_feed_forward(assignments: Sequence[Assignment], width: int) -> FeedForward:
    inner, bias, outer = [np.zeros((0, width))], [np.zeros(0)], [np.zeros((width, 0))]
    b2 = np.zeros(width)
    written: dict[int, str] = {}
    owners: list[int] = []
    for owner, assignment in enumerate(assignments):
        target = assignment.target
        for number in target.numbers:
            if int(number) in written:
                raise FormulaError(f"{target.name!r} is set twice in one layer, also as {written[int(number)]!r}")
            written[int(number)] = target.name
        # The residual connection adds the old value, so the layer adds the difference.
        change = assignment.value - target
        b2[target.numbers] = change.constant
        for forms, sign in ((change.linear, 1.0), (-change.linear, -1.0)):
            used = np.flatnonzero(forms.any(axis=1))
            weights = np.zeros((width, len(used)))
            weights[target.numbers[used], np.arange(len(used))] = sign
            inner.append(forms[used])  # f = relu(f) - relu(-f)
            bias.append(np.zeros(len(used)))
            outer.append(weights)
        weights = np.zeros((width, len(change.bias)))
        weights[target.numbers] = change.outer
        inner.append(change.inner)
        bias.append(change.bias)
        outer.append(weights)
        owners += [owner] * (sum(map(len, bias)) - len(owners))
    return _share_units(np.vstack(inner), np.concatenate(bias), np.hstack(outer), b2, owners)


def _share_units(w1: Array, b1: Array, w2: Array, b2: Array, owners: Sequence[int]) -> FeedForward:
    """Merge hidden units that compute the same relu, and drop those that nothing uses."""
    if len(b1) == 0:
        return w1, b1, w2, b2, ()
    units = np.hstack([w1, b1[:, None]]) + 0.0  # -0.0 and 0.0 are the same weight
    places: dict[bytes, int] = {}  # in the order in which the formulas were written
    member = np.array([places.setdefault(unit.tobytes(), len(places)) for unit in units])
    first = np.unique(member, return_index=True)[1]
    merged = w2[:, first] + 0.0
    for unit in np.setdiff1d(np.arange(len(units)), first):
        merged[:, member[unit]] += w2[:, unit]
    kept = merged.any(axis=0)
    unique = units[first][kept]
    serves = _assignments_served(member, owners, w2)
    return unique[:, :-1], unique[:, -1], merged[:, kept], b2, tuple(serves[unit] for unit in np.flatnonzero(kept))


def _assignments_served(member: NDArray[np.intp], owners: Sequence[int], w2: Array) -> list[tuple[int, ...]]:
    """For each merged unit the assignments to whose rows it adds something."""
    added: dict[tuple[int, int], list[int]] = {}
    for unit in np.flatnonzero(w2.any(axis=0)).tolist():
        added.setdefault((int(member[unit]), owners[unit]), []).append(unit)
    found: list[list[int]] = [[] for _ in range(int(member.max()) + 1)]
    for (place, owner), units in added.items():
        if len(units) == 1 or w2[:, units].sum(axis=1).any():  # what an assignment adds twice may cancel
            found[place].append(owner)
    return [tuple(sorted(each)) for each in found]
