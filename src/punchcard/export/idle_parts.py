"""Rows and heads that do nothing: they read the machine's rows, and nothing of the machine reads them.

An idle head matches as a head of its layer does, and takes other rows to idle rows. Then the layer sets each idle row to
clip(idle row) + relu(row - row), with rows of the machine at random. So idle rows hold small integers where the machine's
rows do, and stay within bounds in any number of loops.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from punchcard.transformer.build import assign, compile_layer
from punchcard.transformer.expression import Array, Expression, Rows, relu, stack
from punchcard.transformer.weights import NAMES, LayerArrays


def widened(layer: LayerArrays, width: int, heads: int, generator: np.random.Generator) -> LayerArrays:
    """A layer in float64 for `width` rows, of which the last are idle, with so many idle heads if it has heads at all."""
    own = layer.w2.shape[0]
    idle = width - own
    arrays = {name: np.asarray(getattr(layer, name), dtype=np.float64) for name in NAMES}
    for name, axes in {"key": (2,), "query": (2,), "value": (1, 2), "w1": (1,), "w2": (0,), "b2": (0,)}.items():
        arrays[name] = np.pad(arrays[name], [(0, idle if axis in axes else 0) for axis in range(arrays[name].ndim)])
    found = LayerArrays(**arrays)
    if idle:
        found = _with_idle_formulas(found, own, generator)
    if idle and heads and layer.heads:
        found = _with_idle_heads(found, own, heads, generator)
    return found


def _with_idle_formulas(layer: LayerArrays, own: int, generator: np.random.Generator) -> LayerArrays:
    width = layer.w2.shape[0]
    numbers = np.arange(own, width)
    idle = Rows("idle", numbers, width)
    other = Rows("idle", generator.permutation(numbers), width)
    one, two = (_some_rows(own, width, len(numbers), generator) for _ in range(2))
    more = compile_layer(assign(idle, relu(other + 1) - relu(other - 1) - 1 + relu(one - two)), width)
    return replace(layer, w1=np.vstack([layer.w1, more.w1]), b1=np.vstack([layer.b1, more.b1[:, None]]),
                   w2=np.hstack([layer.w2, more.w2]), b2=layer.b2 + more.b2[:, None])


def _some_rows(own: int, width: int, count: int, generator: np.random.Generator) -> Expression:
    """Rows of the machine at random."""
    return stack(*(Rows("some", np.array([row]), width) for row in generator.integers(0, own, count)))


def _with_idle_heads(layer: LayerArrays, own: int, heads: int, generator: np.random.Generator) -> LayerArrays:
    width = layer.w2.shape[0]
    like = generator.integers(0, layer.heads, heads)
    value: Array = np.zeros((heads, width, width))
    for head in range(heads):
        taken, signs = generator.integers(0, own, width - own), generator.choice([-1.0, 1.0], width - own)
        value[head, np.arange(own, width), taken] = signs
    return replace(layer, key=np.concatenate([layer.key, layer.key[like]]),
                   query=np.concatenate([layer.query, layer.query[like]]), value=np.concatenate([layer.value, value]),
                   temperature=np.concatenate([layer.temperature, layer.temperature[like]]))
