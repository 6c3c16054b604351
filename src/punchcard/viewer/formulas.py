"""The formulas and weights of a machine's layers, by the names of rows: made on demand."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from punchcard.card.formats import AnyArray
from punchcard.errors import PunchcardError
from punchcard.machines.base import Machine
from punchcard.transformer.build import Part
from punchcard.transformer.formula_text import FormulaText, RowNames, assignment_text, head_text, row_names
from punchcard.viewer.protocol import FormulaReply, FormulasReply, HeadReply, WeightsPart, WeightsReply
from punchcard.viewer.story import Storyteller


class Formulas:
    """What a machine's design gave to `attend` and `assign`.

    A machine's weights may be kept on disk without them: then the formulas are worked out anew, from sizes alone.
    """

    def __init__(self, machine: Machine[Any, Any], story: Storyteller) -> None:
        self._machine, self._story = machine, story
        self.row_names = row_names(machine.layout)
        self._names = RowNames(machine.layout)
        self._worded: dict[int, list[FormulaText]] = {}

    @cached_property
    def parts(self) -> list[Part]:
        """The layers as they were written."""
        return self._machine.formulas()

    def worded(self, layer: int) -> list[FormulaText]:
        """The assignments of a layer."""
        if layer not in self._worded:
            self._worded[layer] = [assignment_text(each, self._names) for each in self.parts[layer].assignments]
        return self._worded[layer]

    def layer(self, layer: int) -> FormulasReply:
        worded = self.worded(layer)
        temperatures = self._machine.weights.layers[layer].temperature
        each_head = enumerate(zip(self.parts[layer].heads, temperatures, strict=True))
        heads: list[HeadReply] = [{"about": head_text(head, self._names), "temperature": float(t), "gap": float(head.gap),
                                   "carries": self._story.carries(layer, number)} for number, (head, t) in each_head]
        return {"layer": layer, "heads": heads, "formulas": [each.text for each in worded],
                "rows": [each.rows for each in worded], "details": [each.details for each in worded]}

    def heads(self, layer: int, before: AnyArray, added: list[AnyArray]) -> list[FormulaReply]:
        """What each head of a layer added to a column."""
        found: list[FormulaReply] = []
        for head, more in zip(self.parts[layer].heads, added, strict=True):
            rows = head.into.numbers
            found.append({"kind": "attend", "text": head_text(head, self._names), "rows": self._named(rows),
                          "before": before[rows].tolist(), "after": (before + more)[rows].tolist(), "details": []})
        return found

    def assignments(self, layer: int, before: AnyArray, after: AnyArray) -> list[FormulaReply]:
        """What each assignment of a layer made of a column."""
        found: list[FormulaReply] = []
        for assignment, worded in zip(self.parts[layer].assignments, self.worded(layer), strict=True):
            rows = assignment.target.numbers
            found.append({"kind": "assign", "text": worded.text, "rows": worded.rows, "before": before[rows].tolist(),
                          "after": after[rows].tolist(), "details": worded.details})
        return found

    def _named(self, rows: AnyArray) -> list[str]:
        return [self.row_names[row] for row in rows.tolist()]

    def weights(self, layer: int, head: int | None, unit: int | None) -> WeightsReply:
        """The weights of a head, or of a hidden unit, that are not 0; of neither, how many there are."""
        arrays, parts, temperature = self._machine.weights.layers[layer], list[WeightsPart](), None
        name = f"layer {layer + 1}"
        if head is not None and unit is not None:
            raise PunchcardError("weights: name a head or a hidden unit, not both")
        if head is not None:
            if head not in range(arrays.heads):
                raise PunchcardError(f"head {head}: layer {layer} has {arrays.heads}, counted from 0")
            name, temperature = f"{name}, head {head + 1}", float(arrays.temperature[head])
            for part, matrix in (("key", arrays.key), ("query", arrays.query)):
                parts.append(self._part(part, matrix[head], [f"{part} {i + 1}" for i in range(arrays.key_size)]))
            parts.append(self._part("value", arrays.value[head], self.row_names))
        elif unit is not None:
            if unit not in range(arrays.hidden):
                raise PunchcardError(f"hidden unit {unit}: layer {layer} has {arrays.hidden}, counted from 0")
            name = f"{name}, hidden unit {unit + 1}"
            parts.append({**self._part("in", arrays.w1[unit : unit + 1], ["relu"]), "bias": float(arrays.b1[unit, 0])})
            outer = arrays.w2[:, unit]
            rows = np.flatnonzero(outer).tolist()
            parts.append({"name": "out", "nonzero": [(self.row_names[row], "relu", float(outer[row])) for row in rows],
                          "bias": None})
        return {"name": name, "layer": layer, "heads": arrays.heads, "hidden": arrays.hidden, "temperature": temperature,
                "parts": parts}

    def _part(self, name: str, matrix: AnyArray, made: list[str]) -> WeightsPart:
        places = zip(*(axis.tolist() for axis in np.nonzero(matrix)), strict=True)
        nonzero = [(made[i], self.row_names[j], float(matrix[i, j])) for i, j in places]
        return {"name": name, "nonzero": nonzero, "bias": None}
