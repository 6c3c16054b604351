"""Whether a circuit explains a model: every weight that is not 0 by exactly one node, and no edge without a weight."""

from __future__ import annotations

from collections import Counter

import numpy as np

from punchcard.card.formats import AnyArray
from punchcard.errors import CircuitError
from punchcard.export.circuit import Circuit, CircuitEdge, CircuitNode
from punchcard.transformer.weights import NAMES, LayerArrays, Weights


def place_of(node: CircuitNode, tensor: str, indices: tuple[int, ...]) -> tuple[int, ...]:
    """The place of a node's weight in the layer's tensor."""
    number = node.number
    if node.kind == "head":
        return (number, *indices)
    return {"w1": (number, *indices), "b1": (number, 0), "w2": (*indices, number), "b2": (*indices, 0)}[tensor]


def claimed_weights(circuit: Circuit, like: Weights) -> Weights:
    """The weights that the nodes say, in the shapes of a model; a weight that two nodes claim is refused."""
    layers = [{name: np.zeros_like(getattr(layer, name)) for name in NAMES} for layer in like.layers]
    claimed: dict[tuple[int, str, tuple[int, ...]], str] = {}
    for node in circuit.nodes:
        if node.layer is None:
            continue
        if node.layer not in range(len(layers)):
            raise CircuitError(f"{node.id} is of layer {node.layer + 1}: the model has {len(layers)}")
        for tensor, entries in node.weights.items():
            for *indices, number in entries:
                place = place_of(node, tensor, tuple(int(i) for i in indices))
                _claim(layers[node.layer][tensor], place, float(number), node, tensor)
                other = claimed.setdefault((node.layer, tensor, place), node.id)
                if other != node.id:
                    raise CircuitError(f"layers.{node.layer}.{tensor}{list(place)} is claimed by {other} and by {node.id}")
    return Weights(like.width, like.dtype, [LayerArrays(**arrays) for arrays in layers])


def _claim(array: AnyArray, place: tuple[int, ...], number: float, node: CircuitNode, tensor: str) -> None:
    if len(place) != array.ndim or any(not 0 <= i < size for i, size in zip(place, array.shape, strict=True)):
        raise CircuitError(f"{node.id} has a weight at {tensor}{list(place)}: the model's is {array.shape}")
    if number == 0:
        raise CircuitError(f"{node.id} has a weight of 0 at {tensor}{list(place)}: what is 0 is not listed")
    array[place] = number


def count_covered(circuit: Circuit, weights: Weights) -> int:
    """How many weights that are not 0 a circuit explains: all of a model's, or it is refused with the first that differs."""
    claims = claimed_weights(circuit, weights)
    count = 0
    for (name, claimed), (_, array) in zip(claims.state(), weights.state(), strict=True):
        wrong = np.argwhere(claimed != array)
        if len(wrong):
            place = tuple(wrong[0].tolist())
            raise CircuitError(f"{name}{list(place)} is {array[place]!r}, and the circuit says {claimed[place]!r}: the "
                               "model is not the one that the formulas build")
        count += int(np.count_nonzero(array))
    _check_edges(circuit)
    return count


def _check_edges(circuit: Circuit) -> None:
    """The edges, counted anew from the weights alone."""
    wanted: Counter[tuple[str, str, str]] = Counter()
    blocks = {row: node.id for node in circuit.nodes if node.kind == "rows"
              for row in range(node.number, node.number + int(node.about["rows"]))}
    roles = {"query": (1, "query"), "key": (1, "key"), "value": (1, "value"), "w1": (0, "relu")}
    for node in circuit.nodes:
        for tensor, entries in node.weights.items():
            for entry in entries:
                if tensor in roles:
                    index, kind = roles[tensor]
                    wanted[blocks.get(int(entry[index]), ""), node.id, kind] += 1
                if tensor in ("value", "w2", "b2"):
                    wanted[node.id, blocks.get(int(entry[0]), ""), "constant" if tensor == "b2" else "adds"] += 1
    found: Counter[tuple[str, str, str]] = Counter(
        {(edge.source, edge.target, edge.kind): edge.weights for edge in circuit.edges})
    if len(found) != len(circuit.edges):
        twice = next(edge for edge in circuit.edges if circuit.edges.count(edge) > 1)
        raise CircuitError(f"the edge {_shown(twice)} is there twice")
    for key in [*found.keys() | wanted.keys()]:
        if found[key] != wanted[key]:
            raise CircuitError(f"the edge from {key[0]!r} to {key[1]!r} by {key[2]} has {found[key]} weights, the nodes "
                               f"have {wanted[key]}")


def _shown(edge: CircuitEdge) -> str:
    return f"from {edge.source!r} to {edge.target!r} by {edge.kind}"
