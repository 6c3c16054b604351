"""Models with one weight changed, on every machine, and a comparison of the lowered engine with the equation."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from punchcard.card.layout import Layout
from punchcard.engines import prepare
from punchcard.transformer.model import LoopedTransformer
from punchcard.transformer.weights import LayerArrays, Weights

Change = Callable[[random.Random, dict[str, np.ndarray]], str]


@dataclass(frozen=True)
class Subject:
    """A machine's weights and layout, and cards of random programs."""

    name: str
    weights: Weights
    layout: Layout
    card: Callable[[random.Random], Tensor]
    tolerance: float = 0.0


def _entry(rng: random.Random, array: np.ndarray) -> tuple[int, ...]:
    """The place of an entry that is not 0, or of any where all are."""
    places = np.argwhere(array)
    if not len(places):
        return tuple(rng.randrange(size) for size in array.shape)
    return tuple(map(int, places[rng.randrange(len(places))]))


def _by(rng: random.Random) -> float:
    return rng.choice((1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 0.25, round(rng.uniform(-2, 2), 2), rng.uniform(-2, 2)))


def _add(name: str) -> Change:
    def change(rng: random.Random, layer: dict[str, np.ndarray]) -> str:
        array, by = layer[name], _by(rng)
        at = _entry(rng, array) if rng.random() < 0.7 else tuple(rng.randrange(size) for size in array.shape)
        array[at] += by
        return f"{name}{list(at)} += {by}"

    return change


def _turn(name: str) -> Change:
    def change(rng: random.Random, layer: dict[str, np.ndarray]) -> str:
        at = _entry(rng, layer[name])
        layer[name][at] *= -1
        return f"{name}{list(at)} *= -1"

    return change


def _drop(name: str) -> Change:
    def change(rng: random.Random, layer: dict[str, np.ndarray]) -> str:
        at = _entry(rng, layer[name])
        layer[name][at] = 0
        return f"{name}{list(at)} = 0"

    return change


def _swap(name: str) -> Change:
    def change(rng: random.Random, layer: dict[str, np.ndarray]) -> str:
        array = layer[name]
        one, other = (rng.randrange(len(array)) for _ in range(2))
        array[[one, other]] = array[[other, one]]
        return f"{name}: rows {one} and {other} swapped"

    return change


def _cool(rng: random.Random, layer: dict[str, np.ndarray]) -> str:
    head, by = rng.randrange(len(layer["temperature"])), rng.choice((0.5, 0.25, 0.75, 1 / 64, 1e-3, 2.0))
    layer["temperature"][head] *= by
    return f"temperature[{head}] *= {by}"


CHANGES: tuple[Change, ...] = (
    _add("b1"), _add("b1"), _add("b1"), _add("b2"), _swap("w2"), _swap("w1"), _turn("w1"), _turn("w2"), _add("w1"), _add("w2"),
    _cool, _add("key"), _add("query"), _add("value"), _turn("key"), _turn("query"), _turn("value"), _drop("key"), _drop("query"),
    _drop("value"), _drop("w1"), _drop("w2"), _drop("b1"), _swap("b1"))


def perturbed(rng: random.Random, weights: Weights) -> tuple[str, Weights]:
    """The weights with one change, and what it is."""
    layers = list(weights.layers)
    number = rng.randrange(len(layers))
    arrays = {name: array.copy() for name, array in vars(layers[number]).items()}
    try:
        text = rng.choice(CHANGES)(rng, arrays)
    except ValueError:  # a layer without heads, or without hidden units
        return perturbed(rng, weights)
    layers[number] = replace(layers[number], **arrays)
    return f"layer {number + 1}, {text}", Weights(weights.width, weights.dtype, layers)
