"""The circuit of a machine, as plain data: what every row block, head, formula and hidden unit is and computes.

    circuit = machine.circuit()
    circuit.node("layer 1, head 1").formula     query position + pointer.a, key position, value -memory, into difference
    circuit.into("difference")                  the heads, formulas and hidden units that write these rows
    circuit.save("circuit.json")

A weight belongs to one node: K, Q, V and the temperature to a head; a row of W1, its entry of b1 and its column of W2 to a
hidden unit; an entry of b2 to the formula that sets its row. An edge joins a block of rows and a node that reads or writes
them, and says by how many weights. `circuit_builder.py` makes circuits from formulas, and `count_covered` in `coverage.py`
compares one with a model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

from punchcard.arguments import checked
from punchcard.errors import PunchcardError, StorageError, did_you_mean
from punchcard.files import read_whole, write_whole

FORMAT = 1
MOST_BYTES = 1 << 30
NodeKind: TypeAlias = Literal["rows", "head", "formula", "unit"]
EdgeKind: TypeAlias = Literal["query", "key", "value", "adds", "relu", "constant"]
"""A head reads rows by query, key and value, and `adds` to rows; a hidden unit reads rows by its `relu` and adds to rows; a
formula adds a `constant`."""
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
        write_whole(path, json.dumps(self.plain(), ensure_ascii=False))


@checked
def load_circuit(path: str | Path) -> Circuit:
    """A circuit from its file."""
    text = read_whole(path, "circuit", limit=MOST_BYTES)
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
