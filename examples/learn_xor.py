"""XOR by backpropagation on a looped transformer: 400 epochs learn it, the first 2 are shown unless you ask for more.

    python examples/learn_xor.py
    python examples/learn_xor.py 400
"""

from __future__ import annotations

import sys

import punchcard

POINTS = [[0, 0], [0, 1], [1, 0], [1, 1]]
LABELS = [0, 1, 1, 0]
FEW = 50
"""Up to so many epochs the dense engine, the equation itself, is fast enough."""


def main(epochs: int) -> None:
    engine = "dense" if epochs <= FEW else None
    learned = punchcard.learn(POINTS, LABELS, hidden=4, epochs=epochs, rate=1.0, engine=engine)
    print(f"loss {learned.initial_loss:.6f} before, {learned.losses[-1]:.6f} after {epochs} epochs, {learned.loops:,} loops")
    found = punchcard.predict(learned, POINTS, engine="dense")
    for point, value in zip(POINTS, found.values, strict=True):
        print(point, f"{value:.4f}")
    print(f"largest difference of a weight from NumPy: {learned.error:.1e}")


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
    main(numbers[0] if numbers else 2)
