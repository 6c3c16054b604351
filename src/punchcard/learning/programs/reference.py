"""The same algorithms in NumPy, float64: what a run on the transformer is compared with, and what its range is chosen by.

Written apart from the programs, with points in rows and weights as a user sees them; only the order of the steps is the
same, since point by point the order matters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from punchcard.errors import ProgramError
from punchcard.learning.programs.network import Network, Weights
from punchcard.machines.fleq.isa import Array

MOST = 2.0**40
"""Values beyond this are divergence: no number format of a machine would hold them with any accuracy."""
TOLD_EVERY = 1000
"""Points between two reports of progress."""


@dataclass
class Largest:
    """The largest magnitude of anything that a program holds during a run."""

    value: float = 1.0
    grows: str = "learning diverges"
    advice: str = "use a lower rate, or scaled data"

    def see(self, *arrays: Array) -> None:
        for array in arrays:
            largest = float(np.abs(array).max(initial=0.0))
            # NaN too is refused: no comparison with it is true
            if not largest <= MOST:
                raise ProgramError(f"{self.grows}: a value reached {largest:g}; {self.advice}")
            self.value = max(self.value, largest)


@dataclass(frozen=True)
class Reference:
    """The weights after each epoch, and the largest value that occurred."""

    history: list[Weights]
    largest: float


def descend(
    network: Network, weights: Weights, features: Array, labels: Array, *, epochs: int, rate: float, at_once: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Reference:
    """Gradient descent point by point, or with `at_once` by the sum over all points after each epoch.

    `progress` is called now and then with the number of finished epochs.
    """
    seen = Largest()
    seen.see(features, labels, np.array(rate), *weights.values())
    current = {name: value.copy() for name, value in weights.items()}
    history: list[Weights] = []
    for _ in range(epochs):
        total = {name: np.zeros_like(value) for name, value in current.items()}
        for number, (x, y) in enumerate(zip(features, labels, strict=True)):
            if progress is not None and number % TOLD_EVERY == 0:
                progress(len(history))
            steps = _steps(network, current, x, y, rate, seen)
            for name, step in steps.items():
                if at_once:
                    total[name] += step
                else:
                    current[name] -= step
            seen.see(*(total if at_once else current).values())
        if at_once:
            for name, step in total.items():
                current[name] -= step
            seen.see(*current.values())
        history.append({name: value.copy() for name, value in current.items()})
    return Reference(history, seen.value)


def outputs(network: Network, weights: Weights, features: Array) -> tuple[Array, float]:
    """Predictions for points in rows, and the largest value on the way."""
    seen = Largest(grows="the model's values are too large", advice=f"a machine holds values up to {MOST:g}")
    seen.see(features, *weights.values())
    outputs = _forward(network, weights, features, seen)[0][-1]
    return (outputs if network.loss.link is None else network.loss.link(outputs)), seen.value


def _forward(network: Network, weights: Weights, x: Array, seen: Largest) -> tuple[list[Array], list[Array]]:
    """z_1 .. z_K and a_0 .. a_(K-1), seen with the values that the instructions pass through."""
    zs, activations = network.forward(weights, x)
    seen.see(*zs, *activations)
    for k, z in enumerate(zs, start=1):
        if network.has_bias_vector(k):  # it is added after the product; the first layer's bias is part of it
            seen.see(z - weights[f"b{k}"])
        if k < network.depth:
            seen.see(*network.activation.occurs(z))
    return zs, activations


def _steps(network: Network, weights: Weights, x: Array, y: Array, rate: float, seen: Largest) -> Weights:
    """rate times the gradient of one point's loss."""
    zs, activations = _forward(network, weights, x, seen)
    slope = network.loss.slope(zs[-1], y)
    delta = rate * slope
    seen.see(slope, delta, zs[-1] - y if network.loss.before is None else slope, *network.loss.occurs(zs[-1], y))
    steps: Weights = {}
    for k in range(network.depth, 0, -1):
        steps[f"W{k}"] = np.outer(activations[k - 1], delta)
        if network.bias:
            steps[f"b{k}"] = delta
        seen.see(steps[f"W{k}"])
        if k > 1:
            back = weights[f"W{k}"] @ delta
            bend = network.activation.slope(zs[k - 2])
            delta = bend * back
            seen.see(back, bend, delta)
    return steps
