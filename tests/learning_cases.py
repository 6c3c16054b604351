"""Gradient descent once more, by torch.autograd: nothing here knows the project's derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from punchcard.machines.fleq.isa import Array, FleqProgram
from punchcard.machines.fleq.oracle import run

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": torch.sigmoid, "tanh": torch.tanh, "silu": functional.silu, "softplus": functional.softplus,
    "relu": torch.relu,
}
LOSSES: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "squared": lambda o, y: ((o - y) ** 2).sum() / 2,
    "huber": lambda o, y: functional.huber_loss(o, y, reduction="sum"),
    "logistic": lambda o, y: functional.binary_cross_entropy_with_logits(o, y, reduction="sum"),
    "logcosh": lambda o, y: torch.log(torch.cosh(o - y)).sum(),
}
Weights = dict[str, Array]


def outputs(weights: Mapping[str, Tensor], x: Tensor, activation: str) -> Tensor:
    depth = max(int(name[1:]) for name in weights)
    for k in range(1, depth + 1):
        x = x @ weights[f"W{k}"]
        if f"b{k}" in weights:
            x = x + weights[f"b{k}"]
        if k < depth:
            x = ACTIVATIONS[activation](x)
    return x


def torch_descend(
    first: Mapping[str, Array], features: Array, labels: Array, *, epochs: int, rate: float, activation: str = "sigmoid",
    loss: str = "squared", at_once: bool = False,
) -> tuple[list[Weights], list[float]]:
    """The weights and the mean loss after each epoch, by autograd and torch's own optimiser, in float64."""
    weights = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in first.items()}
    points, targets = torch.tensor(features), torch.tensor(labels).reshape(len(labels), -1)
    optimiser = torch.optim.SGD(list(weights.values()), lr=rate)
    parts = [slice(None)] if at_once else [slice(i, i + 1) for i in range(len(points))]
    history, losses = [], []
    for _ in range(epochs):
        for part in parts:
            optimiser.zero_grad()
            LOSSES[loss](outputs(weights, points[part], activation), targets[part]).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        history.append({name: value.detach().numpy().copy() for name, value in weights.items()})
        with torch.no_grad():
            losses.append(float(LOSSES[loss](outputs(weights, points, activation), targets)) / len(points))
    return history, losses


def distance(found: Mapping[str, Array], wanted: Mapping[str, Array]) -> float:
    """The largest difference of two sets of weights, over the largest weight."""
    assert found.keys() == wanted.keys()
    largest = max(float(np.abs(value).max()) for value in wanted.values())
    return max(float(np.abs(found[name] - value).max()) for name, value in wanted.items()) / largest


def interpreted(program: FleqProgram, max_steps: int = 1_000_000) -> tuple[dict[str, Array], int]:
    """The memory at the end by the plain interpreter, the range checked, and the instructions executed."""
    outcome = run(program, max_steps)
    assert outcome.halted
    return program.named(outcome.state.memory), outcome.steps


def xor() -> tuple[Array, Array]:
    return np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0.0, 1.0, 1.0, 0.0])


def spiral(points: int = 16, turns: float = 0.75) -> tuple[Array, Array]:
    """Two arms that wind around each other, `points` on each, one after the other."""
    t = np.arange(1, points + 1) / points
    angle = 2 * np.pi * turns * t
    arm = np.stack([t * np.cos(angle), t * np.sin(angle)], axis=1)
    return np.stack([arm, -arm], axis=1).reshape(-1, 2), np.tile([0.0, 1.0], points)
