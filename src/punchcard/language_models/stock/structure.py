"""What the weights of a stock decoder do, read off the weights: which columns heads find, which bits they bring, what units
compute, and which token has the largest logit. Engines and claims begin here; what is not of this shape is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from punchcard.card.formats import FORMATS, NumberFormat
from punchcard.errors import WeightsError
from punchcard.language_models.stock.gaps import NORMS, ONE_ROW, HeadGap, head_gap
from punchcard.language_models.stock.positions import Positions
from punchcard.language_models.stock.weights import StockWeights, margin_of
from punchcard.transformer.expression import Array

GRID = 4
"""Weights of units are multiples of 1 / GRID."""
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class HeadPlan:
    """What a head finds, and what it brings: pairs of rows, from and to."""

    gap: HeadGap
    moves: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class LayerPlan:
    """The heads of a layer and its units: GRID w1, GRID w2, and the rows that the units write to."""

    heads: tuple[HeadPlan, ...]
    w1: Integers
    w2: Integers

    @property
    def written(self) -> list[int]:
        """The rows that units write to."""
        return np.flatnonzero(self.w2.any(axis=1)).tolist()

    @property
    def sources(self) -> set[int]:
        """The rows that heads read in the columns that they find."""
        return {row for head in self.heads for row in (*(b for _, b in head.gap.entries), *(s for s, _ in head.moves))}


@dataclass(frozen=True)
class ReadoutGroup:
    """Tokens whose logits have weights on the same rows, of the same sizes.

    A token's logit is `top` in a column that has the signs of its weights in all these rows, and lower in any other.
    """

    rows: tuple[int, ...]
    tokens: Mapping[int, int]
    """The token by the code of its signs, the first row lowest."""
    sizes: Array
    signs: tuple[int, ...]
    """The sign of each row where all tokens have the same, else 0."""

    @property
    def top(self) -> float:
        """The logit of the right token."""
        return float(self.sizes.sum())


@dataclass(frozen=True)
class Structure:
    """A decoder by its parts.

    offset   how far an entry may be from ±1, before each layer and before the readout
    margin   by how much the largest logit leads, in every column that has the signs of some token
    """

    weights: StockWeights
    layers: tuple[LayerPlan, ...]
    groups: tuple[ReadoutGroup, ...]
    offset: tuple[float, ...]
    margin: float


def structure_of(weights: StockWeights, form: str, positions: Positions) -> Structure:
    """The parts of a decoder, or `WeightsError` with what is not as it should be."""
    check_sums(weights)
    base = weights.embedding
    positional = np.zeros(weights.bits, dtype=bool) if weights.table is None else weights.table.any(axis=0)
    if (base[:, positional] != 0).any() or (np.abs(base[:, ~positional]) != 1).any() or (base[:, ONE_ROW] != 1).any():
        raise WeightsError("a token's column has entries other than ±1, or its first is not 1")
    if weights.table is not None and (np.abs(weights.table[:, positional]) != 1).any():
        raise WeightsError("a position's column has entries other than ±1")
    blank = (base == -1).all(axis=0) & ~positional
    layers, offset, off = layer_plans(weights, form, positions, blank)
    groups = _groups(weights.readout)
    margin = _margin(groups, weights, layers, off)
    if margin <= 0:
        raise WeightsError(f"the right token leads by {margin:g}: more than 0 is needed")
    return Structure(weights, tuple(layers), groups, tuple(offset), margin)


def check_sums(weights: StockWeights) -> None:
    """Refuse weights that are not finite, and sums that may leave the number format: of those the rest says nothing.

    A sum is at most that of its terms' sizes, for entries that are within 0.25 of ±1 as `layer_plans` checks.
    """
    limits = FORMATS[weights.dtype]
    entry = 1.25

    def check(total: Array, where: str) -> Array:
        if not (total <= limits.max).all():
            raise WeightsError(f"{where} may reach {float(total.max()):.3g}, {limits.name} holds {limits.max:.3g}")
        return total

    def sums(weight: Array, where: str, each: Array | float = entry) -> Array:
        return check((np.abs(weight) * each).sum(axis=-1), where)

    with np.errstate(over="ignore", invalid="ignore"):
        for number, layer in enumerate(weights.layers, start=1):
            for i, output in enumerate(layer.output):
                where = f"layer {number}, head {i + 1}, "
                queries, keys = sums(layer.query[i], where + "a query"), sums(layer.key[i], where + "a key")
                check((queries * keys).sum(), where + "a score")
                sums(output, where + "the output", sums(layer.value[i], where + "a value"))
            hidden = margin_of(weights.dtype) * sums(layer.w1, f"layer {number}, w1")  # Llama scales units by it
            sums(layer.w2, f"layer {number}, w2", check(hidden, f"layer {number}, a hidden unit"))
        sums(weights.readout, "a logit")


def layer_plans(weights: StockWeights, form: str, positions: Positions, blank: NDArray[np.bool_]
                ) -> tuple[list[LayerPlan], list[float], Array]:
    """The layers, how far an entry may be from ±1 before each of them and before the readout, and there for each row."""
    limits, norm = FORMATS[weights.dtype], NORMS[form].scaled(weights.dtype)
    off, blank = np.zeros(weights.bits), blank.copy()
    layers, offset = [], []
    for number, layer in enumerate(weights.layers, start=1):
        offset.append(float(off.max()))
        seen, common = off + norm.single, norm.common + float(off.mean())
        heads = []
        for i in range(len(layer.query)):
            where, brought = f"layer {number}, head {i + 1}", layer.output[i] @ layer.value[i]
            if not brought.any():
                continue
            gap = head_gap(layer.query[i], layer.key[i], positions, weights.table, weights.dtype, seen, common)
            if gap.left(weights.dtype) < 0:
                raise WeightsError(f"{where}: its column leads by {gap.lead:g}; {gap.lead - gap.left(weights.dtype):g} is "
                                   f"needed, as scores may be off by {gap.error:g}")
            moves = _moves(brought, where)
            for source, target in moves:
                if not blank[target]:
                    raise WeightsError(f"{where} brings a bit to row {target}, which is not blank")
                blank[target] = False
                off[target] += seen[source] + seen[ONE_ROW] + 2 * common + (2 * limits.eps if norm.common else 0.0)
            heads.append(HeadPlan(gap, moves))
        w1, w2 = (_integers(each, f"{name} of layer {number}") for name, each in (("w1", layer.w1), ("w2", layer.w2)))
        plan = LayerPlan(tuple(heads), w1, w2)
        blank[plan.written] = False
        _add_unit_errors(off, plan, norm.single, norm.common, limits)
        layers.append(plan)
    offset.append(float(off.max()))
    if max(offset) >= 0.25:
        raise WeightsError(f"an entry may be off by {max(offset):g}: less than 0.25 is needed")
    return layers, offset, off + norm.single


def _add_unit_errors(off: Array, plan: LayerPlan, single: float, common: float, limits: NumberFormat) -> None:
    """What units add to how far entries are off: by what they read, and by sums that are rounded.

    A factor common to the column is common to all units, and what they add to a bit is 2 at most. Where every entry is
    exactly ±1, sums of multiples of 1 / GRID that are small enough are exact.
    """
    w1, w2 = np.abs(plan.w1) / GRID, np.abs(plan.w2) / GRID
    largest = w1.sum(axis=1)
    seen = off + single
    if not seen.any() and not common and (GRID * GRID * (w2 @ largest)).max(initial=0.0) < 2**limits.significand:
        return
    unit = w1 @ seen + (np.count_nonzero(w1, axis=1) + 2) * limits.eps / 2 * largest
    rounded = (np.count_nonzero(w2, axis=1) + 2) * limits.eps / 2 * (w2 @ largest)
    written = w2.any(axis=1)
    off += w2 @ unit + rounded + np.where(written, 2 * (common + float(off.mean())), 0.0)


def changed_rows(layers: Sequence[LayerPlan]) -> set[int]:
    """The rows that heads or units write to."""
    brought = {target for layer in layers for head in layer.heads for _, target in head.moves}
    return brought | {row for layer in layers for row in layer.written}


def _moves(brought: Array, where: str) -> tuple[tuple[int, int], ...]:
    found = []
    for target in np.flatnonzero(brought.any(axis=1)).tolist():
        row = brought[target].copy()
        row[ONE_ROW] -= 1.0
        sources = np.flatnonzero(row)
        if len(sources) != 1 or row[sources[0]] != 1.0:
            raise WeightsError(f"{where} does not bring a bit to row {target}")
        found.append((int(sources[0]), target))
    return tuple(found)


def _integers(weights: Array, what: str) -> Integers:
    scaled = GRID * weights
    if (scaled != np.rint(scaled)).any() or np.abs(scaled).max(initial=0.0) > 2**30:
        raise WeightsError(f"{what} has entries that are not multiples of 1/{GRID}")
    return scaled.astype(np.int64)


def _groups(readout: Array) -> tuple[ReadoutGroup, ...]:
    """Tokens by the sizes of their weights, the largest total first."""
    kinds: dict[bytes, list[int]] = {}
    for token, sizes in enumerate(np.abs(readout)):
        kinds.setdefault(sizes.tobytes(), []).append(token)
    found = []
    for tokens in kinds.values():
        sizes = np.abs(readout[tokens[0]])
        support = np.flatnonzero(sizes)
        if len(support) == 0:
            raise WeightsError(f"token {tokens[0]} has no logit of its own")
        codes = (readout[tokens][:, support] > 0) @ (1 << np.arange(len(support)))
        if len(set(codes.tolist())) < len(tokens):
            raise WeightsError("two tokens have the same logits")
        same = np.sign(readout[tokens][:, support])
        signs = tuple(int(column[0]) if (column == column[0]).all() else 0 for column in same.T)
        found.append(ReadoutGroup(tuple(support.tolist()), dict(zip(codes.tolist(), tokens, strict=True)), sizes[support],
                                  signs))
    return tuple(sorted(found, key=lambda group: -group.top))


def _margin(groups: tuple[ReadoutGroup, ...], weights: StockWeights, layers: list[LayerPlan], off: Array) -> float:
    """By how much the token whose signs a column has leads any other; of two such tokens, that of the larger top.

    Two tokens of a group differ in a row at least, and a row of weight w in which they differ is worth 2 w (1 - off). What
    is computed may be off by roundings.
    """
    changed = changed_rows(layers)
    allowed = [_allowed(group, weights.embedding, changed) for group in groups]
    leads = [2 * float((group.sizes * (1 - off[list(group.rows)])).min()) for group in groups]
    for i, right in enumerate(groups):
        for j, other in enumerate(groups):
            if i != j and allowed[i].any():
                fixed = None if (allowed[i] & allowed[j]).any() else set(other.rows) - changed
                leads.append(_lead(right, other, off, fixed))
    eps = FORMATS[weights.dtype].eps
    return min(leads) - max(group.top * (len(group.rows) + 2) for group in groups) * eps


def _lead(right: ReadoutGroup, other: ReadoutGroup, off: Array, fixed: set[int] | None) -> float:
    """By how much a token leads those of another group, in a column that has its signs.

    A row in which both have the same weight adds nothing negative, and twice the weight where their signs are always
    opposite. In other rows the right token has all of its weight, and the other at most all of its own. It misses one row at
    least, unless a column may have the signs of both: one of `fixed`, if no token has the signs of both there.
    """
    mine, theirs = ({row: (float(size), sign) for row, size, sign in zip(group.rows, group.sizes, group.signs, strict=True)}
                    for group in (right, other))
    shared = {row for row in mine if row in theirs and mine[row][0] == theirs[row][0]}
    opposite = {row for row in mine if row in theirs and mine[row][1] * theirs[row][1] == -1}
    gained = sum(2 * mine[row][0] * (1 - off[row]) for row in shared & opposite)
    lead = gained + sum(size * (1 - off[row]) for row, (size, _) in mine.items() if row not in shared)
    lead -= sum(size * (1 + off[row]) for row, (size, _) in theirs.items() if row not in shared)
    if shared & opposite or (fixed is None and not opposite and right.top > other.top):
        return float(lead)
    if fixed is None and not opposite and right.top == other.top:
        return 0.0
    missed = opposite or fixed or set(theirs)
    return float(lead + 2 * min(theirs[row][0] * (1 - off[row]) for row in missed - shared or missed))


def _allowed(group: ReadoutGroup, embedding: Array, changed: set[int]) -> NDArray[np.bool_]:
    """For each token, whether its column may have the signs of a token of the group: nothing writes to some rows."""
    found = np.ones(len(embedding), dtype=bool)
    for row, sign in zip(group.rows, group.signs, strict=True):
        if sign and row not in changed:
            found &= embedding[:, row] == sign
    return found
