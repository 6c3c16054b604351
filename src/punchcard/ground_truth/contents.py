"""What is written about a model whose mechanism is known: its weights, cards, labels, what is public, and the truth.

    model.safetensors     the weights, by the names of the equation
    cards.safetensors     clean and corrupt cards, of whole numbers times `scale`; `output`, the projection on the rows
                          that count
    labels.safetensors    what each variable holds in the clean runs, (pairs, vectors, columns)
    model.json            sizes, groups of hidden units, the kind of each pair; nothing of the truth
    truth.json            the truth
    score.py              scores an answer, without Punchcard
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from punchcard import __version__
from punchcard.card.formats import AnyArray
from punchcard.errors import DisguiseError
from punchcard.export.circuit_builder import circuit as circuit_of
from punchcard.export.disguise import Disguised
from punchcard.export.names import part_name
from punchcard.ground_truth import score
from punchcard.ground_truth.pairs import CardPair
from punchcard.ground_truth.score import ScoredNetwork
from punchcard.ground_truth.truth import OFF, Truth, TruthMaker, part_of, variables_of
from punchcard.machines.base import AnyMachine
from punchcard.transformer.build import compile_layers
from punchcard.transformer.weights import NAMES, LayerArrays

MODEL, CARDS, LABELS, PUBLIC, TRUTH, SCORE = (
    "model.safetensors", "cards.safetensors", "labels.safetensors", "model.json", "truth.json", "score.py")
SCALES = ((1.0, np.int8), (0.125, np.int16))
"""In which cards are kept as whole numbers where that is exact."""
Groups = Sequence[Sequence[Sequence[int]]]


class ModelContents:
    """A disguised machine with pairs of cards: the truth about it, and its files. `seed` is for the order of groups."""

    def __init__(self, name: str, machine: AnyMachine, hidden: Disguised, pairs: Sequence[CardPair], seed: int) -> None:
        self.name, self.machine, self.hidden, self.pairs = name, machine, hidden, pairs
        self._parts = list(compile_layers(machine.formulas(), machine.layout.width))
        self.groups = [list(groups.values()) for groups in self._grouped()]
        self.names, self.shown = self._renamed(np.random.default_rng(seed + 1))
        self.network = network_of(hidden.weights.layers, self.shown)
        self.cards = {part: hidden.readin @ np.stack([getattr(pair, part) for pair in pairs])
                      for part in ("clean", "corrupt")}
        if not hidden.disguise.noise:
            self._check()

    def _grouped(self) -> Iterator[dict[tuple[str, tuple[int, ...]], list[int]]]:
        """For each layer its hidden units by the formulas that they serve; then those of copies, and other idle ones."""
        layers = zip(self._parts, self.hidden.copied.units, self.hidden.plain, strict=True)
        for part, copied, plain in layers:
            groups: dict[tuple[str, tuple[int, ...]], list[int]] = {}
            own = len(part.serves)
            for unit, served in enumerate(part.serves):
                groups.setdefault(("own", tuple(served)), []).append(unit)
            for place, unit in enumerate(copied.tolist(), start=own):
                groups.setdefault(("copy", tuple(part.serves[unit])), []).append(place)
            for place in range(own + len(copied), plain.hidden):
                groups.setdefault(("idle", ()), []).append(place)
            yield groups

    @cached_property
    def _idle(self) -> frozenset[str]:
        """The names of idle parts, in the machine's basis."""
        found = set()
        for n, (layer, plain) in enumerate(zip(self.machine.weights.layers, self.hidden.plain, strict=True)):
            found |= {f"L{n}.H{h}" for h in range(layer.heads, plain.heads)}
            found |= {f"L{n}.G{g}" for g, units in enumerate(self.groups[n]) if min(units) >= layer.hidden}
        return frozenset(found)

    def _renamed(self, generator: np.random.Generator) -> tuple[dict[str, str], list[list[list[int]]]]:
        """The names that parts have in the disguised model, and the groups of its hidden units."""
        names, shown = {"I": "I", "O": "O"}, []
        for n, order in enumerate(self.hidden.orders):
            groups, heads, units = self.groups[n], np.argsort(order.heads), np.argsort(order.units)
            names |= {f"L{n}.H{old}": f"L{n}.H{new}" for old, new in enumerate(heads.tolist())}
            shuffled = np.arange(len(groups)) if self.hidden.disguise.is_none else generator.permutation(len(groups))
            names |= {f"L{n}.G{old}": f"L{n}.G{new}" for new, old in enumerate(shuffled.tolist())}
            shown.append([sorted(int(units[unit]) for unit in groups[old]) for old in shuffled.tolist()])
        return names, shown

    def _check(self) -> None:
        """Refuse a model whose loop is not the machine's."""
        for name, end in (("clean", "clean_end"), ("corrupt", "corrupt_end")):
            found = self.hidden.readout @ self.network.loop(self.cards[name])
            off = float(np.abs(found - np.stack([getattr(pair, end) for pair in self.pairs])).max())
            if not off < OFF:
                raise DisguiseError(f"{self.name}: a card after a loop is off by {off:g}")

    # The truth

    @cached_property
    def truth(self) -> Truth:
        """Labels of nodes and edges, in the machine's basis."""
        plain = network_of(self.hidden.plain, self.groups)
        return TruthMaker(plain, self.hidden.entry, self.pairs, self._idle).truth()

    @cached_property
    def variables(self) -> dict[str, dict[str, Any]]:
        """Where variables are in the model."""
        layout = self.machine.layout
        places = {region.name: layout.region(region.name) for region in layout.regions}
        return variables_of(circuit_of(self.machine), {name: (at.start, at.stop) for name, at in places.items()},
                            self.hidden.readout)

    def counts(self) -> dict[str, int]:
        """How many nodes and edges matter for some pair, and how many there are."""
        edges, nodes = self.truth.edges["all"], self.truth.nodes["all"]
        return {"edges": sum(edges.values()), "edges_of": len(edges), "nodes": sum(nodes.values()), "nodes_of": len(nodes)}

    def described(self) -> dict[str, list[str]]:
        """For each node the parts of the circuit that it is: a head, or the formulas that a group serves; idle: none."""
        found = {}
        for n, groups in enumerate(self._grouped()):
            for h in range(self.hidden.plain[n].heads):
                own = h < self.machine.weights.layers[n].heads
                found[self.names[f"L{n}.H{h}"]] = [part_name(n, "head", h)] if own else []
            for g, (what, served) in enumerate(groups):
                found[self.names[f"L{n}.G{g}"]] = [part_name(n, "formula", i) for i in served] if what == "own" else []
        return found

    # The files

    def files(self) -> dict[str, bytes]:
        """By name."""
        scale, kept = _compact(self.cards)
        return {
            MODEL: to_bytes(dict(self.hidden.weights.state())),
            CARDS: to_bytes({**kept, "output": self.hidden.readout.T @ self.hidden.readout}),
            LABELS: to_bytes(self._labels()),
            PUBLIC: self._public(scale),
            SCORE: Path(score.__file__).read_bytes(),
            TRUTH: json.dumps({
                "model": self.name, "nodes": self._named(self.truth.nodes),
                "edges": self._named({"weights": self.truth.weights, **self.truth.edges}),
                "variables": self.variables, "names": self.described()}).encode()}

    def _public(self, scale: float) -> bytes:
        weights = self.hidden.weights
        return json.dumps({
            "name": self.name, "punchcard": __version__, "layers": len(weights.layers), "width": weights.width,
            "columns": self.machine.layout.columns, "heads": [layer.heads for layer in weights.layers],
            "hidden": [layer.hidden for layer in weights.layers], "groups": self.shown, "scale": scale,
            "tasks": [pair.kind for pair in self.pairs],
            "variables": {name: {"moment": each["moment"], "columns": each["columns"], "vectors": len(each["basis"])}
                          for name, each in self.variables.items()}}).encode()

    def _labels(self) -> dict[str, AnyArray]:
        """What variables hold in the clean runs: (pairs, rows, columns) of each."""
        seen: dict[int, AnyArray] = {}
        self.network.loop(self.cards["clean"], stage=seen.setdefault)
        return {name: (np.array(each["basis"]) @ seen[each["moment"]][..., each["columns"]]).astype(np.float32)
                for name, each in self.variables.items()}

    def _named(self, tasks: Mapping[str, Mapping[str, bool]]) -> dict[str, dict[str, bool]]:
        """Labels by the names of the disguised model."""
        return {task: {"->".join(map(self._name, part.split("->"))): label for part, label in labels.items()}
                for task, labels in tasks.items()}

    def _name(self, part: str) -> str:
        node = part_of(part)
        return self.names[node] + part[len(node):]


def network_of(layers: Sequence[LayerArrays], groups: Groups) -> ScoredNetwork:
    arrays = {f"layers.{n}.{name}": getattr(layer, name) for n, layer in enumerate(layers) for name in NAMES}
    return ScoredNetwork(arrays, groups)


def _compact(cards: Mapping[str, AnyArray]) -> tuple[float, dict[str, AnyArray]]:
    """Cards as whole numbers of a scale, where they are that; else as they are."""
    for scale, kind in SCALES:
        whole = {name: array / scale for name, array in cards.items()}
        most = np.iinfo(kind).max
        if all((array == np.round(array)).all() and np.abs(array).max() <= most for array in whole.values()):
            return scale, {name: array.astype(kind) for name, array in whole.items()}
    return 1.0, dict(cards)


def to_bytes(arrays: Mapping[str, AnyArray]) -> bytes:
    """As a safetensors file."""
    from safetensors.numpy import save

    found: bytes = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    return found
