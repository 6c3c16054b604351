"""A loop computed by the circuit: node by node, from its data alone, with the outputs of some nodes replaced.

    run = Evaluator(circuit)
    seen = run.loop(card)                           what every head, formula and hidden unit gives
    run.loop(card, {"layer 1, head 1": other})      the same with what that head adds replaced: activation patching

A head's output is what it adds, rows by columns. A formula's is what the feed-forward adds to the rows that it sets. A
hidden unit's is its relu, one number a column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from punchcard.card.formats import FORMATS, AnyArray
from punchcard.errors import PunchcardError
from punchcard.export.circuit import Circuit, CircuitNode
from punchcard.export.coverage import claimed_weights
from punchcard.export.names import formula_name, head_name
from punchcard.transformer.weights import LayerArrays, Weights


@dataclass
class Evaluation:
    """A loop: the card at its 2 layers + 1 moments, and the output of every node."""

    cards: list[AnyArray]
    outputs: dict[str, AnyArray] = field(default_factory=dict)
    """Of heads and formulas, by name."""
    hidden: list[AnyArray] = field(default_factory=list)
    """Of hidden units: for each layer a row for each unit."""

    @property
    def end(self) -> AnyArray:
        """The card after the loop."""
        return self.cards[-1]


class Evaluator:
    """Computes loops of a circuit."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.rows: dict[str, AnyArray] = {
            node.id: np.array([index[name] for name in node.about["sets"]], dtype=np.intp)
            for index in [{name: row for row, name in enumerate(circuit.about["row_names"])}]
            for node in circuit.of_kind("formula")}
        """The rows that each formula sets."""

    @cached_property
    def layers(self) -> tuple[LayerArrays, ...]:
        """The matrices that the nodes say."""
        return claimed_weights(self.circuit, _empty(self.circuit)).layers

    def loop(self, card: AnyArray, patches: Mapping[str, AnyArray] | None = None) -> Evaluation:
        """One loop. `patches` are outputs of nodes that are taken instead of what the nodes compute."""
        patches = patches or {}
        for name in patches:
            node = self.circuit.node(name)
            if node.kind == "rows":
                raise PunchcardError(f"{name!r} is a block of rows: heads, formulas and hidden units are patched")
        seen = Evaluation([card])
        for number, layer in enumerate(self.layers):
            seen.cards.append(self._attention(number, layer, seen, patches))
            seen.cards.append(self._feed_forward(number, layer, seen, patches))
        return seen

    def loops(self, card: AnyArray, count: int) -> list[AnyArray]:
        """The cards after each of so many loops, the given one first."""
        found = [card]
        for _ in range(count):
            found.append(self.loop(found[-1]).end)
        return found

    def _attention(self, number: int, layer: LayerArrays, seen: Evaluation, patches: Mapping[str, AnyArray]) -> AnyArray:
        card = seen.cards[-1]
        attended = card
        for head in range(layer.heads):
            name = head_name(number, head)
            scores = layer.temperature[head] * ((layer.key[head] @ card).T @ (layer.query[head] @ card))
            powers = np.exp(scores - scores.max(axis=0))
            added = patches[name] if name in patches else layer.value[head] @ card @ (powers / powers.sum(axis=0))
            seen.outputs[name] = added
            attended = attended + added
        return attended

    def _feed_forward(self, number: int, layer: LayerArrays, seen: Evaluation, patches: Mapping[str, AnyArray]) -> AnyArray:
        card = seen.cards[-1]
        hidden = np.maximum(layer.w1 @ card + layer.b1, 0)
        for name in patches:
            node = self.circuit.node(name)
            if node.kind == "unit" and node.layer == number:
                hidden[node.number] = patches[name]
        seen.hidden.append(hidden)
        added = layer.w2 @ hidden + layer.b2
        for node in self._formulas[number]:
            name, rows = formula_name(number, node.number), self.rows[node.id]
            if name in patches:
                added[rows] = patches[name]
            seen.outputs[name] = added[rows]
        found: AnyArray = card + added
        return found

    @cached_property
    def _formulas(self) -> list[list[CircuitNode]]:
        return [self.circuit.of_kind("formula", layer) for layer in range(len(self.layers))]


def _empty(circuit: Circuit) -> Weights:
    """Weights of a circuit's shapes, all 0."""
    about = circuit.about
    width, kind = int(about["width"]), FORMATS[about["dtype"]].array
    layers = []
    for number, (heads, hidden) in enumerate(zip(about["heads"], about["hidden"], strict=True)):
        keys = [int(entry[0]) + 1 for node in circuit.of_kind("head", number) for name in ("key", "query")
                for entry in node.weights[name]]
        shapes = ((heads, max(keys, default=0), width),) * 2 + (
            (heads, width, width), (heads,), (hidden, width), (hidden, 1), (width, hidden), (width, 1))
        layers.append(LayerArrays(*(np.zeros(shape, kind) for shape in shapes)))
    return Weights(width, about["dtype"], layers)
