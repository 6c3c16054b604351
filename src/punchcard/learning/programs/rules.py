"""Activations and losses, three ways each: the NumPy function, its derivative, and the FLEQ instructions for them.

Most need no approximation. The derivative of the logistic loss is one sigmoid, tanh(z) is 2 sigmoid(2 z) - 1, softplus'
is the sigmoid. What is left (softplus itself, the clipped error of Huber's loss) is a scalar function that a machine
has as a sum of sigmoids: an `Entrywise` function, called for one entry after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TypeAlias, TypeVar

import numpy as np

from punchcard.errors import ProgramError, did_you_mean
from punchcard.machines.fleq.builder import Builder, Place
from punchcard.machines.fleq.functions import LOSS_SLOPES, RELU, Function, same_shape, scalar_only, sigmoid
from punchcard.machines.fleq.isa import Array

Scalar: TypeAlias = Callable[[Array], Array]

STEP_SLOPE = 2.0**20
"""The slope of `step` between 0 and 2^-20, where it rises from 0 to 1."""


@dataclass(frozen=True)
class Entrywise:
    """A scalar function to be approximated by a sum of sigmoids; more of them are at its kinks, which have no derivative."""

    name: str
    value: Scalar
    kinks: tuple[float, ...] = ()

    def function(self, limit: float) -> Function:
        """Its declaration, for operands within ±limit."""
        return Function(self.name, 1, scalar_only, self.value, domain=(-limit, limit))


@dataclass(frozen=True)
class HiddenLayer:
    """The variables of a hidden layer: z, a, the slope s, t to keep things in, and ones, a vector of ones."""

    z: Place
    a: Place
    s: Place
    t: Place
    ones: Place


@dataclass(frozen=True)
class OutputLayer:
    """The variables of the output: o, the error e that becomes the loss's slope, and ones."""

    o: Place
    e: Place
    ones: Place


@dataclass(frozen=True)
class Activation:
    """An activation function: a = value(z), and its slope.

    `forward` writes instructions that make a from z, `backward` ones that make s, the slope, from z and a. With
    `entrywise`, a is made from z entry by entry instead. `formulas` are functions beyond the built-in ones that a
    feed-forward layer computes exactly.
    """

    name: str
    value: Scalar
    slope: Scalar
    backward: Callable[[Builder, HiddenLayer], object]
    forward: Callable[[Builder, HiddenLayer], object] | None = None
    entrywise: Entrywise | None = None
    formulas: tuple[Function, ...] = ()
    occurs: Callable[[Array], list[Array]] = field(default=lambda z: [])
    """Values that the instructions pass through and that may be larger than z, a and s: the range must hold them."""


@dataclass(frozen=True)
class Loss:
    """A loss function of the output o and the label y, and its derivative by o, with which backpropagation starts.

    `before` writes instructions that make e from the output o, before the label is subtracted from it; without it e is
    the output. `after` changes the difference. `link` turns an output into a prediction. `limit` is where Huber's loss
    bends. With `choice` the program calls `loss_slope`, and an indicator in its memory chooses the loss, by that number.
    """

    name: str
    value: Callable[[Array, Array], Array]
    slope: Callable[[Array, Array], Array]
    before: Callable[[Builder, OutputLayer], object] | None = None
    after: Callable[[Builder, OutputLayer], object] | None = None
    entrywise: Entrywise | None = None
    link: Scalar | None = None
    labels: tuple[float, float] | None = None
    limit: float | None = None
    choice: int | None = None
    occurs: Callable[[Array, Array], list[Array]] = field(default=lambda o, y: [])


def softplus(z: Array) -> Array:
    """log(1 + e^z), without overflow."""
    return np.asarray(np.logaddexp(0.0, z))


def step(z: Array) -> Array:
    """0 up to 0, 1 from 2^-20 on, a ramp between: the slope of relu."""
    return np.clip(STEP_SLOPE * z, 0.0, 1.0)


STEP = Function("step", 1, same_shape, step)


def _tanh(p: Builder, x: Place, work: Place, ones: Place, into: Place) -> None:
    """2 sigmoid(2 x) - 1."""
    p.add(x, x, into=work)
    p.sigmoid(work, into=work)
    p.add(work, work, into=work)
    p.sub(work, ones, into=into)


def _sigmoid_slope(p: Builder, u: HiddenLayer) -> None:
    """a (1 - a)."""
    p.sub(u.ones, u.a, into=u.s)
    p.hadamard(u.a, u.s, into=u.s)


def _tanh_slope(p: Builder, u: HiddenLayer) -> None:
    """1 - a^2."""
    p.hadamard(u.a, u.a, into=u.s)
    p.sub(u.ones, u.s, into=u.s)


def _silu(p: Builder, u: HiddenLayer) -> None:
    p.sigmoid(u.z, into=u.t)
    p.hadamard(u.z, u.t, into=u.a)


def _silu_slope(p: Builder, u: HiddenLayer) -> None:
    """t + a (1 - t), with t = sigmoid(z)."""
    p.sub(u.ones, u.t, into=u.s)
    p.hadamard(u.a, u.s, into=u.s)
    p.add(u.t, u.s, into=u.s)


ACTIVATIONS: Mapping[str, Activation] = {a.name: a for a in (
    Activation(
        "sigmoid", sigmoid, lambda z: sigmoid(z) * (1.0 - sigmoid(z)), _sigmoid_slope,
        forward=lambda p, u: p.sigmoid(u.z, into=u.a),
    ),
    Activation(
        "tanh", np.tanh, lambda z: 1.0 - np.tanh(z) ** 2, _tanh_slope,
        forward=lambda p, u: _tanh(p, u.z, u.t, u.ones, u.a),
        occurs=lambda z: [2.0 * z, 2.0 * sigmoid(2.0 * z)],
    ),
    Activation(
        "silu", lambda z: z * sigmoid(z), lambda z: sigmoid(z) * (1.0 + z * (1.0 - sigmoid(z))), _silu_slope,
        forward=_silu,
    ),
    Activation(
        "softplus", softplus, sigmoid, lambda p, u: p.sigmoid(u.z, into=u.s),
        entrywise=Entrywise("softplus", softplus),
    ),
    Activation(
        "relu", lambda z: np.maximum(z, 0.0), step, lambda p, u: p.step(u.z, into=u.s),
        forward=lambda p, u: p.relu(u.z, into=u.a),
        formulas=(RELU, STEP),
    ),
)}


def _clip(limit: float, e: Array) -> Array:
    return np.clip(e, -limit, limit)


@lru_cache(maxsize=16)  # so that its derivative is fitted once, also for a model that was saved and is loaded
def huber(limit: float = 1.0) -> Loss:
    """e^2 / 2 up to the limit, a straight line beyond it; the derivative is the error, clipped: two kinks."""
    if not 0 < limit < np.inf:
        raise ProgramError(f"huber limit {limit:g}: it must be positive")
    clip = partial(_clip, limit)
    return Loss(
        "huber",
        lambda o, y: np.where(np.abs(o - y) <= limit, (o - y) ** 2 / 2, limit * (np.abs(o - y) - limit / 2)),
        lambda o, y: clip(o - y),
        entrywise=Entrywise("clip", clip, kinks=(-limit, limit)), limit=limit,
    )


LOSSES: Mapping[str, Loss] = {loss.name: loss for loss in (
    Loss("squared", lambda o, y: (o - y) ** 2 / 2, lambda o, y: o - y),
    huber(),
    Loss(
        "logcosh", lambda o, y: np.abs(o - y) + np.log1p(np.exp(-2.0 * np.abs(o - y))) - np.log(2.0),
        lambda o, y: np.tanh(o - y),
        after=lambda p, v: _tanh(p, v.e, v.e, v.ones, v.e),
        occurs=lambda o, y: [2.0 * (o - y), 2.0 * sigmoid(2.0 * (o - y))],
    ),
    Loss(
        "logistic", lambda o, y: softplus(o) - y * o, lambda o, y: sigmoid(o) - y,
        before=lambda p, v: p.sigmoid(v.o, into=v.e),
        link=sigmoid, labels=(0.0, 1.0),
    ),
)}


def by_indicator(loss: str) -> Loss:
    """The loss of this name, chosen by an indicator in the data: the program and the model are the same for every loss."""
    rule = named("loss", loss, LOSSES)
    return Loss(rule.name, rule.value, rule.slope, link=rule.link, labels=rule.labels, limit=rule.limit,
                choice=list(LOSS_SLOPES).index(rule.name))


Rule = TypeVar("Rule", Activation, Loss)


def named(what: str, rule: str | Rule, known: Mapping[str, Rule]) -> Rule:
    """An activation or a loss by its name; one of the user's own is taken as it is."""
    if not isinstance(rule, str):
        return rule
    if rule not in known:
        raise ProgramError(f"unknown {what} {rule!r}{did_you_mean(rule, known)}: there are {', '.join(known)}")
    return known[rule]
