"""Models with one weight changed, for engines and for proofs, and a comparison of the lowered engine with the equation."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from punchcard.card.layout import Card, Layout, as_tensor
from punchcard.engines import Controls, prepare
from punchcard.errors import LoweringError, WeightsError
from punchcard.machines.base import AnyMachine
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.transformer.equation import EVERY_COLUMN
from punchcard.transformer.grids import grids_of
from punchcard.transformer.weights import NAMES, LayerArrays, Weights
from tests import fleq_cases
from tests.lowered_cases import Machine, operations, painters, random_rules, turing_machine
from tests.random_programs import random_image, random_program
from tests.riscv_cases import endless

Array = npt.NDArray[Any]
Change = Callable[[random.Random, dict[str, Array]], str]


@dataclass(frozen=True)
class Subject:
    """A machine's weights and layout, and cards of random programs.

    `tolerance` is what real numbers may differ by in a loop, in proportion to the largest; bits may not differ. A machine of
    the package, or one like them, has its programs too.
    """

    weights: Weights
    layout: Layout
    card: Callable[[random.Random], Tensor]
    tolerance: float = 0.0
    machine: AnyMachine | None = None
    program: Callable[[random.Random], Any] | None = None


def subject(machine: AnyMachine, program: Callable[[random.Random], Any], tolerance: float = 0.0) -> Subject:
    """A machine with random programs."""
    return Subject(machine.weights, machine.layout, lambda rng: machine.punch(program(rng)), tolerance, machine, program)


def subleq(design: str, bits: int, cells: int, instructions: int, precision: str) -> Subject:
    machine = SubleqMachine(word_bits=bits, memory=cells, instructions=instructions, design=design, precision=precision)
    return subject(machine, lambda rng: random_program(rng, bits, cells, instructions))


def image(bits: int, memory: int) -> Subject:
    return subject(VonNeumannMachine(word_bits=bits, memory=memory), lambda rng: random_image(rng, bits, memory))


def _riscv(memory: int) -> Subject:
    return subject(RiscvMachine(memory=memory), lambda rng: endless(rng, memory, memory // 2))


def fleq(*functions: str, heads: int = 1, design: str = "compact") -> Subject:
    machine = FleqMachine(functions=(*functions, *fleq_cases.POINTER_FUNCTIONS), size=2, memory=14, instructions=8,
                          range=fleq_cases.RANGE, heads=heads, design=design)
    return subject(machine, lambda rng: fleq_cases.random_program(rng, machine, 60), 1e-6)


def _own(make: Callable[[random.Random], Machine]) -> Subject:
    """A machine of the tests, whose weights do not depend on the card."""
    machine = make(random.Random(1))
    return Subject(Weights.of(machine.model), machine.layout, lambda rng: make(rng).card)


def _turing(rng: random.Random) -> Machine:
    tape = [rng.randrange(2) for _ in range(16)]
    return turing_machine(random_rules(random.Random(3)), tape, rng.randrange(16), 4, torch.float32)


SUBJECTS: dict[str, Callable[[], Subject]] = {
    "two-layer": lambda: subleq("two-layer", 4, 6, 7, "float64"),
    "two-layer, float32": lambda: subleq("two-layer", 6, 9, 10, "float32"),
    "paper": lambda: subleq("paper", 4, 6, 7, "float32"),
    "one-layer": lambda: subleq("one-layer", 4, 6, 7, "float64"),
    "von Neumann": lambda: image(5, 20),
    "RISC-V": lambda: _riscv(100),
    "Turing": lambda: _own(_turing),
    "painters": lambda: _own(lambda rng: painters(16, 4)),
    "operations": lambda: _own(lambda rng: operations([rng.randrange(4) for _ in range(16)], 4)),
    "FLEQ": lambda: fleq("add", "sub", "transpose", "mul", "sigmoid"),
    "FLEQ, three-layer": lambda: fleq("add", "mul", design="three-layer"),
}


# Changes


def _entry(rng: random.Random, array: Array) -> tuple[int, ...]:
    """The place of an entry that is not 0, or of any where all are."""
    places = np.argwhere(array)
    if not len(places):
        return tuple(rng.randrange(size) for size in array.shape)
    return tuple(map(int, places[rng.randrange(len(places))]))


def _by(rng: random.Random) -> float:
    return rng.choice((1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 0.25, round(rng.uniform(-2, 2), 2), rng.uniform(-2, 2)))


def _add(name: str) -> Change:
    def change(rng: random.Random, layer: dict[str, Array]) -> str:
        array, by = layer[name], _by(rng)
        at = _entry(rng, array) if rng.random() < 0.7 else tuple(rng.randrange(size) for size in array.shape)
        array[at] += by
        return f"{name}{list(at)} += {by}"

    return change


def _scale(name: str, by: int) -> Change:
    def change(rng: random.Random, layer: dict[str, Array]) -> str:
        at = _entry(rng, layer[name])
        layer[name][at] *= by
        return f"{name}{list(at)} *= {by}"

    return change


def _swap(name: str) -> Change:
    def change(rng: random.Random, layer: dict[str, Array]) -> str:
        array = layer[name]
        one, other = (rng.randrange(len(array)) for _ in range(2))
        array[[one, other]] = array[[other, one]]
        return f"{name}: rows {one} and {other} swapped"

    return change


def _cool(rng: random.Random, layer: dict[str, Array]) -> str:
    head, by = rng.randrange(len(layer["temperature"])), rng.choice((0.5, 0.25, 0.75, 1 / 64, 1e-3, 2.0))
    layer["temperature"][head] *= by
    return f"temperature[{head}] *= {by}"


CHANGES: tuple[Change, ...] = (
    *(_add(name) for name in ("b1", "b1", "b1", "b2", "w1", "w2", "key", "query", "value")),
    *(_scale(name, -1) for name in ("w1", "w2", "key", "query", "value")),
    *(_scale(name, 0) for name in ("w1", "w2", "b1", "key", "query", "value")),
    _swap("w2"), _swap("w1"), _swap("b1"), _cool)


def _shifted(array: Array, by: int) -> Array:
    """The entries times a power of two, which a format may not hold: then they are infinite, or 0."""
    with np.errstate(all="ignore"):
        return np.ldexp(array, by)


def _power(rng: random.Random, array: Array) -> int:
    """The exponent of a number that is near the largest or the smallest of the format."""
    top = int(np.finfo(array.dtype).maxexp)
    return rng.choice((1, -1)) * rng.randrange(top // 3, top)


def _rescale_unit(rng: random.Random, layer: dict[str, Array]) -> str:
    """The same function over the real numbers."""
    unit, by = rng.randrange(len(layer["w1"])), _power(rng, layer["w1"])
    for part, at, shift in (("w1", unit, by), ("b1", unit, by), ("w2", (slice(None), unit), -by)):
        layer[part][at] = _shifted(layer[part][at], shift)
    return f"hidden unit {unit} is 2^{by} times as large, and its weights in w2 as small"


def _rescale_keys(rng: random.Random, layer: dict[str, Array]) -> str:
    """The same scores over the real numbers."""
    head, by = rng.randrange(len(layer["key"])), _power(rng, layer["key"])
    layer["key"][head], layer["query"][head] = _shifted(layer["key"][head], by), _shifted(layer["query"][head], -by)
    return f"keys of head {head} are 2^{by} times as large, and queries as small"


def _enlarge(name: str) -> Change:
    def change(rng: random.Random, layer: dict[str, Array]) -> str:
        at, by = _entry(rng, layer[name]), _power(rng, layer[name])
        layer[name][at] = _shifted(layer[name][at], by)
        return f"{name}{list(at)} *= 2^{by}"

    return change


def _heat(rng: random.Random, layer: dict[str, Array]) -> str:
    head, by = rng.randrange(len(layer["temperature"])), _power(rng, layer["temperature"])
    layer["temperature"][head] = _shifted(np.ones((), layer["temperature"].dtype), by)
    return f"temperature[{head}] = 2^{by}"


def _zero(rng: random.Random, layer: dict[str, Array]) -> str:
    name = rng.choice(("key", "query", "value", "w1", "b1", "w2", "b2"))
    layer[name][...] = 0
    return f"{name} is 0"


def _spoil(rng: random.Random, layer: dict[str, Array]) -> str:
    name = rng.choice([name for name in NAMES if layer[name].size])
    at = tuple(rng.randrange(size) for size in layer[name].shape)
    layer[name][at] = rng.choice((np.nan, np.inf, -np.inf))
    return f"{name}{list(at)} = {layer[name][at]}"


def _several(rng: random.Random, layer: dict[str, Array]) -> str:
    return "; ".join(rng.choice(EXTREMES[:-1])(rng, layer) for _ in range(3))


EXTREMES: tuple[Change, ...] = (
    _rescale_unit, _rescale_unit, _rescale_keys, _enlarge("value"), _enlarge("w2"), _enlarge("b1"), _heat, _zero, _spoil,
    _several)
"""Changes after which sums may overflow or underflow, or are not numbers at all."""


def _tiny(rng: random.Random, layer: dict[str, Array]) -> str:
    """A constant too small to be seen beside a bit, in the place of a weight or added to it."""
    array = layer[name := rng.choice([name for name in NAMES if name != "temperature" and layer[name].size])]
    at = _entry(rng, array) if rng.random() < 0.4 else tuple(rng.randrange(size) for size in array.shape)
    by = rng.choice((-1, 1)) * rng.choice((1e-18, 3e-8, 2.0 ** -rng.randrange(12, 60), 2.0 ** -rng.randrange(54, 149)))
    array[at] = by + rng.choice((0, array[at]))
    return f"{name}{list(at)} = {array[at]}"


TINY: tuple[Change, ...] = (
    _tiny, _tiny, lambda rng, layer: ", ".join(_tiny(rng, layer) for _ in range(3)))
"""Changes of one weight, or of three in a layer."""


def perturbed(rng: random.Random, weights: Weights, changes: Sequence[Change] = CHANGES) -> tuple[str, Weights]:
    """The weights with one change, and what it is."""
    layers = list(weights.layers)
    number = rng.randrange(len(layers))
    arrays = {name: array.copy() for name, array in vars(layers[number]).items()}
    try:
        text = rng.choice(changes)(rng, arrays)
    except ValueError:  # a layer without heads, or without hidden units
        return perturbed(rng, weights, changes)
    layers[number] = replace(layers[number], **arrays)
    return f"layer {number + 1}, {text}", Weights(weights.width, weights.dtype, layers)


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


# The comparison


@dataclass(frozen=True)
class Outcome:
    """How a perturbed model fared: "refused", "declined" (some loops), "lowered" (all), "rounded", or "different".

    A loop that was declined, and that a slower engine rounds otherwise than the equation, is not looked at further.
    """

    kind: str
    what: str


def compare(subject: Subject, seed: str, loops: int, changes: Sequence[Change] = CHANGES,
            engine: str = "lowered") -> Outcome:
    """Random loops of a perturbed model: each card that the engine gives is what the equation makes of the one before."""
    rng = random.Random(seed)
    what, weights = perturbed(rng, subject.weights, changes)
    card, model = subject.card(rng), weights.module
    seen: list[Tensor] = []

    def watch(_: int, now: Card) -> None:
        seen.append(as_tensor(now).clone())

    with torch.no_grad():
        if weights.flaw() is not None:
            with pytest.raises(WeightsError, match="a run needs finite weights"):
                prepare(engine, weights, subject.layout, card, fall_back=True)
            return Outcome("refused", what)
        runner = prepare(engine, weights, subject.layout, card, fall_back=True)
        if any(note.startswith("not lowered") for note in runner.notes):
            return Outcome("refused", what)
        ran = runner.run(loops, Controls(watch=watch))
        for loop, found in enumerate(seen, start=1):
            expected = model(card)
            apart = distance(found, expected)
            same = torch.equal(found.isnan(), expected.isnan()) and torch.equal(found.isinf(), expected.isinf())
            if apart > subject.tolerance or not same:
                kind = judge(subject, weights, card, apart) if same else "different"
                return Outcome(kind, f"{what}: loop {loop} differs by {apart:g}")
            card = found
    return Outcome("lowered" if ran.made == {"lowered": loops} else "declined", what)


ROUNDING, WIDE_ROUNDING = 1e-4, 1e-9
"""Far below half a bit, and above what rounding does to a sum; in float64, to sums of the size that float32 has."""


def distance(found: Tensor, expected: Tensor) -> float:
    """How far two cards are apart, in proportion to the largest finite entry."""
    finite = expected[expected.isfinite()].abs()
    return float((found - expected).nan_to_num().abs().max()) / max(1.0, float(finite.max()) if len(finite) else 1.0)


def judge(subject: Subject, weights: Weights, card: Tensor, apart: float) -> str:
    """Why a loop from this card differs from the equation's: it is "different" unless rounding explains it."""
    if is_exact(weights, card):
        return "different"
    if subject.tolerance or weights.dtype == "float64":
        return "rounded" if apart < ROUNDING else "different"
    by_another = declines(weights, subject.layout, card)
    return "declined" if by_another and agrees_in_float64(weights, subject.layout, card) else "different"


def declines(weights: Weights, layout: Layout, card: Tensor) -> bool:
    """Whether the lowered engine leaves the next loop to another one."""
    try:
        return prepare("lowered", weights, layout, card).run(1).loops == 0
    except LoweringError:
        return True


def agrees_in_float64(weights: Weights, layout: Layout, card: Tensor) -> bool:
    """Whether the next loop of the same numbers, in float64 and with the engine that takes over, is the equation's."""
    model, begin = wide(weights), card.double()
    ran = prepare("lowered", model, layout, begin, fall_back=True).run(1)
    return distance(as_tensor(ran.card), model.module(begin)) < WIDE_ROUNDING


def is_exact(weights: Weights, card: Tensor) -> bool:
    """Whether no order of summation rounds a sum of this loop: each has terms on a grid g, and a total of at most 2^p g.

    That the equation's own order gives what more digits give is not enough: an engine adds in another order. The weights of
    the softmax are taken as the number format has them.
    """
    exact, bits = card.double().numpy(), weights.format.significand
    for layer in weights.layers:
        attended, parts = exact, [(np.eye(len(exact)), exact)]
        for head in range(layer.heads):
            keys, queries, values = (array[head].astype(np.float64) for array in (layer.key, layer.query, layer.value))
            asked, held = queries @ exact, keys @ exact
            scores = held.T @ asked * float(layer.temperature[head])
            shares = torch.softmax(torch.from_numpy(scores).to(card.dtype), dim=0).double().numpy()
            if not all(_fits(bits, [part]) for part in ((queries, exact), (keys, exact), (held.T, asked), (values, exact))):
                return False
            parts.append((values @ exact, shares))
            attended = attended + parts[-1][0] @ shares
        w1, b1, w2, b2 = (array.astype(np.float64) for array in (layer.w1, layer.b1, layer.w2, layer.b2))
        one = np.ones((1, exact.shape[1]))
        hidden = np.maximum(w1 @ attended + b1, 0)
        last = [(np.eye(len(exact)), attended), (w2, hidden), (b2, one)]
        if not (_fits(bits, parts) and _fits(bits, [(w1, attended), (b1, one)]) and _fits(bits, last)):
            return False
        exact = attended + w2 @ hidden + b2
    return True


def _fits(bits: int, parts: Sequence[tuple[Array, Array]]) -> bool:
    """Whether every entry of a sum of matrix products has an absolute total of at most 2^bits times its grid."""
    total, grid = (np.full((len(parts[0][0]), parts[0][1].shape[1]), start) for start in (0.0, np.inf))
    for one, other in parts:
        total += np.abs(one) @ np.abs(other)
        left, right = (np.where(np.isfinite(found := grids_of(side)), found, np.nan) for side in (one, other))
        for row, column in zip(left.T, right, strict=True):
            np.fmin(grid, row[:, None] * column, out=grid)
    return bool(np.all(total <= grid * 2.0**bits))


# Any engine, and weights of any size


def verdict(
    weights: Weights, card: Tensor, found: Tensor, tolerance: float, columns: Any = EVERY_COLUMN,
    again: Callable[[Weights, Tensor], Tensor] | None = None,
) -> tuple[str, float]:
    """Whether a card is what the equation makes of one: "equal", "rounded" or "different"; and how far apart they are.

    What was found may be some columns. NaN and infinity are where the equation has them. Where the equation itself may
    round, its own error is allowed, or as much as vanishes when the loop is made `again` in float64.
    """
    expected = weights.module(card)[:, columns]
    ordinary = expected.isfinite()
    if not torch.equal(found[~ordinary].nan_to_num(), expected[~ordinary].nan_to_num()) or not bool(
            (found.isnan() == expected.isnan()).all() and found[ordinary].isfinite().all()):
        return "different", float("inf")
    if not bool(ordinary.any()):
        return "equal", 0.0
    scale = max(1.0, float(expected[ordinary].double().abs().max()))
    apart = float((found[ordinary].double() - expected[ordinary].double()).abs().max()) / scale
    if apart <= tolerance:
        return "equal", apart
    if is_exact(weights, card):
        return "different", apart
    if apart <= max(ROUNDING, 2 * rounding_error(weights, card) / scale):
        return "rounded", apart
    if again is None or weights.dtype == "float64":
        return "different", apart
    model, begin = wide(weights), card.double()
    return "rounded" if distance(again(model, begin), model.module(begin)) < WIDE_ROUNDING else "different", apart


def rounding_error(weights: Weights, card: Tensor) -> float:
    """How far a loop of the equation is off because it rounds: by float64, and by another order of all sums."""
    expected, turned = weights.module(card).double(), card.flip(0, 1)
    others = wide(weights).module(card.double()), reordered(weights).module(turned).flip(0, 1).double()
    return max(float((other - expected).abs().max()) for other in others)


def wide(weights: Weights) -> Weights:
    """The same numbers in float64."""
    layers = [replace(layer, **{name: array.astype(np.float64) for name, array in vars(layer).items()})
              for layer in weights.layers]
    return Weights(weights.width, "float64", layers)


def reordered(weights: Weights) -> Weights:
    """The same weights with rows, heads and hidden units turned around: for a card that is turned around."""
    axes = {"key": (0, 2), "query": (0, 2), "b1": (0,), "b2": (0,)}  # of all others every one
    return Weights(weights.width, weights.dtype, [
        LayerArrays(**{name: np.flip(getattr(layer, name), axes.get(name)).copy() for name in NAMES})
        for layer in weights.layers])
