"""Names for all that a machine consists of: rows, heads, formulas and hidden units, with the text of what each computes.

    names = Naming(machine)
    names.rows[64]                 difference[7]
    names.layers[0].heads[0]       query position + pointer.a, key position, value -memory, into difference
    names.layers[0].units[3]       relu(difference[1] + ...)

This is the one place that names are made for files: the circuit and every export read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from punchcard.machines.base import Machine
from punchcard.transformer.build import LayerWeights, compile_layer
from punchcard.transformer.formula_text import RowNames, assignment_text, head_text, row_names, unit_text

WHOLE = 1 << 20
"""Characters of a formula: in a file none is cut."""


def part_name(layer: int, kind: Literal["head", "formula", "unit"], number: int) -> str:
    """The name of a head, an assignment or a hidden unit. They are counted from 0 in Python, and from 1 in names."""
    return f"layer {layer + 1}, {kind} {number + 1}"


@dataclass(frozen=True)
class LayerNames:
    """A layer as it was compiled, with the text of its heads, formulas and hidden units."""

    weights: LayerWeights
    heads: list[str]
    formulas: list[str]
    units: list[str]


class Naming:
    """The names of a machine. The formulas are those of its design, worked out from its sizes."""

    def __init__(self, machine: Machine[Any, Any]) -> None:
        self.rows = row_names(machine.layout)
        self.spans = RowNames(machine.layout)
        self.layers = [self._layer(compile_layer(part, machine.layout.width)) for part in machine.formulas()]

    def _layer(self, weights: LayerWeights) -> LayerNames:
        units = [unit_text(row, float(bias), self.spans, WHOLE) for row, bias in zip(weights.w1, weights.b1, strict=True)]
        return LayerNames(weights, [head_text(head, self.spans, WHOLE) for head in weights.part.heads],
                          [assignment_text(each, self.spans, WHOLE).text for each in weights.part.assignments], units)

    def plain(self) -> dict[str, Any]:
        """All names as plain data, for the metadata of files."""
        return {
            "rows": self.rows,
            "layers": [{
                "heads": [{"name": part_name(i, "head", n), "formula": text} for n, text in enumerate(layer.heads)],
                "formulas": [{"name": part_name(i, "formula", n), "formula": text}
                             for n, text in enumerate(layer.formulas)],
                "units": [{"name": part_name(i, "unit", n), "formula": text,
                           "serves": [part_name(i, "formula", formula) for formula in layer.weights.serves[n]]}
                          for n, text in enumerate(layer.units)],
            } for i, layer in enumerate(self.layers)],
        }
