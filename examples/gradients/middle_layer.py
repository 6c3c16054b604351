"""A small network whose middle layer is a FLEQ program. It learns exclusive or, as the same network in plain torch does."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

import punchcard

STEPS = 12
POINTS = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
LABELS = torch.tensor([[0.0], [1.0], [1.0], [0.0]], dtype=torch.float64)

program = punchcard.load(Path(__file__).parent / "cell.fleq", punchcard.FleqProgram)


class PlainCell(nn.Module):
    """The algorithm of cell.fleq."""

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros_like(x)
        for _ in range(2):
            h = torch.sigmoid(h @ torch.tensor(program.values["W"]) + x)
        return h


def learn(middle: nn.Module, steps: int = STEPS) -> list[float]:
    """The losses of a network with this middle layer, from the same first weights."""
    torch.manual_seed(3)
    network = nn.Sequential(nn.Linear(2, 3), middle, nn.Linear(3, 1)).double()
    optimiser = torch.optim.Adam(network.parameters(), lr=0.3)
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = nn.functional.mse_loss(network(POINTS), LABELS)
        torch.autograd.backward(loss)
        losses.append(float(loss.detach()))
        optimiser.step()
    return losses


if __name__ == "__main__":
    layer = punchcard.build(program, heads=3).as_layer(program, inputs=["x"], outputs=["h"], checkpoint=False)
    ours, plain = learn(layer), learn(PlainCell())
    print(f"loss {ours[0]:.4f} before, {ours[-1]:.4f} after {STEPS - 1} steps")
    print(f"losses differ by at most {max(abs(a - b) for a, b in zip(ours, plain, strict=True)):.1e} from plain torch's")
