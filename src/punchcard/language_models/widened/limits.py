"""How large the numbers in added coordinates can get, in any column of any text: by intervals, from the formulas.

A head adds an average of what is in other columns. Two units that are a step add something between 0 and their value,
and one alone relu(gate) times its value. So intervals go through the layers one by one.
"""

from __future__ import annotations

import numpy as np

from punchcard.language_models.widened.gates import SHARPNESS, Unit
from punchcard.language_models.widened.plan import Front
from punchcard.language_models.widened.weights import token_columns
from punchcard.transformer.expression import Array, Expression

DIP = 0.3 / SHARPNESS
"""silu(s z) / s is never below -0.28 / s."""


def largest_number(front: Front) -> float:
    """No number in an added coordinate is larger in size, the ballast aside."""
    tokens = token_columns(front)
    low, high = tokens.min(axis=0), tokens.max(axis=0)
    largest = max(-low.min(), high.max())
    for layer in front.layers:
        start = low.copy(), high.copy()
        for head in layer.heads:
            for form, into in head.fetches:
                least, most = _interval(form, *start)
                low[into.numbers[0]] += min(least, 0.0)
                high[into.numbers[0]] += max(most, 0.0)
        seen, units = (low.copy(), high.copy()), list(layer.units)
        while units:
            unit = units.pop(0)
            is_step = bool(units) and _are_step(unit, units[0], front)
            if is_step:
                units.pop(0)
            _, gate = _interval(unit.gate, *seen)
            opened = 1 + 2 * DIP if is_step else max(gate, 0.0)
            reach = max(np.abs(_interval(unit.up, *seen))) * (opened + DIP)
            for to, factor in unit.into:
                low[to.numbers[0]] -= abs(factor) * reach
                high[to.numbers[0]] += abs(factor) * reach
        largest = max(largest, -low.min(), high.max())
    return float(largest)


def _are_step(first: Unit, second: Unit, front: Front) -> bool:
    """Whether two units are the two parts of a step: gates that are 1 apart, and opposite signs."""
    one = np.zeros(front.layout.width)
    one[front.layout.rows("one")] = 1.0
    apart = first.gate.linear[0] - second.gate.linear[0] - one
    opposite = [(to.numbers[0], -factor) for to, factor in first.into] == [(to.numbers[0], f) for to, f in second.into]
    return opposite and bool(np.abs(apart).max() < 1e-9) and np.array_equal(first.up.linear, second.up.linear)


def _interval(form: Expression, low: Array, high: Array) -> tuple[float, float]:
    """The least and the largest value of a form, where `one` is 1."""
    weights = form.linear[0]
    up, down = np.maximum(weights, 0.0), np.minimum(weights, 0.0)
    return float(up @ low + down @ high), float(up @ high + down @ low)
