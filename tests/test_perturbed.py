"""Sound for any weights: with one weight changed, the lowered engine refuses, declines, or gives the equation's card.

With the right weights it gives that card after each of twenty thousand loops of random programs.
"""

from __future__ import annotations

import copy
import math
import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from punchcard.card.layout import Card, as_tensor
from punchcard.engines import Controls, EngineCache, prepare
from punchcard.errors import LoweringError
from punchcard.machines.riscv.languages.assembly.assembler import assemble
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.transformer.weights import LayerArrays, Weights
from tests.cases import soaked
from tests.perturbed import CHANGES, SUBJECTS, TINY, Change, Subject, compare, is_exact
from tests.random_programs import random_image
from tests.riscv_cases import extreme

pytestmark = pytest.mark.usefixtures("shared_code")

PERTURBED = {"operations": 16, "von Neumann": 5, "one-layer": 4, "FLEQ": 2, "RISC-V": 1}
FEW, MANY, SOME = 8, 400, 20
LONG = ("FLEQ, three-layer",)
"""Left to `make soak`: its loops take long to compile."""
LOOPS = 24
QUOTIENTS = """
        li   s0, {a}
        li   s1, {b}
        li   s2, {c}
again:  add  s0, s0, s2
        {quotient} t1, s0, s1
        {quotient} s1, s1, t1
        {quotient} t2, s0, t1
        {quotient} t3, s1, zero
        add  s1, s1, s2
        j    again
"""


def check(name: str, subject: Subject, seeds: range, loops: int, changes: Sequence[Change] = CHANGES) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in seeds:
        outcome = compare(subject, f"{name} {seed}", loops, changes)
        found[outcome.kind] += 1
        assert outcome.kind != "different", f"{name} {seed}: {outcome.what}"
    return found


@pytest.mark.parametrize("part", [2, soaked(1)])
@pytest.mark.parametrize("name", [
    soaked(name) if name == "RISC-V" else name for name in SUBJECTS if name not in LONG])
def test_one_weight_changed(name: str, part: int) -> None:
    """Bits exactly; real numbers within rounding. Where the equation itself rounds, its own error is allowed.

    Half of the changes; all of them in `make soak`.
    """
    found = check(name, SUBJECTS[name](), range(math.ceil(PERTURBED.get(name, FEW) / part)), LOOPS)
    assert found["rounded"] == 0, found
    if name not in ("one-layer", "painters", "FLEQ", "RISC-V"):  # these are always refused, always decline, or take long
        assert found["lowered"], "some loops were the engine's"


@pytest.mark.parametrize(("name", "seed"), [
    ("von Neumann", 1077),  # a row that settles lies in a word that is stored to
])
def test_what_was_different_once(name: str, seed: int) -> None:
    assert check(name, SUBJECTS[name](), range(seed, seed + 1), LOOPS)["lowered"]


@pytest.mark.soak
@pytest.mark.parametrize("name", SUBJECTS)
def test_many_weights_changed(name: str) -> None:
    count = SOME if name in ("RISC-V", *LONG) else MANY  # their loops take long to compile
    found = check(name, SUBJECTS[name](), range(1000, 1000 + count), 60)
    assert found["rounded"] <= max(1, count // 100), found


@pytest.mark.parametrize("count", [1, soaked(SOME)])
def test_quotients_with_one_weight_changed(count: int) -> None:
    """Most layers of this machine are those of a long division, of which the engine makes one division of words."""
    machine = RiscvMachine(memory=32, multiply=True)

    def card(rng: random.Random) -> Tensor:
        a, b, c = (rng.choice((extreme(rng), rng.getrandbits(rng.randint(1, 32)))) for _ in range(3))
        text = QUOTIENTS.format(a=a, b=b, c=c, quotient=rng.choice(("div", "divu", "rem", "remu")))
        return machine.punch(assemble(text, "quotients.s"))

    check("quotients", Subject(machine.weights, machine.layout, card), range(count), LOOPS)


# Tiny weights

TINY_LOOPS = 4


@pytest.mark.parametrize(("name", "first"), [("Turing", 42), ("operations", 10), ("von Neumann", 30)])
def test_tiny_weights(name: str, first: int) -> None:
    """Constants that vanish beside a bit in float64, and not where the bit is cancelled first: each has one in five."""
    assert check(name, SUBJECTS[name](), range(first, first + 5), TINY_LOOPS, TINY)["rounded"] == 0


@pytest.mark.soak
@pytest.mark.parametrize("name", SUBJECTS)
def test_many_tiny_weights(name: str) -> None:
    count = SOME if name in ("RISC-V", "FLEQ", *LONG) else MANY // 4
    assert check(name, SUBJECTS[name](), range(1000, 1000 + count), TINY_LOOPS, TINY)["rounded"] == 0


@pytest.mark.parametrize("tiny", [1e-18, -(2.0**-63), 2.0**-40, 2.0**-149])
def test_a_tiny_offset_does_not_vanish(tiny: float) -> None:
    """The row is 0 after the second layer. Its units are ±1, so that a sum in float64 would lose the offset."""
    machine = VonNeumannMachine(word_bits=3, memory=5)
    card = machine.punch(random_image(random.Random(0), 3, 5))
    model = copy.deepcopy(machine.model)
    with torch.no_grad():
        model.layers[1].get_parameter("b2")[34] = tiny
        expected = model(card)
    assert expected[34].abs().min() == abs(tiny)
    with pytest.raises(LoweringError, match=r"layer 2, row 34: a sum of up to \d.* may be rounded: 24 significand"):
        prepare("lowered", model, machine.layout, card).run(1)
    assert torch.equal(as_tensor(prepare("auto", model, machine.layout, card).run(1).card), expected)


def test_the_judge_asks_for_every_order() -> None:
    """2^24 + 1 - 2^24: right in one order, rounded in another."""
    def summed(*terms: float) -> tuple[Weights, Tensor]:
        w2 = np.array([[0, 0, 0], terms], dtype=np.float32)
        none = np.zeros((0, 1, 2), dtype=np.float32)
        layer = LayerArrays(none, none, np.zeros((0, 2, 2), dtype=np.float32), np.zeros(0, dtype=np.float32),
                            np.array([[1, 0]] * 3, dtype=np.float32), np.zeros((3, 1), dtype=np.float32), w2,
                            np.zeros((2, 1), dtype=np.float32))
        return Weights(2, "float32", [layer]), torch.tensor([[1.0], [0.0]])

    assert is_exact(*summed(2.0**23, 2.0**22, -(2.0**22)))
    assert not is_exact(*summed(2.0**24, 1.0, -(2.0**24)))
    assert not is_exact(*summed(2.0**24, -(2.0**24), 1.0)), "the equation gives 1 without a rounding"


# The right weights

LONG_RUNS = {"two-layer": 5_000, "two-layer, float32": 5_000, "paper": 5_000, "von Neumann": 4_000, "Turing": 1_000}
PART = 250
"""Loops of a program, compared together: a model takes many cards at once."""


@pytest.mark.parametrize("part", [4, soaked(1)])
@pytest.mark.parametrize("name", LONG_RUNS)
def test_random_programs_bit_for_bit(name: str, part: int) -> None:
    """A quarter of the loops; all of them in `make soak`."""
    subject, rng, kept, made = SUBJECTS[name](), random.Random(name), EngineCache(), 0
    model = subject.weights.module
    while made < LONG_RUNS[name] / part:
        cards: list[Tensor] = [subject.card(rng)]

        def watch(_: int, now: Card, cards: list[Tensor] = cards) -> None:
            cards.append(as_tensor(now))

        prepare("lowered", subject.weights, subject.layout, cards[0], cache=kept).run(PART, Controls(watch=watch))
        with torch.no_grad():
            expected = model(torch.stack(cards[:-1]))
        assert torch.equal(torch.stack(cards[1:]), expected)
        made += len(cards) - 1


def test_there_are_twenty_thousand() -> None:
    assert sum(LONG_RUNS.values()) >= 20_000
