"""A target that is weights: changed to the extreme, and run by every engine, the view and the prover.

Whatever the weights are: an engine and the view give the card of the equation, or decline, or refuse by name; and what is
proven of weights is so on every card that is run.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from punchcard.card.layout import Card, as_tensor
from punchcard.card.packed import PackedCard
from punchcard.engines import Controls, prepare
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.transformer.equation import EVERY_COLUMN
from punchcard.transformer.weights import Weights
from punchcard.viewer.session import Session
from tests.cases import turing_example
from tests.fuzzing.judging import Fault
from tests.fuzzing.workers import Attempt, allow
from tests.perturbed import CHANGES, EXTREMES, SUBJECTS, TINY, Subject, image, perturbed, subject, subleq, verdict
from tests.random_programs import random_turing_text

LOOPS = 4
SECONDS_OF_QUERY, SECONDS_OF_PROOF = 0.5, 100.0
"""Of CPU. Weights that miss many margins need hundreds of queries."""
Door = Callable[[random.Random, Subject, Weights, str], None]


# What is changed


def changed(rng: random.Random, weights: Weights) -> tuple[str, Weights]:
    """Weights with one change or a few, and what they are."""
    told = []
    while True:
        what, weights = perturbed(rng, weights, rng.choice((EXTREMES, EXTREMES, TINY, CHANGES)))
        told.append(what)
        if rng.random() < 0.6:
            return "; ".join(told), weights


# Through what it goes


def _engine(name: str) -> Door:
    def run(rng: random.Random, given: Subject, weights: Weights, what: str) -> None:
        card = given.card(rng)
        packed = given.machine is not None and rng.random() < 0.5
        taken: Card = PackedCard.of(given.layout, card, weights.dtype) if packed else card
        falls_back = rng.random() < 0.5
        runner = prepare(name, weights, given.layout, taken, fall_back=falls_back)
        seen: list[Tensor] = []
        runner.run(LOOPS, Controls(watch=lambda _, now: seen.append(as_tensor(now).clone())))
        for loop, found in enumerate(seen, start=1):
            kind = _compare(given, weights, card, found, f"{name}, loop {loop}: {what}", again=partial(_again, given))
            if kind == "rounded" and name == "lowered" and not falls_back:
                raise Fault(f"a loop is lowered that the equation rounds: {name}, loop {loop}: {what}")
            card = found

    return run


def _again(given: Subject, weights: Weights, card: Tensor) -> Tensor:
    """A loop by the engine that makes the loops which the lowered one leaves."""
    return as_tensor(prepare("scratchpad", weights, given.layout, card).run(1).card)


def _view(rng: random.Random, given: Subject, weights: Weights, what: str) -> None:
    """The cards between two loops, and the last stage inside each."""
    assert given.program is not None
    inspector = Session(with_weights(given, weights), given.program(rng), max_steps=LOOPS).inspector
    for loop in range(LOOPS):
        if inspector.has_ended(loop):
            break
        card = as_tensor(inspector.timeline.served(loop).card)
        inside = inspector.stages(loop)
        _compare(given, weights, card, torch.from_numpy(inside.stages[-1]), f"view, loop {loop + 1}: {what}",
                 inside.columns.tolist())


def _prove(rng: random.Random, given: Subject, weights: Weights, what: str) -> None:
    """What is proven is so on cards of runs: these weights do what the machine's own do."""
    from punchcard.proof.prover import prove

    assert given.machine is not None
    allow(SECONDS_OF_PROOF)
    found = prove(given.machine, weights=weights, seconds=SECONDS_OF_QUERY)
    if not found.proven:
        return
    for _ in range(4):
        card = given.card(rng)
        for _ in range(2 * LOOPS):
            expected, result = given.weights.module(card), weights.module(card)
            apart = float((expected.double() - result.double()).abs().max())
            if not apart <= proven_apart(given.machine):
                raise Fault(f"proven, and a loop is off by {apart}: {what}")
            card = expected


ENGINES: Sequence[Door] = (*map(_engine, ("lowered", "lowered", "scratchpad", "auto")), _view)


def proven_apart(machine: Any) -> float:
    """By how much two models may differ that are both proven: bits not at all, real numbers by the bounds of both."""
    return float(sum(2 * machine.bound(function) for function in getattr(machine, "blocks", ())))


def with_weights(given: Subject, weights: Weights) -> Any:
    """A machine that runs these weights."""
    machine: Any = copy.copy(given.machine)
    machine.__dict__.pop("engine_cache", None)
    machine.weights = Weights.of(weights.module)
    return machine


def _compare(given: Subject, weights: Weights, card: Tensor, found: Tensor, what: str, columns: Any = EVERY_COLUMN,
             again: Callable[[Weights, Tensor], Tensor] | None = None) -> str:
    kind, apart = verdict(weights, card, found, given.tolerance, columns, again)
    if kind == "different":
        raise Fault(f"not the equation's card, off by {apart:g}: {what}")
    return kind


# The targets


def _turing(states: int, symbols: int, squares: int, precision: str = "float64") -> Subject:
    machine = turing_example().TuringMachine(states=states, symbols=symbols, squares=squares, precision=precision)
    language = machine.kind.languages[0]
    return subject(machine, lambda rng: language.assemble(random_turing_text(rng, states, symbols, squares)))


def _proven_fleq() -> Subject:
    machine = FleqMachine(functions=("add",), size=1, memory=4, instructions=4, range=8)
    text = ".range 8\n.data\na scalar {}\nb scalar {}\n.code\nx: a = add(a, b)\n b = add(a, a); if b <= 0 goto x\nhalt\n"
    language = machine.kind.languages[0]
    return subject(machine, lambda rng: language.assemble(text.format(rng.randint(-2, 2), rng.randint(-2, 2))), 1e-6)


ENGINE_SUBJECTS: Mapping[str, Callable[[], Subject]] = {
    **SUBJECTS,
    "two-layer, float16": lambda: subleq("two-layer", 4, 4, 5, "float16"),
    "two-layer, bfloat16": lambda: subleq("two-layer", 2, 3, 3, "bfloat16"),
    "one-layer, float32": lambda: subleq("one-layer", 3, 3, 4, "float32"),
    "own": lambda: _turing(3, 2, 8), "own, float32": lambda: _turing(2, 3, 6, "float32"),
    "many columns": lambda: image(10, 600),
}
PROVEN_SUBJECTS: Mapping[str, Callable[[], Subject]] = {
    "two-layer": lambda: subleq("two-layer", 2, 2, 2, "float32"), "paper": lambda: subleq("paper", 2, 2, 2, "float32"),
    "one-layer": lambda: subleq("one-layer", 2, 2, 2, "float64"), "von Neumann": lambda: image(3, 5),
    "own": lambda: _turing(2, 2, 4), "FLEQ": _proven_fleq,
}


def target(door: str, name: str) -> str:
    """What a subject is called on the command line of the fuzzer."""
    return f"{door}-{name}".replace(",", "").replace(" ", "-")


def engines(name: str) -> object:
    """Changed weights of a subject, each through one engine or the view."""
    return partial(_begin, ENGINE_SUBJECTS[name], ENGINES)


def proofs(name: str) -> object:
    """Changed weights of a subject through the prover."""
    return partial(_begin, PROVEN_SUBJECTS[name], (_prove,))


def _begin(make: Callable[[], Subject], doors: Sequence[Door], folder: Path) -> Attempt:
    given = make()
    open_doors = [door for door in doors if given.machine is not None or door is not _view]

    def attempt(rng: random.Random) -> None:
        with np.errstate(all="ignore"), torch.no_grad():
            what, weights = changed(rng, given.weights)
            rng.choice(open_doors)(rng, given, weights, what)

    return attempt
