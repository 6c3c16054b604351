"""Barron's rate, shown: the error of a sum of m sigmoids of a vector falls like 1 / sqrt(m), whatever the dimension.

    python -m benchmarks.barron [--entries 5] [--seeds 32]

The function is the bell e^(-|x|^2 / 2) on the cube [-1, 1]^d. Its Fourier transform is a normal density, so

    f(x) = E cos(w . x)  over w from N(0, 1)^d,       C = E sup over the cube of |w . x| = d sqrt(2 / pi).

Three sums of m sigmoids are compared, by the root of the mean square and by the largest error on fresh points:

    sampled         Barron's proof as an algorithm: w is drawn, and a threshold t, and the mean of m such steps is taken. It
                    needs no fit. The proof bounds its mean square by (2 C)^2 / m.
    greedy          out of a random dictionary, the sigmoid that helps most is added, one after the other, and all
                    coefficients are solved for again
    least squares   `fit_vector`, what a block is made of: random sigmoids, all coefficients at once

The theorem promises the first rate. The others do better, since this function is much smoother than it asks for.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np

from punchcard.machines.fleq.blocks.sigmoids import VectorSum
from punchcard.machines.fleq.blocks.vector_fit import fit_vector, random_sigmoids
from punchcard.machines.fleq.functions import Array, sigmoid

TERMS = (16, 32, 64, 128, 256, 512, 1024)
POINTS = 4000
DICTIONARY = 2000
TAU = 2.0**9
"""Above sqrt(m) ln m for all m up to 4,096."""
Sum = Callable[[int, int, int], VectorSum]


def bell(x: Array) -> Array:
    return np.asarray(np.exp(-np.sum(x**2, axis=1) / 2))


def barron_constant(entries: int) -> float:
    """C of the bell on the cube: the mean of sum_i |w_i|."""
    return entries * math.sqrt(2 / math.pi)


def sampled(entries: int, terms: int, seed: int) -> VectorSum:
    """The mean of m random steps, each as a sigmoid of slope tau, which the theorem wants at sqrt(m) ln m or more.

    With z = w . x / |w|, |w| the sum of the |w_i|, and g(z) = cos(|w| z): g(z) - g(0) is the integral over t from -1 to 1
    of g'(t) times 1[z >= t] for t > 0, and times 1[z >= t] - 1 for t < 0. So 2 g'(t) times that step, at a random t, has
    the mean cos(w . x) - 1.
    """
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((terms, entries))
    size = np.abs(w).sum(axis=1)
    t = rng.uniform(-1, 1, terms)
    slope = -size * np.sin(size * t)
    coefficients = 2 * slope / terms
    constant = 1.0 - float(coefficients[t < 0].sum())
    return VectorSum(TAU * w / size[:, None], -TAU * t, coefficients, constant, -1.0, 1.0)


def greedy(entries: int, terms: int, seed: int, count: int = POINTS, dictionary: int = DICTIONARY) -> VectorSum:
    """Orthogonal matching pursuit: the column nearest the residual joins, and the residual is made orthogonal to it."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-1, 1, (count, entries))
    directions, biases = random_sigmoids(rng, entries, -1.0, 1.0, dictionary, 1.0)
    columns = sigmoid(points @ directions.T + biases)
    basis = np.full((count, 1), 1 / math.sqrt(count))
    residual = bell(points) - bell(points).mean()
    left = columns - columns.mean(axis=0)
    chosen: list[int] = []
    for _ in range(terms):
        sizes = np.linalg.norm(left, axis=0)
        gains = np.abs(residual @ left) / np.where(sizes > 1e-9, sizes, np.inf)
        gains[chosen] = 0.0
        best = int(np.argmax(gains))
        chosen.append(best)
        q = left[:, best] / sizes[best]
        q -= basis @ (basis.T @ q)
        q /= np.linalg.norm(q)
        basis = np.column_stack([basis, q])
        residual = residual - q * (q @ residual)
        left = left - np.outer(q, q @ left)
    matrix = np.column_stack([np.ones(count), columns[:, chosen]])
    solution = np.linalg.lstsq(matrix, bell(points), rcond=1e-12)[0]
    coefficients = np.asarray(solution[1:], dtype=np.float64)
    return VectorSum(directions[chosen], biases[chosen], coefficients, float(solution[0]), -1.0, 1.0)


def least_squares(entries: int, terms: int, seed: int) -> VectorSum:
    return fit_vector(bell, entries, -1.0, 1.0, terms, seed=seed)


def errors(make: Sum, entries: int, terms: int, seeds: int, points: int = POINTS) -> tuple[float, float]:
    """The root of the mean square, and the largest error, over fresh points; the root mean square of them over seeds."""
    fresh = np.random.default_rng(12345).uniform(-1, 1, (points, entries))
    off = [np.abs(make(entries, terms, seed)(fresh) - bell(fresh)) for seed in range(seeds)]
    return math.sqrt(float(np.mean(np.square(off)))), math.sqrt(float(np.mean([e.max() ** 2 for e in off])))


def slope(terms: tuple[int, ...], found: list[float]) -> float:
    """The exponent p of error = constant m^p, by least squares of the logarithms."""
    return float(np.polyfit(np.log(terms), np.log(found), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=32)
    options = parser.parse_args()
    d, bound = options.entries, 2 * barron_constant(options.entries)
    print(f"d = {d}, C = {bound / 2:.2f}; root mean square and largest error, {options.seeds} seeds")
    tried: dict[str, tuple[Sum, tuple[int, ...], int]] = {
        "sampled": (sampled, TERMS, options.seeds), "greedy": (greedy, TERMS[:4], 2),
        "least squares": (least_squares, TERMS[:5], 2)}
    for name, (make, terms, seeds) in tried.items():
        found = [errors(make, d, m, seeds) for m in terms]
        for m, (mean, most) in zip(terms, found, strict=True):
            print(f"{name:<14}{m:>6}  {mean:.2e}  {most:.2e}   bound {bound / math.sqrt(m):.2e}", flush=True)
        print(f"{name:<14} slope {slope(terms, [mean for mean, _ in found]):.2f} (mean square), "
              f"{slope(terms, [most for _, most in found]):.2f} (largest)")


if __name__ == "__main__":
    main()
