"""Models with one weight changed, for engines and for proofs, and a comparison of the lowered engine with the equation."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from punchcard.card.layout import Card, Layout, as_tensor
from punchcard.engines import Controls, prepare
from punchcard.machines.base import AnyMachine
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.transformer.equation import EVERY_COLUMN
from punchcard.transformer.model import LoopedTransformer
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


def entry(rng: random.Random, array: Array) -> tuple[int, ...]:
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
        at = entry(rng, array) if rng.random() < 0.7 else tuple(rng.randrange(size) for size in array.shape)
        array[at] += by
        return f"{name}{list(at)} += {by}"

    return change


def _scale(name: str, by: int) -> Change:
    def change(rng: random.Random, layer: dict[str, Array]) -> str:
        at = entry(rng, layer[name])
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


def perturbed(rng: random.Random, weights: Weights, changes: Sequence[Change] = CHANGES) -> tuple[str, Weights]:
    """The weights with one of these changes, and what it is."""
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
    """How a perturbed model fared: "refused", "declined" (some loops), "lowered" (all), "rounded", or "different"."""

    kind: str
    what: str


def compare(subject: Subject, seed: str, loops: int) -> Outcome:
    """Random loops of a perturbed model: each card that the engine gives is what the equation makes of the one before."""
    rng = random.Random(seed)
    what, weights = perturbed(rng, subject.weights)
    card, model = subject.card(rng), weights.module
    seen: list[Tensor] = []

    def watch(_: int, now: Card) -> None:
        seen.append(as_tensor(now).clone())

    with torch.no_grad():
        runner = prepare("lowered", weights, subject.layout, card, fall_back=True)
        if any(note.startswith("not lowered") for note in runner.notes):
            return Outcome("refused", what)
        ran = runner.run(loops, Controls(watch=watch))
        for loop, found in enumerate(seen, start=1):
            kind, apart = verdict(model, card, found, subject.tolerance)
            if kind != "equal":
                return Outcome(kind, f"{what}: loop {loop} differs by {apart:g}")
            card = found
    return Outcome("lowered" if ran.made == {"lowered": loops} else "declined", what)


def verdict(
    model: LoopedTransformer, card: Tensor, found: Tensor, tolerance: float, columns: Any = EVERY_COLUMN,
) -> tuple[str, float]:
    """Whether a card is what the equation makes of one: "equal", "rounded" or "different"; and how far apart they are.

    What was found may be some columns. NaN and infinity are where the equation has them. Where the equation itself rounds,
    its own error is allowed.
    """
    expected = model(card)[:, columns]
    ordinary = expected.isfinite()
    if not torch.equal(found[~ordinary].nan_to_num(), expected[~ordinary].nan_to_num()) or not bool(
            (found.isnan() == expected.isnan()).all() and found[ordinary].isfinite().all()):
        return "different", float("inf")
    if not bool(ordinary.any()):
        return "equal", 0.0
    scale = max(1.0, float(expected[ordinary].abs().max()))
    apart = float((found[ordinary].double() - expected[ordinary].double()).abs().max()) / scale
    if apart <= tolerance:
        return "equal", apart
    own = rounding_error(model, card) / scale
    return "rounded" if own and apart <= max(ROUNDING, 2 * own) else "different", apart


ROUNDING = 1e-4
"""Far below half a bit, and above what rounding does to a sum."""
FEW_BITS = 2**10
"""A softmax whose weights are multiples of 1 / 2^10 is exact; any other is rounded by each library as it likes."""


def rounding_error(model: LoopedTransformer, card: Tensor) -> float:
    """How far a loop of the equation is off because it rounds; 0.0 if nothing is rounded.

    More digits in every sum give the same then, at each stage, and so does another order of all sums.
    """
    stages = [stage.double().numpy() for stage in model.stages(card)]
    others = [(_in_another_order(model, card), stages[-1]), *zip(_with_more_digits(model, card), stages[1:], strict=False)]
    apart = [float(np.abs(other - stage).max()) for other, stage in others]
    return max(apart) if len(others) == len(stages) else max(*apart, np.finfo(np.float64).tiny)


def _with_more_digits(model: LoopedTransformer, card: Tensor) -> Iterator[Array]:
    """The stages of a loop with more digits, up to a softmax that is rounded. Its weights are as the number format has them.
    """
    kind: type[Any] = np.longdouble if card.dtype == torch.float64 else np.float64
    exact: Any = card.double().numpy().astype(kind)
    for layer in Weights.of(model).layers:
        key, query, value, w1, b1, w2, b2 = (
            array.astype(kind)
            for array in (layer.key, layer.query, layer.value, layer.w1, layer.b1, layer.w2, layer.b2))
        attended = exact
        for head in range(layer.heads):
            scores = (key[head] @ exact).T @ (query[head] @ exact) * kind(float(layer.temperature[head]))
            below = torch.from_numpy((scores - scores.max(axis=0)).astype(np.float64)).to(card.dtype)
            weights = torch.softmax(below, dim=0).double().numpy()
            if (weights * FEW_BITS % 1).any():
                return
            attended = attended + value[head] @ exact @ weights.astype(kind)
        yield attended
        exact = attended + w2 @ np.maximum(w1 @ attended + b1, 0) + b2
        yield exact


def _in_another_order(model: LoopedTransformer, card: Tensor) -> Array:
    """The card after a loop with rows, columns, heads and hidden units turned around."""
    axes = {"key": (0, 2), "query": (0, 2), "b1": (0,), "b2": (0,)}  # of all others every one
    turned = [LayerArrays(**{name: np.flip(getattr(layer, name), axes.get(name)).copy() for name in NAMES})
              for layer in Weights.of(model).layers]
    other = Weights(model.width, str(card.dtype).removeprefix("torch."), turned).module
    return other(card.flip(0, 1)).flip(0, 1).double().numpy()
