"""Derivatives of three programs that run in the transformer, against torch.autograd on the plain algorithms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

import punchcard

HERE = Path(__file__).parent


def inverse(a: Tensor) -> Tensor:
    """The algorithm of newton.fleq: X = X (2 I - A X) from 0.03 A^T, twelve times."""
    x, two = 0.03 * a.T, 2 * torch.eye(2, dtype=a.dtype)
    for _ in range(12):
        x = x @ (two - a @ x)
    return x


def eigenvalue(a: Tensor) -> Tensor:
    """The algorithm of eigenvalue.fleq: power iteration, each time with a step towards norm 1."""
    u = torch.tensor([0.9, 0.4], dtype=a.dtype)
    for _ in range(5):
        u = a.T @ u
        u = u * (1.5 - 0.5 * u @ u)
    for _ in range(2):
        u = u * (1.5 - 0.5 * u @ u)
    return u @ (a.T @ u)


def sgd(points: Tensor, rate: Tensor, steps: int = 10) -> Tensor:
    """The algorithm of sgd.fleq: a step for each column of the points."""
    labels = program("sgd.fleq").values["Y"][0]
    w = torch.zeros(2, dtype=points.dtype)
    for x, y in zip(points.T[:steps], labels[:steps], strict=True):
        w = w - rate * (x @ w - y) * x
    return w


def program(name: str) -> punchcard.FleqProgram:
    return punchcard.load(HERE / name, punchcard.FleqProgram)


def compare(
    name: str, inputs: list[str], outputs: list[str], plain: Callable[..., Tensor], *, engine: str = "auto", **values: float,
) -> float:
    """The largest difference between the two gradients of a fixed combination of the outputs.

    These runs are short, so what their loops compute is kept and not made again: checkpoint=False.
    """
    run = program(name).with_values(values)
    layer = punchcard.build(run, heads=3).as_layer(run, inputs=inputs, outputs=outputs, engine=engine, checkpoint=False)
    shapes = {v.name: v.shape for v in run.variables}
    given = []
    for name in inputs:
        value = torch.tensor(run.values[name])
        given.append((value.reshape(()) if shapes[name].columns == 1 else value).requires_grad_())
    gradients = []
    for function in (layer, plain):
        found = function(*given)
        mix = torch.arange(1.0, found.numel() + 1, dtype=torch.float64).reshape(found.shape)
        gradients.append(torch.autograd.grad((mix * found).sum(), given))
    return max(float((mine - theirs).abs().max()) for mine, theirs in zip(*gradients, strict=True))


if __name__ == "__main__":
    print(f"inverse     {compare('../newton.fleq', ['A'], ['X'], inverse):.1e}")
    print(f"eigenvalue  {compare('eigenvalue.fleq', ['A'], ['value'], eigenvalue):.1e}")
    print(f"ten steps   {compare('sgd.fleq', ['X', 'rate'], ['w'], sgd):.1e}")
