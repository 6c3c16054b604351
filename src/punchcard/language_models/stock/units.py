"""That units leave bits: every row that they write to is ±1 again, whatever the column is. Exact, from the weights.

What units add to one row depends on a few rows alone. Those that are in all of its units in the same proportion make one
integer T, such as the difference of two words; the others are tried one by one: what tokens have in rows that nothing has
written to, and both signs of each other row. For each of these cases the sum of ReLUs is a piecewise linear function of T,
which is flat but for steps (`transformer.relu_steps`), and all of its values must be bits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from math import gcd

import numpy as np

from punchcard.errors import WeightsError
from punchcard.language_models.stock.structure import GRID, Integers, Structure, changed_rows
from punchcard.transformer.expression import Array
from punchcard.transformer.relu_steps import steps_of

MOST_CASES = 1 << 14
FEW = 3
"""Rows in one proportion from which on they count as an integer."""


def check_bits(structure: Structure) -> int:
    """How many cases were tried. `WeightsError` names the first layer and row that may be no bit."""
    embedding = np.where(structure.weights.embedding == 0, 1, structure.weights.embedding)
    changed: set[int] = set()
    tried = 0
    for number, layer in enumerate(structure.layers, start=1):
        changed |= {target for head in layer.heads for _, target in head.moves}
        for row in layer.written:
            used = np.flatnonzero(layer.w2[row])
            try:
                tried += _check_row(row, layer.w1[used], layer.w2[row, used], embedding, changed)
            except WeightsError as error:
                raise WeightsError(f"layer {number}, row {row}: {error}") from None
        changed |= changed_rows([layer])
    return tried


def _check_row(row: int, forms: Integers, weights: Integers, embedding: Array, changed: set[int]) -> int:
    involved = sorted({*np.flatnonzero(forms.any(axis=0)).tolist(), row})
    number, bits = _proportions(forms, [each for each in involved if each in changed and each != row])
    bits += [row] if row in changed else []
    fixed = [each for each in involved if each not in number and each not in bits]
    unit = GRID * GRID
    size = sum(abs(factor) for factor in number.values())
    slopes = _slopes(forms, number)
    cases = 0
    for values in _cases(embedding, fixed, bits):
        cases += 1
        if cases > MOST_CASES:
            raise WeightsError(f"more than {MOST_CASES} cases of what its units read")
        start = forms[:, list(values)] @ np.array(list(values.values()), dtype=np.int64) - slopes * size
        lines = list(zip(start.tolist(), (2 * slopes).tolist(), weights.tolist(), strict=True))
        old = unit * values[row]

        def value(k: int, lines: list[tuple[int, int, int]] = lines, old: int = old) -> int:
            return old + sum(weight * max(0, first + slope * k) for first, slope, weight in lines)

        kinks = [(-first, slope) for first, slope, _ in lines if slope]
        steps = steps_of(0, size, kinks, value)
        if steps is None or any(found not in (unit, -unit) for _, found in steps):
            raise WeightsError("what its units add is not 0 or 2 in some column")
    return cases


def _proportions(forms: Integers, free: list[int]) -> tuple[dict[int, int], list[int]]:
    """The rows that make an integer, with their factors, and the other rows."""
    groups = defaultdict[tuple[int, ...], dict[int, int]](dict)
    for row in free:
        column = forms[:, row].tolist()
        factor = gcd(*column) * (1 if next(each for each in column if each) > 0 else -1)
        groups[tuple(each // factor for each in column)][row] = factor
    numbers = [group for group in groups.values() if len(group) >= FEW]
    if len(numbers) > 1:
        raise WeightsError("its units depend on more than one integer")
    number = numbers[0] if numbers else {}
    common = gcd(*number.values()) if number else 1
    return {row: factor // common for row, factor in number.items()}, [row for row in free if row not in number]


def _slopes(forms: Integers, number: dict[int, int]) -> Integers:
    """What each unit takes the integer times."""
    for row, factor in number.items():
        return np.asarray(forms[:, row] // factor)
    return np.zeros(len(forms), dtype=np.int64)


def _cases(embedding: Array, fixed: list[int], bits: list[int]) -> Iterator[dict[int, int]]:
    for token in np.unique(embedding[:, fixed], axis=0).astype(int).tolist():
        for signs in product((-1, 1), repeat=len(bits)):
            yield dict(zip([*fixed, *bits], [*token, *signs], strict=True))
