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
from punchcard.export.circuit import Circuit, claimed_weights
from punchcard.export.names import part_name
from punchcard.transformer import equation
from punchcard.transformer.equation import Output
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
        rows = {name: row for row, name in enumerate(circuit.about["row_names"])}
        self.sets: list[dict[str, AnyArray]] = [
            {node.id: np.array([rows[name] for name in node.about["sets"]], dtype=np.intp)
             for node in circuit.of_kind("formula", layer)} for layer in range(int(circuit.about["layers"]))]
        """For each layer the rows that each formula sets."""

    @cached_property
    def layers(self) -> tuple[LayerArrays, ...]:
        """The matrices that the nodes say."""
        return claimed_weights(self.circuit, _empty(self.circuit)).layers

    def loop(self, card: AnyArray, patches: Mapping[str, AnyArray] | None = None) -> Evaluation:
        """One loop. `patches` are outputs of nodes that are taken instead of what the nodes compute."""
        patches = patches or {}
        patched = [self.circuit.node(name) for name in patches]
        for node in patched:
            if node.kind == "rows":
                raise PunchcardError(f"{node.id!r} is a block of rows: heads, formulas and hidden units are patched")
        seen = Evaluation([])

        def hook(place: Output, computed: AnyArray) -> AnyArray:
            if place.part == "head":
                name = part_name(place.layer, "head", place.number)
                seen.outputs[name] = computed = patches.get(name, computed)
            elif place.part == "hidden":
                for node in patched:
                    if (node.kind, node.layer) == ("unit", place.layer):
                        computed[node.number] = patches[node.id]
                seen.hidden.append(computed)
            else:
                for name, rows in self.sets[place.layer].items():
                    computed[rows] = seen.outputs[name] = patches.get(name, computed[rows])
            return computed

        seen.cards.extend(equation.stages(self.layers, card, hook))
        return seen


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
