"""From the formulas that built a machine to its circuit. Programs are not needed: weights do not depend on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from punchcard.arguments import checked
from punchcard.card.formats import AnyArray
from punchcard.card.layout import Layout, RowBlock
from punchcard.export.circuit import CausalVariable, Circuit, CircuitEdge, CircuitNode, Entry, count_covered, edges_of
from punchcard.export.names import LayerNames, Naming, part_name
from punchcard.machines.base import Machine
from punchcard.transformer.formula_text import smallest_blocks, vector_text

EQUATION = ("X + sum_h V_h X softmax(temperature_h (K_h X)^T (Q_h X)), softmax down each column; "
            "then X + W2 relu(W1 X + b1) + b2; layer by layer, and the last card is the first of the next loop")

Rounding: TypeAlias = Callable[[AnyArray], AnyArray]
"""To the machine's number format."""


@checked
def circuit(machine: Machine[Any, Any]) -> Circuit:
    """Return the `Circuit` of a machine: what each row block, head, formula and hidden unit computes, as plain data.

    Raises `CircuitError` if the circuit does not explain each weight of the machine exactly once. See docs/ground-truth.md.
    """
    naming, layout, rounded = Naming(machine), machine.layout, machine.weights.format.rounded
    nodes = [_rows(*block) for block in smallest_blocks(layout)]
    for number, layer in enumerate(naming.layers):
        temperatures = machine.weights.layers[number].temperature
        nodes += [*_heads(layer, number, temperatures, rounded, naming), *_formulas(layer, number, rounded, naming),
                  *_units(layer, number, rounded)]
    edges = edges_of(nodes)
    about = {**machine.summary(), "precision": machine.precision.describe(), "equation": EQUATION, "row_names": naming.rows,
             "regions": layout.describe()["regions"]}
    found = Circuit(about, nodes, edges, _variables(layout, nodes, edges, len(naming.layers)))
    count_covered(found, machine.weights)
    return found


def _rows(name: str, block: RowBlock, rows: range) -> CircuitNode:
    about = {"block": block.name, "rows": len(rows), "about": block.about, "holds": dict(block.holds),
             "changes": list(block.changes), "within": block.within}
    return CircuitNode(name, "rows", None, rows.start, f"{name}: {block.about}" if block.about else name, {}, about)


def _heads(layer: LayerNames, number: int, temperatures: AnyArray, rounded: Rounding, naming: Naming) -> list[CircuitNode]:
    found = []
    for i, (head, text) in enumerate(zip(layer.weights.part.heads, layer.heads, strict=True)):
        weights: dict[str, list[Entry]] = {name: _entries(rounded(getattr(layer.weights, name)[i]))
                                           for name in ("key", "query", "value")}
        about = {"query": vector_text(head.query, naming.spans), "key": vector_text(head.key, naming.spans),
                 "value": vector_text(head.value, naming.spans),
                 "into": [naming.rows[row] for row in head.into.numbers.tolist()], "gap": head.gap, "winners": head.winners}
        weights["temperature"] = [[float(temperatures[i])]]
        found.append(CircuitNode(part_name(number, "head", i), "head", number, i, text, weights, about))
    return found


def _formulas(layer: LayerNames, number: int, rounded: Rounding, naming: Naming) -> list[CircuitNode]:
    found = []
    for i, (assignment, text) in enumerate(zip(layer.weights.part.assignments, layer.formulas, strict=True)):
        rows = assignment.target.numbers
        constants = np.zeros_like(layer.weights.b2)
        constants[rows] = layer.weights.b2[rows]
        about = {"sets": [naming.rows[row] for row in rows.tolist()],
                 "units": [part_name(number, "unit", unit)
                           for unit, served in enumerate(layer.weights.serves) if i in served]}
        weights = {"b2": _entries(rounded(constants))}
        found.append(CircuitNode(part_name(number, "formula", i), "formula", number, i, text, weights, about))
    return found


def _units(layer: LayerNames, number: int, rounded: Rounding) -> list[CircuitNode]:
    inner, bias, outer = map(rounded, (layer.weights.w1, layer.weights.b1, layer.weights.w2))
    return [CircuitNode(part_name(number, "unit", i), "unit", number, i, text,
                        {"w1": _entries(inner[i]), "b1": _entries(bias[i : i + 1])[:1], "w2": _entries(outer[:, i])},
                        {"serves": [part_name(number, "formula", formula) for formula in layer.weights.serves[i]]})
            for i, text in enumerate(layer.units)]


def _entries(array: AnyArray) -> list[Entry]:
    """The entries that are not 0: their indices, and the number."""
    places = np.nonzero(array)
    return [[*place, number] for *place, number in zip(*(axis.tolist() for axis in places), array[places].tolist(),
                                                       strict=True)]


def _variables(
    layout: Layout, nodes: Sequence[CircuitNode], edges: Sequence[CircuitEdge], layers: int
) -> list[CausalVariable]:
    """What the layout says of a loop's beginning, and the rows that each half of a layer sets."""
    found = []
    for name, block, _ in smallest_blocks(layout):
        for region, content in block.holds.items():
            decode = {"bits": "unsigned", "one": "one"}.get(content, "numbers")
            found.append(CausalVariable(f"{name} in {region}", name, region, 0, decode, [], region in block.changes))
    kind = {node.id: (node.kind, node.layer) for node in nodes}
    writers: dict[tuple[int, str], list[str]] = {}
    for edge in edges:
        what, layer = kind[edge.source]
        if what in ("head", "formula", "unit") and layer is not None:
            writers.setdefault((2 * layer + (1 if what == "head" else 2), edge.target), []).append(edge.source)
    within = {name: block.within for name, block, _ in smallest_blocks(layout)}
    for (moment, name), ids in sorted(writers.items(), key=lambda item: item[0][0]):
        half = "attention" if moment % 2 else "feed-forward"
        decode = "unsigned" if within[name] == "bits" and moment % 2 == 0 and moment < 2 * layers else "numbers"
        found.append(CausalVariable(f"{name} after the {half} of layer {(moment + 1) // 2}", name, None, moment, decode,
                              list(dict.fromkeys(ids)), None))
    return found
