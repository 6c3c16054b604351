"""Front layers as the matrices of a Llama layer, over the added coordinates.

All heads of a layer share one key: 1 in the pairs that tell distances apart, and in the slowest pair 1 for tokens that are
not digits. They share one value too, which has all that any of them fetches; the output matrix takes each head's part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from punchcard.card.layout import Layout
from punchcard.errors import FusionError
from punchcard.language_models.widened.distances import STILL, Distances
from punchcard.language_models.widened.front import FrontHead, FrontLayer
from punchcard.language_models.widened.gates import SHARPNESS
from punchcard.transformer.expression import Array, rows
from punchcard.transformer.softmax import hard_product

LEAD = 1.25 * hard_product("float32")
"""By how much the column that a head looks for leads: others have a weight of exactly 0, with a quarter to spare."""


@dataclass(frozen=True)
class HeadShape:
    """The heads of a base: dimensions of one, query heads, and how many of them share a key."""

    size: int
    count: int
    group: int
    scaling: float = 1.0
    """What rotary positions multiply queries and keys by."""

    @property
    def keys(self) -> int:
        return self.count // self.group


def matrices(layer: FrontLayer, layout: Layout, shape: HeadShape, distances: Distances) -> dict[str, Array]:
    """The matrices of a layer by their names in a Llama layer. Numbers are read and written with amplitude 1."""
    return _attention(layer, layout, shape, distances) | _feed_forward(layer, layout)


def _attention(layer: FrontLayer, layout: Layout, shape: HeadShape, distances: Distances) -> dict[str, Array]:
    forms = {form.linear.tobytes(): form.linear[0] for head in layer.heads for form, _ in head.fetches}
    if len(forms) > shape.size:
        raise FusionError(f"the base's heads have {shape.size} dimensions, and one fetches {len(forms)} numbers: use a base "
                          "with larger heads, or fewer digits")
    place = {form: i for i, form in enumerate(forms)}
    width = layout.width
    query, output = np.zeros((shape.count, shape.size, width)), np.zeros((width, shape.count, shape.size))
    for i, head in enumerate(layer.heads):
        query[i] = _query(head, layout, shape, distances)
        for form, into in head.fetches:
            output[into.numbers[0], i, place[form.linear.tobytes()]] = 1.0
    value = np.zeros((shape.size, width))
    value[: len(forms)] = list(forms.values()) or np.zeros((0, width))
    key = np.zeros((shape.size, width))
    one, is_digit = rows(layout, "one").linear[0], rows(layout, "is_digit").linear[0]
    key[distances.pairs] = one
    key[shape.size // 2 - 1] = one - is_digit
    if not layer.heads:
        key[:], value[:] = 0.0, 0.0
    return {"self_attn.q_proj": query.reshape(-1, width), "self_attn.k_proj": np.tile(key, (shape.keys, 1)),
            "self_attn.v_proj": np.tile(value, (shape.keys, 1)), "self_attn.o_proj": output.reshape(width, -1)}


def _query(head: FrontHead, layout: Layout, shape: HeadShape, distances: Distances) -> Array:
    """A head's query. Scores are divided by sqrt(size)."""
    found = np.zeros((shape.size, layout.width))
    height, half = LEAD * math.sqrt(shape.size) / shape.scaling**2, shape.size // 2
    if head.others:
        found[half - 1] = height / STILL * rows(layout, "one").linear[0]
    for back, form in head.asks:
        turned = distances.query(back) * height / min(distances.lead, distances.early_lead)
        found[distances.pairs] += np.outer(turned.real, form.linear[0])
        found[half:][distances.pairs] += np.outer(turned.imag, form.linear[0])
    return found


def _feed_forward(layer: FrontLayer, layout: Layout) -> dict[str, Array]:
    gate, up = (np.array([getattr(unit, name).linear[0] for unit in layer.units]) for name in ("gate", "up"))
    down = np.zeros((layout.width, len(layer.units)))
    for i, unit in enumerate(layer.units):
        for into, factor in unit.into:
            down[into.numbers[0], i] += factor / SHARPNESS
    return {"mlp.gate_proj": SHARPNESS * gate, "mlp.up_proj": up, "mlp.down_proj": down}
