"""Idle copies: a part of the machine is there twice, and the second is idle.

Some row blocks are chosen. Each of their rows has an idle row, which begins with the same number. Every head and
hidden unit that writes these rows is there twice: the copy has the same K, Q, V and temperature, or the same row of W1,
entry of b1 and column of W2, but reads and writes the idle rows instead of the rows that they copy. So an idle row
always holds what its row holds, and nothing of the machine reads it.

With copies of all rows that are written, the exchange of rows and idle rows turns real parts into idle ones and the weights
into themselves. So nothing of the weights or the cards can tell idle parts; only the output, which has the real rows, does.
With fewer, a part without a copy is known to be real.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from punchcard.card.formats import AnyArray
from punchcard.transformer.weights import NAMES, LayerArrays


@dataclass(frozen=True)
class Copied:
    """Layers with copies: the first parts of each layer are the machine's own.

    shadowed   for each idle row the row that it copies
    heads      for each layer the heads that were copied, in the order of the copies
    units      for each layer the hidden units that were copied
    """

    layers: list[LayerArrays]
    shadowed: AnyArray
    heads: list[AnyArray]
    units: list[AnyArray]


def with_copies(layers: Sequence[LayerArrays], share: float, generator: np.random.Generator) -> Copied:
    """Layers in float64 with idle copies of about this share of the rows that some layer writes."""
    families = _families(layers)
    order = generator.permutation(len(families))
    wanted, chosen = share * sum(len(rows) for rows in families), list[int]()
    for place in order.tolist():
        if len(chosen) < wanted:
            chosen += sorted(families[place])
    rows = np.array(sorted(chosen), dtype=np.intp)
    made = [_copied(layer, rows) for layer in layers]
    return Copied([each[0] for each in made], rows, [each[1] for each in made], [each[2] for each in made])


def _families(layers: Sequence[LayerArrays]) -> list[set[int]]:
    """Rows that are written, put together where one head or unit writes several of them."""
    groups: list[set[int]] = []
    for layer in layers:
        writes = [set(np.flatnonzero(value.any(axis=1)).tolist()) for value in layer.value]
        writes += [set(np.flatnonzero(column).tolist()) for column in layer.w2.T]
        for rows in writes:
            touching = [group for group in groups if group & rows]
            merged = rows.union(*touching)
            groups = [group for group in groups if not group & rows] + ([merged] if merged else [])
    return sorted(groups, key=min)


def _copied(layer: LayerArrays, rows: AnyArray) -> tuple[LayerArrays, AnyArray, AnyArray]:
    width, idle = layer.w2.shape[0], len(rows)
    wide = padded(layer, idle)
    heads = np.array([h for h in range(layer.heads) if layer.value[h][rows].any()], dtype=np.intp)
    units = np.flatnonzero(layer.w2[rows].any(axis=0))
    value, outer, constant = _beside(wide.value[heads], rows), wide.w2[:, units].copy(), wide.b2.copy()
    value[:, width:], value[:, :width] = value[:, rows], 0.0
    outer[width:], outer[:width] = wide.w2[rows][:, units], 0.0
    constant[width:] = wide.b2[rows]
    return replace(
        wide, key=np.concatenate([wide.key, _beside(wide.key[heads], rows)]),
        query=np.concatenate([wide.query, _beside(wide.query[heads], rows)]),
        value=np.concatenate([wide.value, value]), temperature=np.concatenate([wide.temperature, wide.temperature[heads]]),
        w1=np.vstack([wide.w1, _beside(wide.w1[units], rows)]), b1=np.vstack([wide.b1, wide.b1[units]]),
        w2=np.hstack([wide.w2, outer]), b2=constant), heads, units


def padded(layer: LayerArrays, idle: int) -> LayerArrays:
    """A layer in float64 with so many idle rows behind its own: nothing reads or writes them."""
    arrays = {name: np.asarray(getattr(layer, name), dtype=np.float64) for name in NAMES}
    for name, axes in {"key": (2,), "query": (2,), "value": (1, 2), "w1": (1,), "w2": (0,), "b2": (0,)}.items():
        arrays[name] = np.pad(arrays[name], [(0, idle if axis in axes else 0) for axis in range(arrays[name].ndim)])
    return LayerArrays(**arrays)


def _beside(matrices: AnyArray, rows: AnyArray) -> AnyArray:
    """Matrices that read the idle rows, which are the last, instead of the rows that they copy."""
    found = matrices.copy()
    found[..., found.shape[-1] - len(rows) :], found[..., rows] = matrices[..., rows], 0.0
    return found
