"""What is to be learned, before it is: the data checked and scaled, the first weights, NumPy's run, and the program."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from punchcard.arguments import checked
from punchcard.budget import require
from punchcard.errors import PunchcardError
from punchcard.learning.model import Scaling, as_matrix
from punchcard.learning.programs.network import Network, Weights
from punchcard.learning.programs.reference import Reference, descend
from punchcard.learning.programs.rules import ACTIVATIONS, LOSSES, Activation, Loss, named
from punchcard.learning.programs.sgd import Written, learning_program
from punchcard.learning.session import range_for
from punchcard.machines.fleq.designs.base import check_room
from punchcard.machines.fleq.isa import Array, FleqProgram

BYTES_OF_ARRAY = 200
"""What NumPy adds to the numbers of an array, and Python to a name and to a dictionary."""


class Task(TypedDict, total=False):
    """What is learned, and how.

    hidden         units of the hidden layers: a number, or a list. Default: none, a linear model
    epochs         passes over the data, default: 20
    rate           step size, default: 0.1
    loss           "squared" (default), "huber", "logcosh" or "logistic" (labels 0 and 1), or a Loss
    activation     a name in ACTIVATIONS, default: "sigmoid"; or an Activation
    bias           True: a constant feature for the first layer, and a bias vector for each further layer
    batch          "point": update the weights after each point, in the order of the data; "all": once per epoch, with the
                   sum of all gradients
    standardize    scale features to mean 0 and standard deviation 1; labels too, unless the loss is logistic
    weights        initial weights. Default: zeros for a linear model, else uniform in ±1 / sqrt(inputs)
    seed           seed of the initial weights
    range          every value must stay within ±range. Default: the power of two above all values that occur in NumPy
    """

    hidden: int | Sequence[int]
    epochs: int
    rate: float
    loss: str | Loss
    activation: str | Activation
    bias: bool
    batch: Literal["point", "all"]
    standardize: bool
    weights: Mapping[str, ArrayLike] | None
    seed: int
    range: float | None


@dataclass(frozen=True)
class LearningPlan:
    """All that a training run needs, except a machine. `x` and `y` have a row for each point, scaled."""

    network: Network
    x: Array = field(repr=False)
    y: Array = field(repr=False)
    inputs: Scaling | None
    outputs: Scaling | None
    first: Weights = field(repr=False)
    epochs: int
    reference: Reference = field(repr=False)
    written: Written = field(repr=False)

    @property
    def program(self) -> FleqProgram:
        return self.written.program


@checked
def plan(
    features: ArrayLike, labels: ArrayLike, *, rehearsing: Callable[[int], None] | None = None, **task: Unpack[Task]
) -> LearningPlan:
    """Plan a training run: write the program that learns from these points, which is `plan(...).program`.

    `rehearsing` is called from time to time with the number of epochs that NumPy has finished.
    """
    x, y = as_matrix(features, "features"), as_matrix(labels, "labels")
    loss = named("loss", task.get("loss", "squared"), LOSSES)
    activation = named("activation", task.get("activation", "sigmoid"), ACTIVATIONS)
    network = Network(x.shape[1], _widths(task.get("hidden", ())), y.shape[1], activation, loss, task.get("bias", True))
    epochs, rate, batch = task.get("epochs", 20), task.get("rate", 0.1), task.get("batch", "point")
    _check(x, y, loss, epochs, rate, batch, task.get("seed", 0))
    _check_memory(network, len(x), epochs)
    scaled = task.get("standardize", False)
    inputs, outputs = Scaling.of(x) if scaled else None, Scaling.of(y) if scaled and loss.labels is None else None
    x, y = (inputs.apply(x) if inputs else x), (outputs.apply(y) if outputs else y)

    given = task.get("weights")
    first = network.initial(task.get("seed", 0)) if given is None else network.checked(given)
    at_once = batch == "all"
    reference = descend(network, first, x, y, epochs=epochs, rate=rate, at_once=at_once, progress=rehearsing)
    limit = range_for(reference.largest, task.get("range"))
    written = learning_program(network, network.to_memory(first), network.inputs(x), y.T, epochs=epochs, rate=rate,
                               limit=limit, at_once=at_once)
    return LearningPlan(network, x, y, inputs, outputs, first, epochs, reference, written)


def _widths(hidden: int | Sequence[int]) -> tuple[int, ...]:
    """Hidden layers as a tuple; 0 is none."""
    if isinstance(hidden, int | np.integer):
        return (int(hidden),) if hidden else ()
    return tuple(int(width) for width in hidden)


def _check_memory(network: Network, points: int, epochs: int) -> None:
    """Refuse what is too large before anything is computed: of every epoch the weights are kept, NumPy's and the run's."""
    weights = [math.prod(shape) for shape in network.shapes().values()]
    each = sum(8 * count + BYTES_OF_ARRAY for count in weights) + BYTES_OF_ARRAY
    require(2 * epochs * each, f"keeping the {sum(weights)} weights after each of {epochs} epochs")
    check_room(network.size, points + sum(network.sizes))


def _check(x: Array, y: Array, loss: Loss, epochs: int, rate: float, batch: str, seed: int) -> None:
    if len(x) != len(y):
        raise PunchcardError(f"{len(x)} points and {len(y)} labels: there must be a label for each point")
    if epochs < 1:
        raise PunchcardError(f"epochs={epochs}: it must be 1 or more")
    if seed < 0:
        raise PunchcardError(f"seed={seed}: it must be 0 or more")
    if not np.isfinite(rate) or rate <= 0:
        raise PunchcardError(f"rate={rate}: it must be positive and finite")
    if batch not in ("point", "all"):
        raise PunchcardError(f"batch={batch!r}: it is 'point' or 'all'")
    if loss.labels is not None and not np.isin(y, loss.labels).all():
        wrong = y[~np.isin(y, loss.labels)][0]
        raise PunchcardError(f"label {wrong:g}: the {loss.name} loss takes labels {loss.labels[0]:g} and {loss.labels[1]:g}")
