"""Learn the penalty of a ridge regression that is solved inside the transformer.

The penalty is chosen so that the weights do well on points that the regression has not seen. Its gradient goes through
Newton's iteration, 49 loops of the transformer.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

import punchcard

STEPS = 6
UNSEEN = torch.tensor([[0.7, 0.4], [-0.5, -0.6], [0.3, 0.5], [-0.6, -0.3]], dtype=torch.float64)
LABELS = torch.tensor([0.7, -0.5, 0.4, -0.6], dtype=torch.float64)

program = punchcard.load(Path(__file__).parent / "penalty.fleq", punchcard.FleqProgram)
machine = punchcard.build(program, heads=3)
layer = machine.as_layer(program, inputs=["P"], outputs=["w"], engine="scratchpad", checkpoint=False)


def unseen_loss(w: Tensor) -> Tensor:
    error: Tensor = UNSEEN @ w - LABELS
    return error.square().mean()


def solved(penalty: Tensor) -> Tensor:
    """The same weights by a direct solver."""
    x, y = (torch.tensor(program.values[name]) for name in ("X", "y"))
    found: Tensor = torch.linalg.solve(x.T @ x + penalty * torch.eye(2, dtype=torch.float64), x.T @ y)
    return found[:, 0]


def learn(steps: int = STEPS) -> tuple[list[float], float]:
    """The losses, and the largest difference of a gradient from that through the direct solver."""
    logarithm = torch.tensor(0.05, dtype=torch.float64).log().requires_grad_()
    optimiser = torch.optim.Adam([logarithm], lr=0.5)
    losses, difference = [], 0.0
    for _ in range(steps):
        optimiser.zero_grad()
        loss = unseen_loss(layer(logarithm.exp() * torch.eye(2, dtype=torch.float64)))
        torch.autograd.backward(loss)
        (expected,) = torch.autograd.grad(unseen_loss(solved(logarithm.exp())), logarithm)
        assert logarithm.grad is not None
        difference = max(difference, float((logarithm.grad - expected).abs()))
        losses.append(float(loss.detach()))
        optimiser.step()
    return losses, difference


if __name__ == "__main__":
    losses, difference = learn()
    print(f"loss on unseen points: {losses[0]:.5f} with the penalty 0.05, {losses[-1]:.5f} after {STEPS - 1} steps")
    print(f"gradients differ by at most {difference:.1e} from those through a direct solver")
