"""What is true of a model: which nodes and edges matter, by the weights and by exact patching; where variables are.

Everything is computed in the machine's own basis, where a part reads and writes named rows, and then named as the disguised
model has it. An edge joins a writer with a reader that reads a row which it writes. It matters in a task if, for some pair,
the end of the loop is another when the reader alone gets what the writer wrote in the corrupt run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from punchcard.card.formats import AnyArray
from punchcard.export.circuit import Circuit
from punchcard.ground_truth.pairs import CardPair, kinds_of
from punchcard.ground_truth.score import ScoredNetwork

OFF = 1e-6
"""What rounding may change: less does not count as a difference."""


@dataclass(frozen=True)
class Truth:
    """Labels by task for nodes and edges, and the variables."""

    nodes: Mapping[str, Mapping[str, bool]]
    edges: Mapping[str, Mapping[str, bool]]
    weights: Mapping[str, bool]
    """Edges of the whole machine: there is a weight, and the reader is not idle."""


class TruthMaker:
    """Patches every node and edge of a network in the machine's basis, with the first `own` rows the machine's."""

    def __init__(self, network: ScoredNetwork, own: int, pairs: Sequence[CardPair], idle: frozenset[str]) -> None:
        self.network, self.own, self.idle, self.pairs = network, own, idle, list(pairs)
        width = network[0, "w1"].shape[1]
        pad = ((0, 0), (0, width - own), (0, 0))
        self.clean, self.corrupt = (np.pad(np.stack([getattr(pair, name) for pair in pairs]), pad)
                                    for name in ("clean", "corrupt"))
        self.stages: dict[int, AnyArray] = {}
        """The clean cards at each moment."""
        self.reads: dict[str, AnyArray] = {}
        self.writes: dict[str, AnyArray] = {"I": np.arange(width) < own}
        self.reads["O"] = np.arange(width) < own
        for n in range(network.layers):
            for h in range(network.heads(n)):
                for part, name in zip("qkv", ("query", "key", "value"), strict=True):
                    self.reads[f"L{n}.H{h}.{part}"] = network[n, name][h].any(axis=0)
                self.writes[f"L{n}.H{h}"] = network[n, "value"][h].any(axis=1)
            for g, units in enumerate(network.groups[n]):
                self.reads[f"L{n}.G{g}"] = network[n, "w1"][units].any(axis=0)
                self.writes[f"L{n}.G{g}"] = network[n, "w2"][:, units].any(axis=1)

    def truth(self) -> Truth:
        """All labels."""
        wrote: dict[str, AnyArray] = {}
        self.network.loop(self.corrupt, wrote=wrote.setdefault)
        clean: dict[str, AnyArray] = {}
        end = self.network.loop(self.clean, wrote=clean.setdefault, stage=self.stages.setdefault)
        tasks = dict(kinds_of(self.pairs))
        nodes: dict[str, dict[str, bool]] = {task: {} for task in tasks}
        edges: dict[str, dict[str, bool]] = {task: {} for task in tasks}
        moved = {name: wrote[name] - clean[name] for name in self.network.writers()}
        weights = {}
        for name in self.network.writers():
            if name != "I":
                changed = self._node(name, moved[name], end)
                for task, places in tasks.items():
                    nodes[task][name] = bool(changed[places].any())
        for edge in self.network.edges():
            writer, reader = edge.split("->")
            joined = bool((self.writes[writer] & self.reads[reader]).any()) and writer not in self.idle
            weights[edge] = joined and reader.removesuffix(".q").removesuffix(".k").removesuffix(".v") not in self.idle
            changed = self._edge(reader, moved[writer], end) if weights[edge] else np.zeros(len(self.pairs), dtype=bool)
            for task, places in tasks.items():
                edges[task][edge] = bool(changed[places].any())
        return Truth(nodes, edges, weights)

    def _differs(self, end: AnyArray, other: AnyArray) -> AnyArray:
        found: AnyArray = (np.abs(end - other)[:, : self.own] > OFF).any(axis=(1, 2))
        return found

    def _node(self, name: str, moved: AnyArray, end: AnyArray) -> AnyArray:
        if name in self.idle or not moved.any():
            return np.zeros(len(self.pairs), dtype=bool)
        first = (self.network.moment(name) - 1) // 2
        return self._differs(end, self.network.loop(
            self.stages[2 * first], wrote=lambda each, found: found + moved if each == name else found, first=first))

    def _edge(self, reader: str, moved: AnyArray, end: AnyArray) -> AnyArray:
        if not moved.any():
            return np.zeros(len(self.pairs), dtype=bool)
        if reader == "O":
            return self._differs(end, end + moved)
        first = (self.network.moment(reader) - 1) // 2
        return self._differs(end, self.network.loop(
            self.stages[2 * first], read=lambda each, found: found + moved if each == reader else found, first=first))


def variables_of(circuit: Circuit, regions: Mapping[str, tuple[int, int]], readin: AnyArray) -> dict[str, dict[str, Any]]:
    """Where variables are in a model: at which moment, in which columns, and vectors that span them; by short names."""
    found: dict[str, dict[str, Any]] = {}
    columns = max(stop for _, stop in regions.values())
    for number, each in enumerate(circuit.variables):
        node = circuit.node(each.rows)
        rows = range(node.number, node.number + int(node.about["rows"]))
        first, stop = regions[each.region] if each.region is not None else (0, columns)
        found[f"v{number}"] = {"name": each.name, "decode": each.decode, "moment": each.moment,
                               "columns": list(range(first, stop)), "basis": readin[:, rows].T.tolist()}
    return found
