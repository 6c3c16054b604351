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

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from punchcard.errors import ProgramError
from punchcard.learning.programs.backprop import apply_sums, backward, forward, output_error, variables
from punchcard.learning.programs.network import Memory, Network
from punchcard.machines.fleq.common import RADIX, Counter
from punchcard.machines.fleq.functions import Function
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.text.assembler import assemble

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Listing:
    """A program, and how many loops it makes: for one point, and in all, with the one that reads the halt."""

    program: FleqProgram
    loops_per_point: int
    loops: int


def learning_program(
    network: Network, memory: Memory, inputs: Array, labels: Array, *, epochs: int, rate: float, limit: float,
    at_once: bool = False,
) -> Listing:
    """`epochs` passes over the columns of `inputs` and `labels`.

    `memory` holds the first weights (`Network.to_memory`), `limit` is the range. With `at_once` the weights change once
    after each pass, by the sum of the gradients: the formula in the paper's text, where its program goes point by point.
    """
    step = [*forward(network), *output_error(network), *backward(network, at_once=at_once)]
    walk = [*_advance("load", network), "incr_pointer(label.b); goto load"]
    point = [*_load(network), *step, *walk]
    update = apply_sums(network) if at_once else []
    rewind = ["done: reset_pointer(load.a, X)", *_rewind_flag(network), "reset_pointer(label.b, Y)", *update]
    if limit < 1:
        raise ProgramError(f"range {limit:g}: it must be 1 or more, since flags are 0 and 1")
    counter = Counter("n", epochs, radix=RADIX if limit >= RADIX - 1 else 2)
    code = [*point, *rewind, *_labelled("epoch", counter.again("load")), "halt"]

    written = variables(network, [*step, *update, *point[:1]])
    values: dict[str, Array] = {
        **_data(network, inputs), "Y": labels, "rate": rate * np.eye(network.outputs), "one": np.ones((1, 1)),
        "zero": np.zeros((1, 1)), "minus_one": np.full((1, 1), -1.0), "minus_two": np.full((1, 1), -2.0),
        "units": np.ones((network.outputs, 1)), **_ones(network),
        **{name: np.zeros(shape) for name, shape in written.items()}, **memory,
        **{f"n{i}": np.full((1, 1), 0.0 - digit) for i, digit in enumerate(counter.digits)},
    }
    per_epoch = len(inputs.T) * len(point) + 1 + len(rewind)
    loops = epochs * per_epoch + counter.steps + 1
    return Listing(_program(code, values, network, limit), len(point), loops)


def prediction_program(network: Network, memory: Memory, inputs: Array, *, limit: float) -> Listing:
    """The outputs for the columns of `inputs`, in the columns of P; of the logistic loss, their sigmoids."""
    *lines, last = forward(network)
    if network.loss.link is not None:
        lines, last = [*lines, last], f"P[0] = sigmoid(z{network.depth})"
    store = f"store: P[0] = {last.split(' = ')[1]}"
    point = [*_load(network), *lines, store, *_advance("load", network), "incr_pointer(store.c); goto load"]
    code = [*point, "done: halt"]
    written = variables(network, [*lines, *point[:1]])
    values: dict[str, Array] = {
        **_data(network, inputs), "P": np.zeros((network.outputs, len(inputs.T))), **_ones(network),
        **{name: np.zeros(shape) for name, shape in written.items()}, **memory,
    }
    return Listing(_program(code, values, network, limit), len(point), len(inputs.T) * len(point) + 2)


# Walking through the data


def _data(network: Network, inputs: Array) -> dict[str, Array]:
    """The points, and after them the column of zeros that ends the walk; the flags come with the constant feature."""
    data = {"X": inputs, "end": np.zeros((network.sizes[0], 1))}
    if not network.bias:
        data["more"] = np.append(np.ones(len(inputs.T)), 0.0)[None, :]
    return data


def _load(network: Network) -> list[str]:
    flag = "a0" if network.bias else "more[0]"
    return [f"load: a0 = add(X[0], end); if {flag} <= 0 goto done"]


def _advance(label: str, network: Network) -> list[str]:
    return [f"incr_pointer({label}.a)", *([] if network.bias else [f"incr_pointer({label}.flag)"])]


def _rewind_flag(network: Network) -> list[str]:
    return [] if network.bias else ["reset_pointer(load.flag, more)"]


# Text


def _ones(network: Network) -> dict[str, Array]:
    return {f"ones{k}": np.ones((units, 1)) for k, _, units in network.layers()}


def _functions(network: Network, limit: float) -> dict[str, Function]:
    found = {f.name: f for f in network.activation.formulas} if network.hidden else {}
    rules = (network.activation if network.hidden else None, network.loss)
    fitted = [rule.entrywise.function(limit) for rule in rules if rule is not None and rule.entrywise is not None]
    return found | {f.name: f for f in fitted}


def _program(code: list[str], values: Mapping[str, Array], network: Network, limit: float) -> FleqProgram:
    """The program of these lines, with the variables that they name."""
    words = set("".join(c if c.isalnum() or c == "_" else " " for c in " ".join(code)).split())
    used = {name: value for name, value in values.items() if name in words}
    data = [f"{name:<9} matrix {value.shape[0]}x{value.shape[1]}" for name, value in used.items()]
    text = "\n".join([f".range {float(limit)!r}", ".data", *data, ".code", *map(_line, code)])
    return replace(assemble(text, functions=_functions(network, limit)), values=used)


def _labelled(label: str, lines: list[str]) -> list[str]:
    return [f"{label}: {lines[0]}", *lines[1:]]


def _line(code: str) -> str:
    label, colon, statement = code.rpartition(": ")
    return f"{label + colon:<8}{statement}"
