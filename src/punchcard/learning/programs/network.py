"""What is learned: layers of weights, their shapes and names, and where the biases are.

The first layer's bias is the weight of a constant feature 1, the first row of its matrix. Later layers have bias
vectors, as in the paper's backpropagation. A linear model is a network without a hidden layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from punchcard.errors import ProgramError
from punchcard.learning.programs.rules import ACTIVATIONS, LOSSES, Activation, Loss
from punchcard.machines.fleq.functions import LOSS_SLOPES
from punchcard.machines.fleq.isa import Array

Weights: TypeAlias = dict[str, Array]
"""What a user sees: W1 (features by units), b1, W2, b2, ...; an output is x W1 + b1."""
Memory: TypeAlias = dict[str, Array]
"""What a program holds: V1 (constant and features by units), V2, c2, V3, c3, ..., all matrices."""


@dataclass(frozen=True)
class Network:
    """Features, hidden widths and outputs; the activation of hidden units; the loss; whether there are biases."""

    features: int
    hidden: tuple[int, ...] = ()
    outputs: int = 1
    activation: Activation = ACTIVATIONS["sigmoid"]
    loss: Loss = LOSSES["squared"]
    bias: bool = True

    def __post_init__(self) -> None:
        if self.loss.choice is not None and self.outputs != 1:
            raise ProgramError(f"{self.outputs} outputs and a loss that an indicator chooses: that is for one output")
        for what, width in (("features", self.features), ("outputs", self.outputs), *(("hidden", h) for h in self.hidden)):
            if width < 1:
                raise ProgramError(f"{what}: {width}: a layer needs at least 1 unit")

    def __repr__(self) -> str:
        widths = "-".join(map(str, (self.features, *self.hidden, self.outputs)))
        units = f", {self.activation.name} units" * bool(self.hidden)
        return f"<Network {widths}{units}, {self.loss.name} loss{', no bias' * (not self.bias)}>"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Rows of the operands, layer by layer: the inputs with the constant, the hidden units, the outputs."""
        return (self.features + self.bias, *self.hidden, self.outputs)

    @property
    def depth(self) -> int:
        """Layers of weights."""
        return len(self.sizes) - 1

    @property
    def size(self) -> int:
        """d: the least size of a machine. An indicator has an entry for each loss."""
        return max(*self.sizes, len(LOSS_SLOPES) if self.loss.choice is not None else 1)

    def layers(self) -> Iterator[tuple[int, int, int]]:
        """(number, inputs, units) of each layer of weights, from 1."""
        return ((k, *pair) for k, pair in enumerate(pairwise(self.sizes), start=1))

    def has_bias_vector(self, layer: int) -> bool:
        return self.bias and layer > 1

    def inputs(self, features: Array) -> Array:
        """Points as columns, with the constant 1 above the features."""
        if not self.bias:
            return np.ascontiguousarray(features.T)
        return np.vstack([np.ones(len(features)), features.T])

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The names and shapes of the weights that a user sees."""
        found: dict[str, tuple[int, ...]] = {}
        widths = (self.features, *self.hidden, self.outputs)
        for k, (rows, units) in enumerate(pairwise(widths), start=1):
            found[f"W{k}"] = (rows, units)
            if self.bias:
                found[f"b{k}"] = (units,)
        return found

    def initial(self, seed: int) -> Weights:
        """Zeros for a linear model; else uniform within ±1 / sqrt(inputs of the layer), biases too."""
        shapes = self.shapes()
        if not self.hidden:
            return {name: np.zeros(shape) for name, shape in shapes.items()}
        generator = np.random.default_rng(seed)
        return {name: generator.uniform(-1.0, 1.0, shape) / np.sqrt(shapes[f"W{name[1:]}"][0])
                for name, shape in shapes.items()}

    def checked(self, weights: Mapping[str, object]) -> Weights:
        """Weights given by a user, with the right names and shapes."""
        shapes = self.shapes()
        for name in weights:
            if name not in shapes:
                raise ProgramError(f"weights {name!r}: the network has {', '.join(shapes)}")
        found: Weights = {}
        for name, shape in shapes.items():
            if name not in weights:
                raise ProgramError(f"weights without {name!r}: the network has {', '.join(shapes)}")
            value = np.array(weights[name], dtype=np.float64)
            if value.shape != shape:
                raise ProgramError(f"weights {name!r} have the shape {value.shape}: the network needs {shape}")
            if not np.isfinite(value).all():
                raise ProgramError(f"weights {name!r} hold NaN or infinity: they must be finite")
            found[name] = value
        return found

    def to_memory(self, weights: Weights) -> Memory:
        """The variables of a program that hold these weights."""
        memory: Memory = {}
        for k, _, _ in self.layers():
            w = weights[f"W{k}"]
            memory[f"V{k}"] = np.vstack([weights[f"b{k}"], w]) if self.bias and k == 1 else w.copy()
            if self.has_bias_vector(k):
                memory[f"c{k}"] = weights[f"b{k}"][:, None].copy()
        return memory

    def from_memory(self, memory: Mapping[str, Array]) -> Weights:
        """The weights that a program's variables hold."""
        weights: Weights = {}
        for k, _, _ in self.layers():
            first = self.bias and k == 1
            weights[f"W{k}"] = np.array(memory[f"V{k}"][1:] if first else memory[f"V{k}"])
            if self.bias:
                weights[f"b{k}"] = np.array(memory["V1"][0] if first else memory[f"c{k}"][:, 0])
        return weights

    def forward(self, weights: Weights, features: Array) -> tuple[list[Array], list[Array]]:
        """z_1 .. z_K and a_0 .. a_(K-1), in NumPy, for a point or for points in rows."""
        zs, activations = [], [features]
        for k, _, _ in self.layers():
            zs.append(activations[-1] @ weights[f"W{k}"] + (weights[f"b{k}"] if self.bias else 0.0))
            if k < self.depth:
                activations.append(self.activation.value(zs[-1]))
        return zs, activations

    def outputs_of(self, weights: Weights, features: Array) -> Array:
        """The outputs for points in rows, in NumPy."""
        return self.forward(weights, features)[0][-1]

    def mean_loss(self, weights: Weights, features: Array, labels: Array) -> float:
        """The loss, summed over the outputs and averaged over the points, in NumPy."""
        return float(self.loss.value(self.outputs_of(weights, features), labels).sum(axis=1).mean())
