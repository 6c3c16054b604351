"""Learn a step size: the gradient goes through ten steps of gradient descent, 101 loops of the transformer."""

from __future__ import annotations

from pathlib import Path

import torch

import punchcard

STEPS = 5

program = punchcard.load(Path(__file__).parent / "sgd.fleq", punchcard.FleqProgram)
layer = punchcard.build(program, heads=3).as_layer(program, inputs=["rate"], outputs=["w"], checkpoint=False)
POINTS, LABELS = (torch.tensor(program.values[name]) for name in ("X", "Y"))


def learn(steps: int = STEPS) -> tuple[list[float], float]:
    """The losses after ten steps with the step size so far, and the last step size."""
    rate = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([rate], lr=0.2)
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = (layer(rate) @ POINTS - LABELS).square().mean()
        torch.autograd.backward(loss)
        losses.append(float(loss.detach()))
        optimiser.step()
    return losses, float(rate.detach())


if __name__ == "__main__":
    losses, rate = learn()
    print(f"loss after ten steps: {losses[0]:.4f} with the step size 0.1, {losses[-1]:.4f} as learned; now {rate:.3f}")
