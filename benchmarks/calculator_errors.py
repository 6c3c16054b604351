"""Errors of the calculator next to their bounds: single operations, machines of other sizes, and random expressions.

    python benchmarks/calculator_errors.py [--seed 0] [--trials 100]
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Mapping
from typing import Any

import punchcard

PAPER = "sqrt(1/((a+b-c)*d))/100"
OPERANDS = {"a": 3, "b": 2, "c": 1, "d": 0.5}
OPERATIONS: tuple[tuple[str, float, float], ...] = (
    ("x * y", 1e-6, 1e6), ("x / y", 1e-6, 1e6), ("inverse(x)", 1e-6, 1e6), ("sqrt(x)", 1e-6, 1e6), ("x^5", 0.01, 100),
    ("exp(x)", 0.001, 20), ("exp(-x)", 0.001, 20), ("log(x)", 1e-6, 1e6), ("sin(x)", 0.01, 100), ("cos(x)", 0.01, 100),
    ("tanh(x)", 0.01, 100), ("x^1.5", 0.01, 100), ("2^x", 0.01, 20), ("x^y", 0.1, 10), ("min(x, y)", 1e-6, 1e6),
)
MACHINES: tuple[dict[str, Any], ...] = (
    {}, {"design": "paper"}, {"heads": 2}, {"heads": 1}, {"terms": 32}, {"terms": 16}, {"terms": 16, "newton": 0},
    {"terms": 8}, {"terms": 8, "newton": 0}, {"newton": 1}, {"precision": "float32"},
)


def relative(result: punchcard.Calculation) -> tuple[float, float]:
    return result.error / abs(result.exact), result.bound / abs(result.exact)


def operations(rng: random.Random, trials: int) -> None:
    print("| operation | operands | largest error | its bound | largest error / bound | instructions |")
    print("|---|---|---|---|---|---|")
    for text, low, high in OPERATIONS:
        results = [punchcard.calc(text, draw(rng, text, low, high)) for _ in range(trials)]
        worst = max(results, key=lambda r: relative(r)[0])
        ratio = max(r.error / r.bound for r in results)
        steps = [r.steps for r in results]
        print(f"| `{text}` | {low:g} to {high:g} | {relative(worst)[0]:.1e} | {relative(worst)[1]:.1e} | {ratio:.2g} | "
              f"{min(steps)} to {max(steps)} |", flush=True)


def draw(rng: random.Random, text: str, low: float, high: float) -> Mapping[str, float]:
    """Operands evenly spread over the decades."""
    return {name: low * (high / low) ** rng.random() for name in "xy" if name in text.replace("exp", "")}


def machines() -> None:
    print("| machine | error | bound | instructions | seconds of CPU |")
    print("|---|---|---|---|---|")
    for options in MACHINES:
        begin = time.process_time()
        result = punchcard.calc(PAPER, OPERANDS, **options)
        seconds = time.process_time() - begin
        name = ", ".join(f"{key} {value}" for key, value in options.items()) or "standard"
        error, bound = relative(result)
        print(f"| {name} | {error:.1e} | {bound:.1e} | {result.steps} | {seconds:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=100)
    arguments = parser.parse_args()
    operations(random.Random(arguments.seed), arguments.trials)
    print()
    machines()


if __name__ == "__main__":
    main()
