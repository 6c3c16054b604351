"""Weights with one of them changed, for proofs: what is claimed of a machine must fail, or be shown all the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from punchcard.transformer.weights import NAMES, Weights


def mutations(weights: Weights, count: int, seed: int = 0) -> Iterator[tuple[str, Weights]]:
    """So many models with one weight changed, mostly one that is not 0, and what was changed."""
    rng = random.Random(seed)
    for _ in range(count):
        layers = list(weights.layers)
        number = rng.randrange(len(layers))
        layer = layers[number]
        name = rng.choice([name for name in NAMES if getattr(layer, name).size])
        array = getattr(layer, name).copy()
        flat = array.reshape(-1)
        used = np.flatnonzero(flat)
        place = int(rng.choice(list(used))) if len(used) and rng.random() < 0.8 else rng.randrange(len(flat))
        old = float(flat[place])
        new = rng.choice([value for value in (-old, 0.0, 2 * old, old + 1, old - 0.5, old / 4) if value != old])
        flat[place] = new
        layers[number] = replace(layer, **{name: array})
        yield f"layer {number + 1}, {name}[{place}]: {old} becomes {new}", Weights(weights.width, weights.dtype, layers)
