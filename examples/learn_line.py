"""A line through four points by gradient descent on a looped transformer, with the program that it runs.

    python examples/learn_line.py
"""

from __future__ import annotations

import punchcard

POINTS = [[-0.9], [-0.2], [0.3], [1.0]]
LABELS = [-0.35, 0.1, 0.4, 0.8]


def main() -> None:
    learned = punchcard.learn(POINTS, LABELS, epochs=3, rate=0.4, engine="dense")
    print(learned.text)
    for epoch, (weights, loss) in enumerate(zip(learned.history, learned.losses, strict=True), start=1):
        print(f"epoch {epoch}: y = {weights['W1'].item():.6f} x + {weights['b1'].item():.6f}, loss {loss:.6f}")
    print(f"{learned.loops} loops, {learned.loops_per_point} for a point; largest difference from NumPy {learned.error:.1e}")


if __name__ == "__main__":
    main()
