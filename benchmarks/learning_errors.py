"""Loops and errors of the learning programs, as the table in docs/learning.md: `python benchmarks/learning_errors.py`.

Points, labels and first weights are uniform in [-1, 1]. The error is the largest difference of any weight after any epoch
from the same algorithm in NumPy (float64), over the largest weight.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from punchcard.learning import learn

POINTS, EPOCHS, SEEDS = 3, 2, (0, 1)
Rules = dict[str, Any]
PROGRAMS: list[tuple[str, int, Rules]] = [
    ("linear, squared", 0, {}),
    ("linear, squared, all points at once", 0, {"batch": "all"}),
    ("linear, logistic", 0, {"loss": "logistic"}),
    ("linear, log cosh", 0, {"loss": "logcosh"}),
    ("linear, Huber, 128 sigmoids", 0, {"loss": "huber", "terms": 128}),
    ("one hidden layer, sigmoid", 1, {}),
    ("one hidden layer, tanh", 1, {"activation": "tanh"}),
    ("one hidden layer, SiLU", 1, {"activation": "silu"}),
    ("one hidden layer, ReLU", 1, {"activation": "relu"}),
    ("one hidden layer, softplus, 64 sigmoids", 1, {"activation": "softplus", "terms": 64}),
    ("two hidden layers, sigmoid", 2, {}),
]
MACHINES: list[tuple[str, Rules]] = [
    ("float64, 2 heads", {"heads": 2}), ("float64, 3 heads", {"heads": 3}),
    ("float32, 3 heads", {"heads": 3, "precision": "float32"}),
]


def measured(d: int, depth: int, rules: Rules, machine: Rules, engine: str) -> tuple[float, int, int, int]:
    """The largest error, instructions, loops for a point, loops for an epoch beside the points."""
    worst, counts = 0.0, (0, 0, 0)
    for seed in SEEDS:
        generator = np.random.default_rng(seed)
        widths = (d - 1, *[d] * depth, 1)
        weights = {}
        for k in range(1, len(widths)):
            weights[f"W{k}"] = generator.uniform(-1, 1, (widths[k - 1], widths[k]))
            weights[f"b{k}"] = generator.uniform(-1, 1, widths[k])
        x, y = generator.uniform(-1, 1, (POINTS, d - 1)), generator.uniform(-1, 1, POINTS)
        if rules.get("loss") == "logistic":
            y = (y > 0).astype(float)
        learned = learn(x, y, hidden=widths[1:-1], weights=weights, epochs=EPOCHS, rate=0.1, engine=engine, **rules,
                        **machine)
        worst = max(worst, learned.error)
        done, epoch = (dict(learned.program.labels)[name] for name in ("done", "epoch"))
        counts = len(learned.program.instructions), learned.loops_per_point, 2 + epoch - done
    return worst, *counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="dense")
    parser.add_argument("--sizes", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="programs whose names begin so")
    given = parser.parse_args()
    for d in given.sizes:
        print(f"\nd = {d}, {POINTS} points, {EPOCHS} epochs\n")
        print(f"| program | instructions | loops for a point | for an epoch | {' | '.join(name for name, _ in MACHINES)} |")
        print("|---" * (4 + len(MACHINES)) + "|")
        for name, depth, rules in PROGRAMS:
            if given.only and not name.startswith(tuple(given.only)):
                continue
            results = [measured(d, depth, rules, machine, given.engine) for _, machine in MACHINES]
            errors = " | ".join(f"{result[0]:.1e}" for result in results)
            print(f"| {name} | {results[0][1]} | {results[0][2]} | {results[0][3]} | {errors} |", flush=True)


if __name__ == "__main__":
    main()
