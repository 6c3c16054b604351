"""The circuit of a machine, as plain data: what every row block, head, formula and hidden unit is and computes.

    circuit = machine.circuit()
    circuit.node("layer 1, head 1").formula     query position + pointer.a, key position, value -memory, into difference
    circuit.into("difference")                  the heads, formulas and hidden units that write these rows
    circuit.save("circuit.json")

A weight belongs to one node: K, Q, V and the temperature to a head; a row of W1, its entry of b1 and its column of W2 to a
hidden unit; an entry of b2 to the formula that sets its row. An edge joins a block of rows and a node that reads or writes
them, and says by how many weights. `circuit_builder.py` makes circuits from formulas. `count_covered` compares one with a
model: every weight that is not 0 belongs to exactly one node, and no edge is without a weight.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from punchcard.arguments import checked
from punchcard.errors import CircuitError, PunchcardError, StorageError, did_you_mean
from punchcard.files import read_limited, write_atomic
from punchcard.transformer.weights import NAMES, LayerArrays, Weights

FORMAT = 1
MOST_BYTES = 1 << 30
NodeKind: TypeAlias = Literal["rows", "head", "formula", "unit"]
EdgeKind: TypeAlias = Literal["query", "key", "value", "adds", "relu", "constant"]
"""A head reads rows by query, key and value, and `adds` to rows; a hidden unit reads rows by its `relu` and adds to rows; a
formula adds a `constant`."""
READS: Mapping[str, tuple[int, EdgeKind]] = {
    "query": (1, "query"), "key": (1, "key"), "value": (1, "value"), "w1": (0, "relu")}
WRITES: Mapping[str, EdgeKind] = {"value": "adds", "w2": "adds", "b2": "constant"}
"""By tensors: which index of an entry is the row that a node reads, and the kind of the edge. It writes the first index."""
Entry: TypeAlias = Sequence[float]
"""One weight: the indices inside the node's part of a tensor, then the number."""


@dataclass(frozen=True)
class CircuitNode:
    """A block of rows, a head, a formula or a hidden unit.

    layer, number   its place in the model, counted from 0; of rows the number is the first row
    weights         all its weights that are not 0, by the name of the tensor
    about           what else is known of it
    """

    id: str
    kind: NodeKind
    layer: int | None
    number: int
    formula: str
    weights: Mapping[str, Sequence[Entry]]
    about: Mapping[str, Any]


@dataclass(frozen=True)
class CircuitEdge:
    """From a block of rows to a node that reads it, or from a node to a block that it writes; `weights`: by how many."""

    source: str
    target: str
    kind: EdgeKind
    weights: int


@dataclass(frozen=True)
class CausalVariable:
    """A causal variable: what rows mean in a region of columns, at a moment of the loop.

    moment   0 is where a loop begins; 2 k + 1 is after the attention of layer k, and 2 k + 2 after its feed-forward
    decode   "unsigned" and "signed": ±1 bits, the lowest first; "one": an indicator; "numbers": the entries themselves
    set_by   the nodes that write these rows since the moment before
    changes  whether a loop may change it; None in the middle of a loop
    """

    name: str
    rows: str
    region: str | None
    moment: int
    decode: str
    set_by: Sequence[str]
    changes: bool | None


@checked
class Circuit:
    """Nodes, edges and variables of a machine; `about` has its figures, row names and regions."""

    def __init__(self, about: Mapping[str, Any], nodes: Sequence[CircuitNode], edges: Sequence[CircuitEdge],
                 variables: Sequence[CausalVariable]) -> None:
        self.about, self.nodes, self.edges, self.variables = dict(about), list(nodes), list(edges), list(variables)

    def __repr__(self) -> str:
        counts = ", ".join(f"{sum(node.kind == kind for node in self.nodes)} {name}" for kind, name in (
            ("rows", "row blocks"), ("head", "heads"), ("formula", "formulas"), ("unit", "hidden units")))
        return f"<Circuit of {self.about.get('machine')}, design {self.about.get('design')!r}: {counts}>"

    @cached_property
    def _by_id(self) -> dict[str, CircuitNode]:
        return {node.id: node for node in self.nodes}

    def node(self, id: str) -> CircuitNode:
        """The node of this name."""
        if id not in self._by_id:
            raise PunchcardError(f"the circuit has no node {id!r}{did_you_mean(id, self._by_id)}: it has {len(self.nodes)}, "
                                 f"such as {', '.join(node.id for node in self.nodes[:3])}")
        return self._by_id[id]

    def of_kind(self, kind: NodeKind, layer: int | None = None) -> list[CircuitNode]:
        """All nodes of a kind, or those of a layer."""
        return [node for node in self.nodes if node.kind == kind and layer in (None, node.layer)]

    def into(self, rows: str, layer: int | None = None) -> list[CircuitNode]:
        """The nodes that write a block of rows."""
        self.node(rows)
        found = [self.node(edge.source) for edge in self.edges if edge.target == rows]
        return [node for node in found if layer in (None, node.layer)]

    def out_of(self, rows: str, layer: int | None = None) -> list[CircuitNode]:
        """The nodes that read a block of rows, each once."""
        self.node(rows)
        found = {edge.target: self.node(edge.target) for edge in self.edges if edge.source == rows}
        return [node for node in found.values() if layer in (None, node.layer)]

    def reached(self, rows: Iterable[str], loops: int = 1) -> set[str]:
        """The blocks of rows that a change in these can come to in so many loops. No other block can change."""
        changed = set(rows)
        for name in changed:
            self.node(name)
        reads: dict[str, set[str]] = {}
        writes: dict[str, set[str]] = {}
        for edge in self.edges:
            if edge.kind != "constant":
                into = edge.target in self._by_id and self._by_id[edge.target].kind == "rows"
                node, block, table = (edge.source, edge.target, writes) if into else (edge.target, edge.source, reads)
                table.setdefault(node, set()).add(block)
        for _ in range(loops):
            before = len(changed)
            for nodes in self._order:
                changed |= set().union(*(writes.get(node, set()) for node in nodes if reads.get(node, set()) & changed))
            if len(changed) == before:
                break
        return changed

    @cached_property
    def _order(self) -> list[list[str]]:
        """The nodes that act at once, in the order of the loop."""
        layers = range(int(self.about["layers"]))
        kinds: tuple[NodeKind, ...] = ("head", "unit")
        return [[node.id for node in self.of_kind(kind, layer)] for layer in layers for kind in kinds]

    # Files

    def plain(self) -> dict[str, Any]:
        """All of it as JSON has it."""
        return {"format": FORMAT, "about": self.about, "nodes": [asdict(node) for node in self.nodes],
                "edges": [asdict(edge) for edge in self.edges], "variables": [asdict(each) for each in self.variables]}

    def save(self, path: str | Path) -> None:
        """Write a JSON file."""
        write_atomic(path, json.dumps(self.plain(), ensure_ascii=False))


@checked
def load_circuit(path: str | Path) -> Circuit:
    """A circuit from its file."""
    text = read_limited(path, "circuit", limit=MOST_BYTES)
    try:
        found = json.loads(text)
        if found["format"] != FORMAT:
            raise StorageError(f"{str(path)!r} is a circuit of the format {found['format']!r}, this version reads {FORMAT}: "
                               "export it again")
        return Circuit(found["about"], [CircuitNode(**node) for node in found["nodes"]],
                       [CircuitEdge(**edge) for edge in found["edges"]],
                       [CausalVariable(**each) for each in found["variables"]])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StorageError(f"{str(path)!r} is not a circuit as `Circuit.save` writes it: {error!r}") from None


# Beside a model


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
                place, array = place_of(node, tensor, tuple(int(i) for i in indices)), layers[node.layer][tensor]
                if len(place) != array.ndim or any(not 0 <= i < size for i, size in zip(place, array.shape, strict=True)):
                    raise CircuitError(f"{node.id} has a weight at {tensor}{list(place)}: the model's is {array.shape}")
                if number == 0:
                    raise CircuitError(f"{node.id} has a weight of 0 at {tensor}{list(place)}: what is 0 is not listed")
                array[place] = number
                other = claimed.setdefault((node.layer, tensor, place), node.id)
                if other != node.id:
                    raise CircuitError(f"layers.{node.layer}.{tensor}{list(place)} is claimed by {other} and by {node.id}")
    return Weights(like.width, like.dtype, [LayerArrays(**arrays) for arrays in layers])


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


def edges_of(nodes: Sequence[CircuitNode]) -> list[CircuitEdge]:
    """The edges of nodes by their weights: between each node and the blocks of rows that it reads and writes."""
    blocks = {row: node.id for node in nodes if node.kind == "rows"
              for row in range(node.number, node.number + int(node.about["rows"]))}
    found: Counter[tuple[str, str, EdgeKind]] = Counter()
    for node in nodes:
        for tensor, (index, kind) in READS.items():
            found.update((blocks.get(int(entry[index]), ""), node.id, kind) for entry in node.weights.get(tensor, ()))
        for tensor, kind in WRITES.items():
            found.update((node.id, blocks.get(int(entry[0]), ""), kind) for entry in node.weights.get(tensor, ()))
    return [CircuitEdge(*edge, count) for edge, count in found.items()]


def _check_edges(circuit: Circuit) -> None:
    """The edges, counted anew from the weights alone."""
    wanted, found = ({(edge.source, edge.target, edge.kind): edge.weights for edge in edges}
                     for edges in (edges_of(circuit.nodes), circuit.edges))
    if len(found) != len(circuit.edges):
        twice = next(edge for edge in circuit.edges if circuit.edges.count(edge) > 1)
        raise CircuitError(f"the edge from {twice.source!r} to {twice.target!r} by {twice.kind} is there twice")
    for key in found.keys() | wanted.keys():
        if found.get(key, 0) != wanted.get(key, 0):
            raise CircuitError(f"the edge from {key[0]!r} to {key[1]!r} by {key[2]} has {found.get(key, 0)} weights, the "
                               f"nodes have {wanted.get(key, 0)}")
