"""The weights of a large machine, kept on disk beside compiled code: its formulas are worked out once.

They follow from the design, the sizes, the number format and the sources of this package, which together are the key. The
entries that are not 0 are kept; of weights that need more bits than their number format has, this alone. When in doubt the
formulas are worked out anew.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import punchcard.code_cache as code_cache
from punchcard.transformer.precision import Precision
from punchcard.transformer.weights import NAMES, LayerArrays, Weights

FORMATS = ("float32", "float64")


@lru_cache(maxsize=1)
def _sources() -> bytes:
    """The formulas, and all that turns them into numbers."""
    package = Path(__file__).parent.parent
    found = hashlib.sha256(np.__version__.encode())
    for room in ("card", "primitives", "transformer", "machines"):
        for source in sorted((package / room).rglob("*.py")):
            found.update(source.read_bytes())
    return found.digest()


def key_of(design: object, sizes: object, precision: Precision) -> str:
    """A name for the weights."""
    described = f"weights {type(design).__module__} {type(design).__qualname__} {sizes!r} {precision!r}"
    return hashlib.sha256(_sources() + described.encode()).hexdigest()


def find(key: str) -> tuple[Weights | None, int] | None:
    """Weights, and the significand bits that they need; no weights where the number format has fewer."""
    found = code_cache.find(key)
    if not isinstance(found, tuple):
        return None
    notes, data = found
    if "layers" not in notes:
        return None, notes["needed_bits"]
    kind, at, layers = np.dtype(notes["dtype"]), 0, []
    for shapes in notes["layers"]:
        arrays = []
        for shape, count in shapes:
            places = np.frombuffer(data, np.uint32, count, at)
            values = np.frombuffer(data, kind, count, at + places.nbytes)
            at += places.nbytes + values.nbytes
            array = np.zeros(shape, kind)
            array.reshape(-1)[places] = values
            arrays.append(array)
        layers.append(LayerArrays(*arrays))
    weights = Weights(notes["width"], notes["dtype"], layers, {"digest": notes["digest"]})
    weights.freeze()
    return weights, notes["needed_bits"]


def keep(key: str, weights: Weights | None, needed_bits: int) -> None:
    """Keep weights for the next process, or that there are none in this number format."""
    if weights is None:
        code_cache.keep(key, {"needed_bits": needed_bits}, b"")
        return
    if weights.dtype not in FORMATS:
        return
    parts: list[bytes] = []
    layers: list[list[Any]] = []
    for layer in weights.layers:
        shapes: list[Any] = []
        for name in NAMES:
            array = np.ascontiguousarray(getattr(layer, name))
            places = np.flatnonzero(array.view(f"u{array.itemsize}")).astype(np.uint32)  # a -0.0 is not all zeros
            parts += [places.tobytes(), array.reshape(-1)[places].tobytes()]
            shapes.append([array.shape, len(places)])
        layers.append(shapes)
    notes = {"dtype": weights.dtype, "width": weights.width, "layers": layers, "needed_bits": needed_bits,
             "digest": weights.digest().hex()}
    code_cache.keep(key, notes, b"".join(parts))
