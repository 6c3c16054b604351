"""The weights in a file with the model inside, which JavaScript reads bit for bit."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from punchcard.card.formats import AnyArray
from punchcard.transformer.weights import LayerArrays, Weights
from punchcard.view.protocol import encoded


def sparse(array: AnyArray) -> dict[str, Any]:
    """A matrix by its entries that are not 0: their places, counted row by row, and their values."""
    flat = np.ravel(array)
    at = np.flatnonzero(flat)
    return {"shape": list(array.shape), "at": base64.b64encode(at.astype("<u4").tobytes()).decode("ascii"),
            "values": encoded(flat[at])}


def model(weights: Weights) -> dict[str, Any]:
    """All layers of a model."""
    return {"width": weights.width, "layers": [_layer(layer) for layer in weights.layers]}


def _layer(layer: LayerArrays) -> dict[str, Any]:
    heads = [{"key": sparse(layer.key[h]), "query": sparse(layer.query[h]), "value": sparse(layer.value[h]),
              "temperature": float(layer.temperature[h])} for h in range(layer.heads)]
    return {"heads": heads, **{name: sparse(getattr(layer, name)) for name in ("w1", "b1", "w2", "b2")}}
