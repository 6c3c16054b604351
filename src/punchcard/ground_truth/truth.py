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
from punchcard.ground_truth.pairs import CardPair
from punchcard.ground_truth.score import ScoredNetwork

MOST_PAIRS = 16
MOST_BYTES = 1 << 28
"""What is patched at once: so many pairs, whose cards and outputs need so many bytes."""
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
    """Patches every node and edge of a network in the machine's basis, whose first rows are the machine's.

    `entry` gives a card of the machine its idle rows.

    What a part gives more is added to the clean card at the moment after that part, and the loop continues from there. Pairs
    are taken in blocks, so that memory is bounded; a label that is true for all kinds of a block's pairs is not asked again.
    """

    def __init__(self, network: ScoredNetwork, entry: AnyArray, pairs: Sequence[CardPair], idle: frozenset[str]) -> None:
        self.network, self.entry, self.idle, self.pairs = network, entry, idle, list(pairs)
        self.width, self.own = width, own = entry.shape
        self.writers = network.writers()
        self.kinds = np.array([pair.kind for pair in pairs])
        self.reads: dict[str, AnyArray] = {"O": np.arange(width) < own}
        self.writes: dict[str, AnyArray] = {"I": np.arange(width) < own}
        for n in range(network.layers):
            for h in network.heads(n):
                for part, name in zip("qkv", ("query", "key", "value"), strict=True):
                    self.reads[f"L{n}.H{h}.{part}"] = network[n, name][h].any(axis=0)
                self.writes[f"L{n}.H{h}"] = network[n, "value"][h].any(axis=1)
            for g, units in enumerate(network.groups[n]):
                self.reads[f"L{n}.G{g}"] = network[n, "w1"][units].any(axis=0)
                self.writes[f"L{n}.G{g}"] = network[n, "w2"][:, units].any(axis=1)

    def truth(self) -> Truth:
        """All labels."""
        edges = self.network.edges()
        weights = {edge: self._joined(*edge.split("->")) for edge in edges}
        real = [edge for edge, label in weights.items() if label]
        matters: dict[str, set[str]] = {name: set() for name in (*self.writers[1:], *edges)}
        for places in self._blocks():
            self._block(places, matters, real)
        tasks = [*dict.fromkeys(self.kinds.tolist()), "all"]

        def labels(names: Sequence[str]) -> dict[str, dict[str, bool]]:
            return {task: {name: bool(matters[name]) if task == "all" else task in matters[name] for name in names}
                    for task in tasks}

        return Truth(labels(self.writers[1:]), labels(edges), weights)

    def _joined(self, writer: str, reader: str) -> bool:
        """Whether the writer writes a row that the reader reads, and neither is idle."""
        both = bool((self.writes[writer] & self.reads[reader]).any())
        return both and not self.idle & {writer, part_of(reader)}

    def _blocks(self) -> list[AnyArray]:
        """Places of pairs whose cards, with what all writers give, are in memory at once."""
        held = 2 * len(self.writers) + 2 * self.network.layers + 8
        size = max(1, min(MOST_PAIRS, MOST_BYTES // (8 * held * self.width * self.pairs[0].clean.shape[1])))
        return [np.arange(first, min(first + size, len(self.pairs))) for first in range(0, len(self.pairs), size)]

    def _block(self, places: AnyArray, matters: dict[str, set[str]], real: Sequence[str]) -> None:
        block = _PatchedBlock(self, places)
        kinds = self.kinds[places]
        for name in (*self.writers[1:], *real):
            left = ~np.isin(kinds, list(matters[name]))
            if left.any() and name not in self.idle:
                matters[name] |= set(kinds[block.changed(name, left)].tolist())


class _PatchedBlock:
    """Some pairs: what every part gives in both runs, and the clean cards at each moment."""

    def __init__(self, maker: TruthMaker, places: AnyArray) -> None:
        self.network, self.own = maker.network, maker.own
        pairs = [maker.pairs[place] for place in places.tolist()]
        clean, corrupt = (maker.entry @ np.stack([getattr(pair, name) for pair in pairs]) for name in ("clean", "corrupt"))
        self.given: dict[str, AnyArray] = {}
        other: dict[str, AnyArray] = {}
        self.stages: dict[int, AnyArray] = {}
        self.end = self.network.loop(clean, wrote=self.given.setdefault, stage=self.stages.setdefault)
        self.network.loop(corrupt, wrote=other.setdefault)
        self.moved = {name: other[name] - self.given[name] for name in self.given}

    def changed(self, name: str, among: AnyArray) -> AnyArray:
        """The pairs among these whose end is another when a node, or an edge, is taken from the corrupt run."""
        writer, _, reader = name.partition("->")
        found = among & self.moved[writer].any(axis=(1, 2))
        if not found.any():
            return found
        delta, moment = self.moved[writer][found], self.network.moment(reader or writer)
        if reader and reader != "O":
            delta = reads_more(self.network, reader, self.stages, found, delta) - self.given[part_of(reader)][found]
        found[found] = self._differs(delta, found, moment)
        return found

    def _differs(self, delta: AnyArray, places: AnyArray, moment: int) -> AnyArray:
        """Whether the end is another with something added to the clean card at a moment."""
        if moment >= 2 * self.network.layers:
            off = delta
        else:
            end = self.end[places]
            off = np.zeros_like(end)
            some = delta.any(axis=(1, 2))
            if some.any():
                off[some] = self.network.loop(self.stages[moment][places][some] + delta[some], start=moment) - end[some]
        return np.asarray((np.abs(off)[:, : self.own] > OFF).any(axis=(1, 2)))


def part_of(reader: str) -> str:
    """The node of an input such as "L0.H1.q"."""
    return reader[:-2] if reader[-2:] in (".q", ".k", ".v") else reader


def reads_more(network: ScoredNetwork, reader: str, stages: Mapping[int, AnyArray], places: AnyArray,
               more: AnyArray) -> AnyArray:
    """What a part gives when it reads so much more by this input, beside the run of which `stages` are known."""
    part, n = part_of(reader), (network.moment(reader) - 1) // 2
    number, card = int(part.split(".")[1][1:]), stages[network.moment(reader) - 1][places]
    found: AnyArray = network.group(n, number, card + more) if ".G" in part else network.head(
        n, number, card, lambda each, card: card + more if each == reader else card)
    return found


def variables_of(circuit: Circuit, regions: Mapping[str, tuple[int, int]], readout: AnyArray) -> dict[str, dict[str, Any]]:
    """Where variables are in a model: at which moment, in which columns, and vectors that span them; by short names."""
    found: dict[str, dict[str, Any]] = {}
    columns = max(stop for _, stop in regions.values())
    for number, each in enumerate(circuit.variables):
        node = circuit.node(each.rows)
        rows = range(node.number, node.number + int(node.about["rows"]))
        first, stop = regions[each.region] if each.region is not None else (0, columns)
        found[f"v{number}"] = {"name": each.name, "decode": each.decode, "moment": each.moment,
                               "columns": list(range(first, stop)), "basis": readout[rows].tolist()}
    return found
