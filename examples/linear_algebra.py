"""Linear algebra on one transformer: a system of equations, an inverse and an eigenvector, on the same weights.

    python examples/linear_algebra.py
"""

from __future__ import annotations

import numpy as np

import punchcard
from punchcard.machines.fleq.functions import STANDARD_FUNCTIONS


def main() -> None:
    a = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 1.0], [0.5, 1.0, 2.0]])
    b = np.array([1.0, 2.0, 3.0])
    machine = punchcard.FleqMachine(functions=STANDARD_FUNCTIONS, size=3, memory=48, instructions=64, range=4, heads=3)
    print(machine)

    inverse = punchcard.linalg.inverse(a, machine=machine, check=False)
    print("inverse, by Newton's iteration")
    print(inverse.value)
    print(f"{inverse.loops} loops, error {inverse.error:.1e}, against NumPy {inverse.machine_error:.1e}")

    x = punchcard.linalg.solve(a, b, 3, machine=machine, check=False)
    print(f"solution after 3 sweeps of Gauss-Seidel {x.value}, {x.loops} loops, error {x.error:.1e}")

    leading = punchcard.linalg.power_iteration(a, 3, machine=machine, check=False)
    print(f"leading eigenvalue after 3 iterations {leading.eigenvalue:.4f}, NumPy {np.linalg.eigvalsh(a)[-1]:.4f}")

    print("the program of the inverse:")
    print(inverse.text)


if __name__ == "__main__":
    main()
