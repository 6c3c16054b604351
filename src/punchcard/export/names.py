"""RowNames for all that a machine consists of: rows, heads, formulas and hidden units, with the text of what each computes.

    names = Naming(machine)
    names.rows[64]                 difference[7]
    names.layers[0].heads[0]       query position + pointer.a, key position, value -memory, into difference
    names.layers[0].units[3]       relu(difference[1] + ...)

This is the one place that names are made for files: the circuit and every export read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from punchcard.machines.base import Machine
from punchcard.transformer.build import Assignment, LayerWeights, Part, compile_layer
from punchcard.transformer.formula_text import RowNames, assignment_text, head_text, row_names, unit_text

WHOLE = 1 << 20
"""Characters of a formula: in a file none is cut."""


def head_name(layer: int, head: int) -> str:
    """Layers and heads are counted from 0 in Python, and from 1 in names."""
    return f"layer {layer + 1}, head {head + 1}"


def unit_name(layer: int, unit: int) -> str:
    """The name of a hidden unit."""
    return f"layer {layer + 1}, unit {unit + 1}"


def formula_name(layer: int, formula: int) -> str:
    """The name of an assignment: rows and the formula that they are set to."""
    return f"layer {layer + 1}, formula {formula + 1}"


@dataclass(frozen=True)
class LayerNames:
    """A layer as it was written and as it was compiled, with the text of its heads, formulas and hidden units.

    `members[unit]` are the formulas that a hidden unit serves: formulas that need the same relu share it.
    """

    part: Part
    weights: LayerWeights
    heads: list[str]
    formulas: list[str]
    units: list[str]
    members: list[list[int]]


class Naming:
    """The names of a machine. The formulas are those of its design, worked out anew from its sizes."""

    def __init__(self, machine: Machine[Any, Any]) -> None:
        layout = machine.layout
        self.rows = row_names(layout)
        self.spans = RowNames(layout)
        self.layers = [self._layer(part, layout.width) for part in machine.formulas()]

    def _layer(self, part: Part, width: int) -> LayerNames:
        weights = compile_layer(part, width)
        units = [unit_text(row, float(bias), self.spans, WHOLE) for row, bias in zip(weights.w1, weights.b1, strict=True)]
        return LayerNames(part, weights, [head_text(head, self.spans, WHOLE) for head in part.heads],
                          [assignment_text(each, self.spans, WHOLE).text for each in part.assignments], units,
                          _members(part.assignments, weights))

    def plain(self) -> dict[str, Any]:
        """All names as plain data, for the metadata of files."""
        return {
            "rows": self.rows,
            "layers": [{
                "heads": [{"name": head_name(i, n), "formula": text} for n, text in enumerate(layer.heads)],
                "formulas": [{"name": formula_name(i, n), "formula": text} for n, text in enumerate(layer.formulas)],
                "units": [{"name": unit_name(i, n), "formula": text,
                           "serves": [formula_name(i, formula) for formula in layer.members[n]]}
                          for n, text in enumerate(layer.units)],
            } for i, layer in enumerate(self.layers)],
        }


def _members(assignments: tuple[Assignment, ...], weights: LayerWeights) -> list[list[int]]:
    """For each hidden unit of a layer the assignments that, compiled alone, have the same relu."""
    places = {unit: number for number, unit in enumerate(_relus(weights))}
    found: list[list[int]] = [[] for _ in places]
    for number, assignment in enumerate(assignments):
        for unit in _relus(compile_layer(Part(assignments=(assignment,)), weights.w2.shape[0])):
            found[places[unit]].append(number)
    return found


def _relus(weights: LayerWeights) -> list[bytes]:
    return [unit.tobytes() for unit in np.hstack([weights.w1, weights.b1[:, None]]) + 0.0]
