"""The equation in NumPy against the equation in torch: every machine and design, in all columns, some, and patched.

Loops restricted to some columns are compared in `test_view_session.py`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

import punchcard
from punchcard.card.formats import AnyArray
from punchcard.transformer import equation
from punchcard.transformer.equation import Output
from tests.cases import EXAMPLES, soaked
from tests.export_runs import CASES

LOOPS = 3
SLOW = ("fleq three-layer", "riscv two-layer")


@pytest.fixture(params=[soaked(name) if name in SLOW else name for name in CASES])
def case(request: pytest.FixtureRequest) -> Case:
    """A machine, a card in the middle of a run, and the stages of the loop from there, by torch."""
    file, options = CASES[request.param]
    program = punchcard.load(EXAMPLES / file)
    machine = punchcard.build(program, **options)
    card = machine.punch(program)
    for _ in range(LOOPS):
        card = machine.model(card)
    return Case(machine, card, machine.model.stages(card))


class Case(NamedTuple):
    machine: Any
    card: Tensor
    stages: list[Tensor]

    def same(self, ours: AnyArray, theirs: Tensor, rounding: Tensor | float = 1e-9) -> bool:
        """Bit for bit for machines of bits, whose sums are exact, and within rounding else."""
        if self.machine.needed_bits:
            return np.array_equal(ours, theirs.numpy())
        return bool((abs(torch.from_numpy(ours) - theirs) <= rounding + 1e-9 * abs(theirs)).all())


def test_numpy_gives_what_torch_gives(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """One test, since building a large machine takes longer than all that is compared here."""
    all_columns(case)
    attention(case, monkeypatch)
    patches(case)


def all_columns(case: Case) -> None:
    ours = equation.stages(case.machine.weights.layers, case.card.numpy())
    assert len(ours) == len(case.stages) == 2 * len(case.machine.weights.layers) + 1
    assert all(case.same(*pair) for pair in zip(ours, case.stages, strict=True))
    assert torch.equal(case.stages[-1], case.machine.model(case.card))


def attention(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of all columns and of some; and the same heads with few scores at a time."""
    part = slice(1, 4)
    for number, (layer, module) in enumerate(zip(case.machine.weights.layers, case.machine.model.layers, strict=True)):
        card = case.stages[2 * number]
        for head in range(layer.heads):
            weights = module.attention(card, head)
            assert case.same(equation.attention(layer, head, card.numpy())[1], weights)
            assert case.same(equation.attention(layer, head, card.numpy(), part)[1], weights[:, part])
            added = equation.head_output(layer, head, card.numpy())
            assert case.same(added, module.value[head] @ card @ weights)
            with monkeypatch.context() as few:
                few.setattr(equation, "SCORES_AT_ONCE", 5 * card.shape[1])
                assert case.same(equation.head_output(layer, head, card.numpy()), torch.from_numpy(added))


def patches(case: Case) -> None:
    """A head, the hidden units or the change of a layer replaced, against torch with the same numbers put in."""
    layers, start = case.machine.weights.layers, case.card.numpy()
    outputs: dict[Output, AnyArray] = {}

    def note(output: Output, computed: AnyArray) -> AnyArray:
        return outputs.setdefault(output, computed)

    equation.stages(layers, start, note)
    generator = np.random.default_rng(7)
    for target in (list(outputs)[i] for i in generator.permutation(len(outputs))[:6]):
        other = generator.integers(-1, 2, outputs[target].shape).astype(start.dtype)
        ours = equation.stages(layers, start, partial(_replace, target, other))
        assert case.same(ours[2 * target.layer], case.stages[2 * target.layer])
        module, before = case.machine.model.layers[target.layer], case.stages[2 * target.layer]
        theirs, rounding = _patched(module, before, target, torch.from_numpy(other))
        assert case.same(ours[2 * target.layer + 2], theirs, rounding), target


def _replace(target: Output, other: AnyArray, output: Output, computed: AnyArray) -> AnyArray:
    return other if output == target else computed


def _patched(layer: Any, card: Tensor, target: Output, other: Tensor) -> tuple[Tensor, Tensor]:
    """A layer of torch with one of its outputs replaced, and how far another order of its sums may move each entry.

    Numbers that no run has may lie on the edge of a steep step, where the last bit of a sum decides between 0 and 1.
    """
    attended = card
    for head in range(layer.shape.heads):
        here = (target.part, target.number) == ("head", head)
        attended = attended + (other if here else layer.value[head] @ card @ layer.attention(card, head))
    hidden = other if target.part == "hidden" else torch.relu(layer.w1 @ attended + layer.b1)
    sizes = abs(layer.w2) @ (abs(layer.w1) @ abs(attended) + abs(layer.b1) if hidden is not other else abs(other))
    return (attended + (other if target.part == "change" else layer.w2 @ hidden + layer.b2),
            1e-9 + torch.finfo(card.dtype).eps * len(layer.w1) * sizes)
