"""XOR by backpropagation on a looped transformer. Two epochs are shown, in which the loss falls; 60 learn it.

    python examples/learn_xor.py
    python examples/learn_xor.py 60
"""

from __future__ import annotations

import sys

import punchcard

POINTS = [[0, 0], [0, 1], [1, 0], [1, 1]]
LABELS = [0, 1, 1, 0]
FEW = 20
"""Up to so many epochs an engine that need not compile is done sooner."""


def main(epochs: int) -> None:
    engine = "scratchpad" if epochs <= FEW else None
    learned = punchcard.learn(POINTS, LABELS, hidden=3, activation="tanh", epochs=epochs, rate=0.3, seed=9, engine=engine)
    print(f"loss {learned.initial_loss:.6f} before, {learned.losses[-1]:.6f} after {epochs} epochs, {learned.loops:,} loops")
    found = punchcard.predict(learned, POINTS, machine=learned.machine, engine="scratchpad")
    for point, value in zip(POINTS, found.values, strict=True):
        print(point, f"{value:.4f}")
    print(f"largest difference of a weight from NumPy: {learned.error:.1e}")


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
    main(numbers[0] if numbers else 2)
