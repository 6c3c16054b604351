"""Loops and errors of the linear algebra programs, as the tables in docs/linear-algebra.md.

    python benchmarks/linear_algebra_errors.py [--size 4] [--heads 3] [--precision float64] [--seeds 3]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import torch

import punchcard
from punchcard.linalg import Computed
from punchcard.machines.fleq.isa import Array


def matrices(d: int, seed: int) -> tuple[Array, Array, Array]:
    """A matrix of condition 10, a symmetric one whose second eigenvalue is half the first, and a dominant one."""
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(2))
    regular = left @ np.diag(np.geomspace(1, 0.1, d)) @ right
    vectors = rng.normal(size=(d, d))
    vectors[:, 0] = 1 + vectors[:, 0] / 2
    q = np.linalg.qr(vectors)[0]
    symmetric = q @ np.diag([3.0, *np.linspace(-1.5, 1.5, d - 1)]) @ q.T
    dominant = rng.uniform(-1, 1, (d, d)) + 2 * d * np.diag(rng.choice([-1, 1], d))
    return regular, (symmetric + symmetric.T) / 2, dominant


def calls(d: int, seed: int, precision: str) -> dict[str, Callable[..., Computed]]:
    """Each program on its matrix. In float32 power iteration would count on to 1e-10, which it cannot see."""
    regular, symmetric, dominant = matrices(d, seed)
    right = np.random.default_rng(seed).normal(size=d)
    iterations = 20 if precision == "float32" else None
    return {
        "inverse": lambda **how: punchcard.linalg.inverse(regular, **how),
        "power_iteration": lambda **how: punchcard.linalg.power_iteration(symmetric, iterations, **how),
        "qr": lambda **how: punchcard.linalg.qr(regular, **how),
        "lanczos": lambda **how: punchcard.linalg.lanczos(symmetric, d // 2, **how),
        "arnoldi": lambda **how: punchcard.linalg.arnoldi(regular, d // 2, **how),
        "solve": lambda **how: punchcard.linalg.solve(dominant, right, **how),
        "solve, not dominant": lambda **how: punchcard.linalg.solve(regular, right, **how),
        "least_squares": lambda **how: punchcard.linalg.least_squares(regular[:, : d // 2], right, **how),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=4)
    parser.add_argument("--heads", type=int, default=3)
    parser.add_argument("--precision", default="float64")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("| program | loops | instructions | memory columns | against NumPy | true error | residual |")
    print("|---|---|---|---|---|---|---|")
    for name in calls(2, 0, "float64"):
        found = [calls(arguments.size, seed, arguments.precision)[name](
            heads=arguments.heads, precision=arguments.precision, check=False) for seed in range(arguments.seeds)]
        loops = sorted({f.loops for f in found})
        counts = f"{loops[0]}{f' to {loops[-1]}' if len(loops) > 1 else ''}"
        errors = [max(values) for values in zip(*((f.machine_error, f.error, f.residual) for f in found), strict=True)]
        program = found[0].program
        print(f"| {name} | {counts} | {len(program.instructions)} | {program.columns} | "
              + " | ".join(f"{error:.1e}" for error in errors) + " |", flush=True)


if __name__ == "__main__":
    main()
