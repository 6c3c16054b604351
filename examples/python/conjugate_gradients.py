"""A x = b by conjugate gradients, for a symmetric positive definite A."""

import numpy as np

import punchcard as pc


@pc.program
def conjugate_gradients(A, b, tolerance=1e-3):
    x = 0 * b
    r = b
    p = r
    rr = r @ r
    while rr > tolerance:
        Ap = A @ p
        step = rr / (p @ Ap)
        x = x + step * p
        r = r - step * Ap
        new = r @ r
        p = r + new / rr * p
        rr = new
    return x


def example():
    random = np.random.default_rng(1)
    B = random.uniform(-1, 1, (4, 4))
    return B @ B.T / 4 + np.eye(4), random.uniform(-1, 1, 4)


if __name__ == "__main__":
    print(conjugate_gradients.run(*example()))
