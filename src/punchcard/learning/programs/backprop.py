"""Backpropagation for one point, as FLEQ instructions: the paper's program, corrected, for any depth.

With mul(a, b) = a^T b, layer k is stored as the matrix V_k with a row for each input and a column for each unit:

    z_k = V_k^T a_(k-1) + c_k          a_k = activation(z_k), the output z_K stays as it is
    e   = dJ / dz_K                    d_K = rate e: scaled once here, every gradient after it carries the rate
    r   = V_k d_k                      d_(k-1) = activation'(z_(k-1)) * r, entry by entry
    V_k = V_k - a_(k-1) d_k^T          c_k = c_k - d_k

The paper scales each gradient; d_K is linear in all of them, so once is enough. It makes the derivative entry by entry
in a loop over scalars; hadamard does it in one instruction. Errors go back through V_k before V_k is changed.
"""

from __future__ import annotations

import numpy as np

from punchcard.learning.programs.network import Memory, Network
from punchcard.learning.programs.rules import HiddenLayer, OutputLayer
from punchcard.machines.fleq.builder import Builder, Place
from punchcard.machines.fleq.functions import LOSS_SLOPES


def declare(p: Builder, network: Network, weights: Memory, *, weights_last: bool = False) -> None:
    """Every variable that the instructions of this module may name; a program leaves out those that it does not."""
    shapes = {"e": (network.outputs, 1), "et": (1, network.outputs), "a0": (network.sizes[0], 1),
              "a0t": (1, network.sizes[0])}
    for k, inputs, units in network.layers():
        shapes |= {f"{name}{k}": (units, 1) for name in ("z", "a", "t", "s", "d", "c", "H")}
        shapes |= {f"{name}{k}t": (1, units) for name in ("z", "a", "d")}
        shapes |= {f"{name}{k}": (inputs, units) for name in ("V", "g", "G")}
        shapes[f"U{k}"] = (units, inputs)
    if network.loss.choice is not None:
        shapes |= {"v": (2, 1), "w": (2, 1)}
        for name, value in (("upper", np.eye(1, 2)), ("lower", np.eye(1, 2, 1)),
                            ("choice", np.eye(len(LOSS_SLOPES), 1, -network.loss.choice))):
            p.matrix(name, value)
    later = weights if weights_last else {}
    for name, shape in shapes.items():
        if name not in later:
            p.matrix(name, weights.get(name), shape)
    for name, value in later.items():
        p.matrix(name, value)


def forward(p: Builder, network: Network, store: Place | None = None) -> None:
    """From the point in a0 to the output in z_K; or to `store`, by the instruction that is labelled so."""
    for k, _, units in network.layers():
        z = p[f"z{k}"]
        sums = [("mul", f"V{k}", f"a{k - 1}"), *([("add", f"z{k}", f"c{k}")] if network.has_bias_vector(k) else [])]
        for number, (function, left, right) in enumerate(sums, start=1):
            last = store is not None and k == network.depth and number == len(sums)
            if last:
                p.label("store")
            p.call(function, left, right, into=store if last else z)
        if k < network.depth:
            _activate(p, network, k, units)


def output_error(p: Builder, network: Network) -> None:
    """From the output and the label to d_K. The instruction `label` walks through the labels."""
    loss, e = network.loss, p["e"]
    if loss.choice is not None:
        _chosen_slope(p, f"z{network.depth}")
        p.mul("rate", e, into=f"d{network.depth}")
        return
    output = OutputLayer(p[f"z{network.depth}"], e, p["units"])
    if loss.before is not None:
        loss.before(p, output)
    p.label("label")
    p.sub(output.o if loss.before is None else e, p["Y"][0], into=e)
    if loss.after is not None:
        loss.after(p, output)
    if loss.entrywise is not None and network.outputs == 1:
        p.call(loss.entrywise.name, e, into=e)
    elif loss.entrywise is not None:
        _entry_by_entry(p, loss.entrywise.name, "e", "e", network.outputs)
    p.mul("rate", e, into=f"d{network.depth}")


def _chosen_slope(p: Builder, output: str) -> None:
    """e = loss_slope((output, label), choice): the indicator in the memory says of which loss."""
    p.mul("upper", output, into="v")
    p.label("label")
    p.mul("lower", p["Y"][0], into="w")
    p.add("v", "w", into="v")
    p.call("loss_slope", "v", "choice", into="e")


def backward(p: Builder, network: Network, *, at_once: bool) -> None:
    """From d_K to the changed weights; with `at_once`, to the sums G_k and H_k of the gradients."""
    for k, inputs, units in reversed(list(network.layers())):
        if k > 1:
            p.transpose(f"V{k}", into=f"U{k}")
            p.mul(f"U{k}", f"d{k}", into=f"d{k - 1}")
        made = k > 1 and network.activation.entrywise is not None  # a_(k-1)^T is there already
        below = _row(p, f"a{k - 1}", inputs, made=made)
        p.mul(below, _row(p, f"d{k}", units), into=f"g{k}")
        changes = [("V", "G", "g"), *([("c", "H", "d")] if network.has_bias_vector(k) else [])]
        for weights, total, change in changes:
            changed = f"{total}{k}" if at_once else f"{weights}{k}"
            p.call("add" if at_once else "sub", changed, f"{change}{k}", into=changed)
        if k > 1:
            network.activation.backward(p, _hidden(p, k - 1))
            p.hadamard(f"s{k - 1}", f"d{k - 1}", into=f"d{k - 1}")


def apply_sums(p: Builder, network: Network) -> None:
    """Change the weights by the sums of the gradients, and clear the sums."""
    for k, _, _ in network.layers():
        for weights, total in (("V", "G"), ("c", "H")) if network.has_bias_vector(k) else (("V", "G"),):
            p.sub(f"{weights}{k}", f"{total}{k}", into=f"{weights}{k}")
            p.sub(f"{total}{k}", f"{total}{k}", into=f"{total}{k}")


def _activate(p: Builder, network: Network, layer: int, units: int) -> None:
    activation = network.activation
    if activation.entrywise is not None:
        _entry_by_entry(p, activation.entrywise.name, f"z{layer}", f"a{layer}", units)
    elif activation.forward is not None:
        activation.forward(p, _hidden(p, layer))


def _hidden(p: Builder, layer: int) -> HiddenLayer:
    return HiddenLayer(**{name: p[f"{name}{layer}"] for name in ("z", "a", "s", "t", "ones")})


def _entry_by_entry(p: Builder, function: str, source: str, target: str, rows: int) -> None:
    """Apply a scalar function to a vector through `source`t and `target`t, its entries side by side."""
    entries = p.transpose(source, into=f"{source}t")
    results = p[f"{target}t"]
    for i in range(rows):
        p.call(function, entries[i], into=results[i])
    p.transpose(results, into=target)


def _row(p: Builder, name: str, entries: int, *, made: bool = False) -> Place:
    """A vector as a row; a scalar is both, and a row that was made before is taken as it is."""
    if entries == 1:
        return p[name]
    return p[f"{name}t"] if made else p.transpose(name, into=f"{name}t")
