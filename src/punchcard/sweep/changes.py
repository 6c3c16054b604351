"""Seeded changes of a machine: of its weights before a run, or of the card after each layer of it.

    weight-noise       to each weight w a normal number of deviation `amount` max(1, |w|); where="nonzero": `amount` |w|, and
                       weights of 0 stay
    activation-noise   to each entry of the card after each layer a normal number of deviation `amount`
    bit-flips          `amount` bits of weights are flipped, each weight as likely
    rounding           weights are rounded to `to`, and back: bfloat16, float16, float32, or int8 with one scale a tensor

The machine is copied: the one that is given stays as it was.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from punchcard.card.formats import FORMATS, AnyArray
from punchcard.errors import SweepError, did_you_mean
from punchcard.export.disguise import noisy
from punchcard.machines.base import AnyMachine
from punchcard.sweep.job import Change
from punchcard.transformer.weights import NAMES, LayerArrays, Weights

if TYPE_CHECKING:
    from torch import Tensor

WHERE = ("all", "nonzero")
BITS = ("any", "sign", "exponent", "mantissa")
INT8 = "int8"
ROUNDINGS = (*FORMATS, INT8)
PLACES = ("layer", "tensor")
FIELDS: Mapping[str, tuple[str, ...]] = {
    "none": (), "weight-noise": ("amount", "where", *PLACES), "activation-noise": ("amount", "layer"),
    "bit-flips": ("amount", "bits", "where", *PLACES), "rounding": ("to", *PLACES)}
"""The kinds, and what each has."""
KINDS = tuple(FIELDS)
TYPES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "kind": ((str,), "a text"), "amount": ((int, float), "a number"), "to": ((str,), "a text"),
    "layer": ((int, type(None)), "a number without a point"), "tensor": ((str,), "a text"), "where": ((str,), "a text"),
    "bits": ((str,), "a text")}
WORDS: Mapping[str, type[np.unsignedinteger[Any]]] = {"float64": np.uint64, "float32": np.uint32, "float16": np.uint16}


def check(change: Change) -> None:
    """Refuse a change that has no meaning."""
    for name, (types, said) in TYPES.items():
        if not isinstance(given := getattr(change, name), types) or isinstance(given, bool):
            raise SweepError(f"{name}={given!r} of a change: it must be {said}")
    for name, value, known in (("kind", change.kind, KINDS), ("where", change.where, WHERE), ("bits", change.bits, BITS),
                               ("tensor", change.tensor, ("", *NAMES))):
        if value not in known:
            raise SweepError(f"{name}={value!r} of a change{did_you_mean(value, known)}: there are "
                             f"{', '.join(filter(None, known))}")
    if change.kind == "rounding" and change.to not in ROUNDINGS:
        raise SweepError(f"to={change.to!r} of a rounding{did_you_mean(change.to, ROUNDINGS)}: there are "
                         f"{', '.join(ROUNDINGS)}")
    if not 0 <= change.amount < float("inf"):
        raise SweepError(f"amount={change.amount} of a change: it must be a number, 0 or more")
    if change.kind == "bit-flips" and change.amount != int(change.amount):
        raise SweepError(f"amount={change.amount} of bit flips: it must be a whole number")
    if change.layer is not None and change.layer < 1:
        raise SweepError(f"layer={change.layer} of a change: layers are counted from 1")


def changed(machine: AnyMachine, change: Change, generator: np.random.Generator) -> tuple[AnyMachine, str]:
    """A copy of the machine with the change, and in words what was changed by chance."""
    check(change)
    layers = machine.weights.layers
    if change.layer is not None and change.layer > len(layers):
        raise SweepError(f"layer={change.layer} of a change: the machine has {len(layers)}")
    found: AnyMachine = copy.copy(machine)
    found.__dict__.pop("engine_cache", None)
    told = ""
    if change.kind == "bit-flips":
        arrays, told = _flipped(machine.weights, change, generator)
    else:
        arrays = [_layer(layer, machine.weights.dtype, change, generator) if change.layer in (None, number) else layer
                  for number, layer in enumerate(layers, start=1)]
    found.weights = Weights(machine.weights.width, machine.weights.dtype, arrays)
    if change.kind == "activation-noise" and change.amount:
        for number, module in enumerate(found.weights.module.layers, start=1):
            if change.layer in (None, number):
                module.register_forward_hook(_disturb(change.amount, generator))
    return found, told


def _disturb(amount: float, generator: np.random.Generator) -> Callable[[object, object, Tensor], Tensor]:
    """A hook that adds noise to what a layer gives."""
    def hook(module: object, given: object, card: Tensor) -> Tensor:
        import torch

        return card + amount * torch.from_numpy(generator.standard_normal(tuple(card.shape))).to(card)

    return hook


def _layer(layer: LayerArrays, dtype: str, change: Change, generator: np.random.Generator) -> LayerArrays:
    """A layer after noise or rounding of its weights."""
    if change.kind not in ("weight-noise", "rounding"):
        return layer
    names = [name for name in NAMES if change.tensor in ("", name)]
    return replace(layer, **{name: _array(getattr(layer, name), dtype, change, generator) for name in names})


def _array(array: AnyArray, dtype: str, change: Change, generator: np.random.Generator) -> AnyArray:
    wide = array.astype(np.float64)
    if change.kind == "rounding":
        found = rounded(wide, change.to)
    elif change.where == "nonzero":
        found = wide * (1 + change.amount * generator.standard_normal(wide.shape))
    else:
        found = noisy(wide, change.amount, generator)
    return _stored(found, dtype)


def _stored(array: AnyArray, dtype: str) -> AnyArray:
    """In the number format of a machine, as its arrays are stored."""
    found: AnyArray = FORMATS[dtype].rounded(array).astype(FORMATS[dtype].array)
    return found


def rounded(array: AnyArray, to: str) -> AnyArray:
    """Rounded to a number format and back. int8: to 255 steps from the largest entry to minus that."""
    if to != INT8:
        found: AnyArray = FORMATS[to].rounded(array).astype(np.float64)
        return found
    scale = float(np.abs(array).max(initial=0.0)) / 127
    return np.round(array / scale) * scale if scale else array


def _flipped(weights: Weights, change: Change, generator: np.random.Generator) -> tuple[list[LayerArrays], str]:
    """All layers after so many flips, and where those were."""
    if weights.dtype not in WORDS:
        raise SweepError(f"bit flips are for machines in {', '.join(WORDS)}, this one is in {weights.dtype}")
    word = WORDS[weights.dtype]
    layers = [{name: np.array(getattr(layer, name), order="C") for name in NAMES} for layer in weights.layers]
    places = list(_places(layers, change))
    counts = np.cumsum([count for *_, count in places])
    if not len(counts) or not counts[-1]:
        raise SweepError("bit flips: no weight is where the change says")
    low, high = _bit_range(weights.format.significand - 1, np.dtype(word).itemsize * 8, change.bits)
    if change.amount > counts[-1] * (high - low):
        raise SweepError(f"{change.amount:g} bit flips: there are {counts[-1] * (high - low):,} bits where the change says")
    told: dict[str, None] = {}
    while len(told) < change.amount:
        chosen = int(generator.integers(counts[-1]))
        number, name, flat, count = places[at := int(np.searchsorted(counts, chosen, side="right"))]
        place = int(flat[chosen - (int(counts[at]) - count)])
        bit = int(generator.integers(low, high))
        indices = np.unravel_index(place, layers[number][name].shape)
        flip = f"layers.{number}.{name}{[int(i) for i in indices]} bit {bit}"
        if flip in told:
            continue  # a second time would undo it
        told[flip] = None
        layers[number][name].reshape(-1).view(word)[place] ^= np.left_shift(word(1), word(bit))
    return [LayerArrays(**arrays) for arrays in layers], "; ".join(told)


def _places(layers: list[dict[str, AnyArray]], change: Change) -> Iterator[tuple[int, str, AnyArray, int]]:
    """The weights that may be flipped: layer, tensor, their places in it, and how many."""
    for number, layer in enumerate(layers):
        if change.layer in (None, number + 1):
            for name, array in layer.items():
                if change.tensor in ("", name):
                    flat = np.flatnonzero(array) if change.where == "nonzero" else np.arange(array.size)
                    yield number, name, flat, len(flat)


def _bit_range(mantissa: int, bits: int, which: str) -> tuple[int, int]:
    """The lowest bit and the one after the highest."""
    return {"any": (0, bits), "mantissa": (0, mantissa), "exponent": (mantissa, bits - 1), "sign": (bits - 1, bits)}[which]
