"""Stochastic gradient descent as a FLEQ program that walks through the data by changing its own pointers.

    load:   a0 = add(X[0], end); if a0 <= 0 goto done       # the point; after the last one comes a column of zeros
            ...                                             # forward, backward (backprop.py)
    label:  e = sub(z1, Y[0])
            ...
            incr_pointer(load.a)
            incr_pointer(label.b); goto load
    done:   reset_pointer(load.a, X)
            reset_pointer(label.b, Y)
    epoch:  n0 = add(n0, one); if n0 <= 0 goto load
            halt

The paper counts the points from -D. A counter is a value like any other, so the range, and with it the error of
every product, would grow with the data. Here the constant feature, 1 in every point, is the flag: the column after the
last point is 0. Epochs are counted digit by digit (`Counter`). So the program's length depends on the network alone,
but for those digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from punchcard.errors import ProgramError
from punchcard.learning.programs.backprop import apply_sums, backward, declare, forward, output_error
from punchcard.learning.programs.network import Memory, Network
from punchcard.machines.fleq.builder import Builder
from punchcard.machines.fleq.counter import Counter, declare_constants, radix_within
from punchcard.machines.fleq.functions import Function
from punchcard.machines.fleq.isa import Array, FleqProgram


@dataclass(frozen=True)
class Written:
    """A program, and how many loops it makes: for one point, and in all, with the one that reads the halt."""

    program: FleqProgram
    loops_per_point: int
    loops: int


def learning_program(
    network: Network, memory: Memory, inputs: Array, labels: Array, *, epochs: int, rate: float, limit: float,
    at_once: bool = False,
) -> Written:
    """`epochs` passes over the columns of `inputs` and `labels`.

    `memory` holds the first weights (`Network.to_memory`), `limit` is the range. With `at_once` the weights change once
    after each pass, by the sum of the gradients: the formula in the paper's text, where its program goes point by point.
    """
    if limit < 1:
        raise ProgramError(f"range {limit:g}: it must be 1 or more, since flags are 0 and 1")
    p = Builder(_functions(network, limit))
    _declare_data(p, network, inputs)
    p.matrix("Y", labels)
    p.matrix("rate", rate * np.eye(network.outputs))
    declare_constants(p)
    p.matrix("units", np.ones((network.outputs, 1)))
    _declare_ones(p, network)
    declare(p, network, memory)
    counter = Counter(p, "n", epochs, radix=radix_within(limit))

    _load(p, network)
    forward(p, network)
    output_error(p, network)
    backward(p, network, at_once=at_once)
    _advance(p, network)
    p.incr_pointer("label", "b", goto="load")
    point = p.here
    p.label("done")
    p.reset_pointer("load", "a", "X")
    if not network.bias:
        p.reset_pointer("load", "flag", "more")
    p.reset_pointer("label", "b", "Y")
    if at_once:
        apply_sums(p, network)
    per_epoch = len(inputs.T) * point + 1 + p.here - point
    p.label("epoch")
    counter.again("load")
    return Written(p.program(limit, only_used=True), point, epochs * per_epoch + counter.steps + 1)


def prediction_program(network: Network, memory: Memory, inputs: Array, *, limit: float) -> Written:
    """The outputs for the columns of `inputs`, in the columns of P; for the logistic loss, their sigmoids."""
    p = Builder(_functions(network, limit))
    _declare_data(p, network, inputs)
    results = p.matrix("P", shape=(network.outputs, len(inputs.T)))
    _declare_ones(p, network)
    declare(p, network, memory, weights_last=True)

    _load(p, network)
    if network.loss.link is None:
        forward(p, network, store=results[0])
    else:
        forward(p, network)
        p.label("store")
        p.sigmoid(f"z{network.depth}", into=results[0])
    _advance(p, network)
    p.incr_pointer("store", "c", goto="load")
    point = p.here
    p.label("done")
    return Written(p.program(limit, only_used=True), point, len(inputs.T) * point + 2)


def _declare_data(p: Builder, network: Network, inputs: Array) -> None:
    """The points, and after them the column of zeros that ends the walk; the flags come with the constant feature."""
    p.matrix("X", inputs)
    p.vector("end", network.sizes[0])
    if not network.bias:
        p.matrix("more", [np.append(np.ones(len(inputs.T)), 0.0)])


def _declare_ones(p: Builder, network: Network) -> None:
    for k, _, units in network.layers():
        p.matrix(f"ones{k}", np.ones((units, 1)))


def _load(p: Builder, network: Network) -> None:
    """Copy the next point; after the last one continue to `done`."""
    p.label("load")
    p.add(p["X"][0], "end", into="a0", goto="done", if_leq="a0" if network.bias else p["more"][0])


def _advance(p: Builder, network: Network) -> None:
    p.incr_pointer("load", "a")
    if not network.bias:
        p.incr_pointer("load", "flag")


def _functions(network: Network, limit: float) -> list[Function]:
    """The functions that the network calls beyond the built-in ones."""
    fitted = [network.activation.entrywise, network.loss.entrywise] if network.hidden else [network.loss.entrywise]
    return [*(network.activation.formulas if network.hidden else ()),
            *(rule.function(limit) for rule in fitted if rule is not None)]
