"""Formulas as text: what `attend` and `assign` were given, with the names of rows, from the matrices that it became.

    difference = -memory + 2*relu(difference + 4*inside)        a formula for all rows of a block
    counter[i] = ... 2*relu(binary(word[:i+1]) - 2^i*inside)    one that differs from row to row in a regular way

`sum(x)` adds rows, `binary(x)` adds x[0] + 2 x[1] + 4 x[2] + ... Texts are made on demand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from punchcard.card.layout import Layout, RowBlock
from punchcard.transformer.build import Assignment, Head
from punchcard.transformer.expression import Array, Expression

LONGEST = 800
"""Default length of a text in characters; the rest is cut."""


class RowTerm(NamedTuple):
    """Rows from `first` to `last` with the weight `factor`, or, where `doubles`, with it times 1, 2, 4, ..."""

    factor: float
    first: int
    last: int
    doubles: bool


class Affine(NamedTuple):
    """A sum of terms and a constant."""

    terms: tuple[RowTerm, ...]
    constant: float


class Formula(NamedTuple):
    """What one row is set to: an affine form, and relus of others with factors."""

    plain: Affine
    relus: tuple[tuple[float, Affine], ...]

    def parts(self) -> list[Affine]:
        return [self.plain, *(inner for _, inner in self.relus)]


@dataclass(frozen=True)
class FormulaText:
    """A formula for several rows as text, and the formula of each row by itself."""

    text: str
    rows: list[str]
    details: list[str]


class RowNames:
    """Names for spans of rows."""

    def __init__(self, layout: Layout) -> None:
        self._spans = {(layout.rows(name).start, layout.rows(name).stop): name
                       for block in reversed(layout.blocks)
                       for name in (*(f"{block.name}.{part}" for part in block.parts), block.name)}
        self._smallest = sorted(self._spans, key=lambda span: span[1] - span[0])
        self.starts = {layout.rows(block.name).start for block in layout.blocks}
        """The rows at which a block begins, over which no name continues."""

    def span(self, first: int, last: int) -> str:
        """Rows from first to last: `memory`, `pointer.a`, `memory[2:5]`, `memory[3]`."""
        if (first, last + 1) in self._spans:
            return self._spans[first, last + 1]
        for start, stop in self._smallest:
            if start <= first and last < stop:
                low, high = first - start, last + 1 - start
                inside = str(low) if first == last else f"{low or ''}:{high if last + 1 < stop else ''}"
                return f"{self._spans[start, stop]}[{inside}]"
        return " and ".join(self.span(row, row) for row in range(first, last + 1)) if last - first < 8 else "rows"

    def place(self, row: int) -> tuple[str, int]:
        """The smallest named span of more than one row that a row is in, and its number there."""
        for start, stop in self._smallest:
            if start <= row < stop:
                return self._spans[start, stop], row - start
        return "row", row


def smallest_blocks(layout: Layout) -> list[tuple[str, RowBlock, range]]:
    """Blocks that have no parts, and the parts of the others: the name, its block, and its rows."""
    return [(name, block, range(*layout.rows(name).indices(layout.width))) for block in layout.blocks
            for name in ([f"{block.name}.{part}" for part in block.parts] or [block.name])]


def row_names(layout: Layout) -> list[str]:
    """A name for every row: `memory[3]`, `pointer.a[0]`, or `inside` if a block is one row."""
    names = [f"row {row}" for row in range(layout.width)]
    for name, _, rows in smallest_blocks(layout):
        for i, row in enumerate(rows):
            names[row] = name if len(rows) == 1 else f"{name}[{i}]"
    return names


def head_text(head: Head, names: RowNames, longest: int = LONGEST) -> str:
    """What a head was given."""
    query, key, value = (vector_text(form, names) for form in (head.query, head.key, head.value))
    into = " and ".join(names.span(*span) for span in _consecutive(head.into.numbers.tolist(), names))
    return _cut(f"query {query}, key {key}, value {value}, into {into}", longest)


def assignment_text(assignment: Assignment, names: RowNames, longest: int = LONGEST) -> FormulaText:
    """What rows were set to."""
    numbers = assignment.target.numbers.tolist()
    formulas = _formulas(assignment.value, names)
    own = [names.span(row, row) for row in numbers]
    details = [f"{row} = {_sides([formula], names)[0]}" for row, formula in zip(own, formulas, strict=True)]
    texts = [_run_text(formulas[first : last + 1], numbers[first : last + 1], names)
             for first, last in _runs(formulas, numbers, names)]
    return FormulaText(_cut("; ".join(texts), longest), own, [_cut(each, longest) for each in details])


def vector_text(form: Expression, names: RowNames) -> str:
    """An affine vector: one text, or `stack(...)` of several."""
    formulas = _formulas(form, names)
    texts = [_sides(formulas[first : last + 1], names)[0] for first, last in _runs(formulas, None, names)]
    return texts[0] if len(texts) == 1 else f"stack({', '.join(texts)})"


def unit_text(weights: Array, bias: float, names: RowNames, longest: int = LONGEST) -> str:
    """What a hidden unit computes, from its row of W1 and its entry of b1."""
    inner = Expression(weights[None], np.array([bias]), np.zeros((1, 0)), np.zeros((0, len(weights))), np.zeros(0))
    return _cut(f"relu({vector_text(inner, names)})", longest)


# From matrices to terms


def _formulas(form: Expression, names: RowNames) -> list[Formula]:
    relus = [_affine(row, float(bias), names) for row, bias in zip(form.inner, form.bias, strict=True)]
    found = []
    for linear, constant, outer in zip(form.linear, form.constant, form.outer, strict=True):
        units = np.flatnonzero(outer).tolist()
        factors: dict[Affine, float] = {}
        for unit in units:  # the factors of equal relus are added
            factors[relus[unit]] = factors.get(relus[unit], 0.0) + float(outer[unit])
        kept = tuple((factor, inner) for inner, factor in factors.items() if factor and (inner.terms or inner.constant > 0))
        found.append(Formula(_affine(linear, float(constant), names), kept))
    return found


def _affine(row: Array, constant: float, names: RowNames) -> Affine:
    """Neighbouring rows of a block with equal or doubling weights are one term."""
    places = np.flatnonzero(row).tolist()
    terms, at = [], 0
    while at < len(places):
        ends = {ratio: _reach(row, places, at, ratio, names) for ratio in (1.0, 2.0)}
        ratio = 2.0 if ends[2.0] > ends[1.0] else 1.0
        terms.append(RowTerm(float(row[places[at]]), places[at], places[ends[ratio]], ratio == 2.0 and ends[ratio] > at))
        at = ends[ratio] + 1
    return Affine(tuple(terms), constant)


def _reach(row: Array, places: Sequence[int], at: int, ratio: float, names: RowNames) -> int:
    end = at
    while (end + 1 < len(places) and places[end + 1] == places[end] + 1 and places[end + 1] not in names.starts
           and row[places[end + 1]] == ratio * row[places[end]]):
        end += 1
    return end


# Rows that have the same formula, but for numbers that continue regularly


def _runs(formulas: Sequence[Formula], numbers: Sequence[int] | None, names: RowNames) -> list[tuple[int, int]]:
    found, first = [], 0
    while first < len(formulas):
        last = first
        while (last + 1 < len(formulas)
               and (numbers is None or (numbers[last + 1] == numbers[last] + 1 and numbers[last + 1] not in names.starts))
               and _regular(formulas[first : last + 2], names)):
            last += 1
        found.append((first, last))
        first = last + 1
    return found


def _regular(formulas: Sequence[Formula], names: RowNames) -> bool:
    """Whether formulas have the same shape and all their numbers stay, or continue by 1, or double."""
    one, two, last = formulas[0], formulas[min(1, len(formulas) - 1)], formulas[-1]
    if len({len(each.relus) for each in (one, last)}) > 1:
        return False
    for before, then, now in zip(*(each.parts() for each in (one, two, last)), strict=True):
        if len(before.terms) != len(now.terms) or len(then.terms) != len(now.terms):
            return False
        steps = len(formulas) - 1
        if not _scales(before.constant, then.constant, now.constant, steps):
            return False
        for a, b, c in zip(before.terms, then.terms, now.terms, strict=True):
            if not (_moves(a.first, b.first, c.first, steps) and _moves(a.last, b.last, c.last, steps)
                    and _scales(a.factor, b.factor, c.factor, steps)) or (b.last != a.last and c.last in names.starts):
                return False
            if c.last > c.first and b.last > b.first and c.doubles != b.doubles:
                return False
    factors = zip(*([factor for factor, _ in each.relus] for each in (one, two, last)), strict=True)
    return all(_scales(a, b, c, len(formulas) - 1) for a, b, c in factors)


def _moves(one: int, two: int, last: int, steps: int) -> bool:
    return two - one in (0, 1) and last == one + (two - one) * steps


def _scales(one: float, two: float, last: float, steps: int) -> bool:
    """Whether a number continues as a 2^i + b."""
    return last == one + (two - one) * (2.0**steps - 1)


# Text


def _run_text(formulas: Sequence[Formula], numbers: Sequence[int], names: RowNames) -> str:
    text, indexed = _sides(formulas, names)
    target = names.span(numbers[0], numbers[-1])
    if indexed:
        name, first = names.place(numbers[0])
        return f"{name}[{_index(first)}] = {text}" + ("" if target == name else f", i from 0 to {len(numbers) - 1}")
    return f"{target} = {text}"


def _sides(formulas: Sequence[Formula], names: RowNames) -> tuple[str, bool]:
    """The right side for a run of formulas, and whether it has an index i."""
    one, two = formulas[0], formulas[min(1, len(formulas) - 1)]
    indexed = len(formulas) > 1 and any(
        _is_indexed(a, b) for before, then in zip(one.parts(), two.parts(), strict=True)
        for a, b in zip(before.terms, then.terms, strict=True))
    indexed |= len(formulas) > 1 and (any(a != b for (a, _), (b, _) in zip(one.relus, two.relus, strict=True)) or any(
        before.constant != then.constant for before, then in zip(one.parts(), two.parts(), strict=True)))
    last = formulas[-1]
    return _joined([(before, then, now) for before, then, now in zip(one.parts(), two.parts(), last.parts(), strict=True)],
                   [(a, b) for (a, _), (b, _) in zip(one.relus, two.relus, strict=True)], names, indexed=indexed), indexed


def _is_indexed(a: RowTerm, b: RowTerm) -> bool:
    """A single row that continues with the index is a plain vector; anything else that changes needs the index."""
    plain = a.first == a.last and b.first == b.last
    return a.factor != b.factor or (not plain and (a.first, a.last) != (b.first, b.last))


def _joined(parts: Sequence[tuple[Affine, Affine, Affine]], factors: Sequence[tuple[float, float]], names: RowNames, *,
            indexed: bool) -> str:
    def affine(before: Affine, then: Affine, now: Affine) -> list[tuple[float, str]]:
        found = [_factored(a.factor, b.factor, _rows_text(a, b, c, names, indexed=indexed))
                 for a, b, c in zip(before.terms, then.terms, now.terms, strict=True)]
        if before.constant:
            found.append(_factored(before.constant, then.constant, ""))
        return found

    pieces = affine(*parts[0])
    for (a, b), inner in zip(factors, parts[1:], strict=True):
        pieces.append(_factored(a, b, f"relu({_sum(affine(*inner))})"))
    return _sum(pieces)


def _factored(one: float, two: float, what: str) -> tuple[float, str]:
    """A sign, and a product without it."""
    step, rest = two - one, 2 * one - two  # one and two are step 2^i + rest, for i = 0 and 1
    if step == 0:
        shown = "" if abs(one) == 1 and what else _number(abs(one))
        return math.copysign(1, one), "*".join(text for text in (shown, what) if text)
    sign = math.copysign(1, step)
    power = "2^i" if abs(step) == 1 else f"{_number(abs(step))}*2^i"
    if rest:
        power = f"({power} {'+' if rest * sign > 0 else '-'} {_number(abs(rest))})"
    return sign, f"{power}*{what}" if what else power


def _sum(pieces: Sequence[tuple[float, str]]) -> str:
    text = ""
    for sign, piece in pieces:
        text += (" - " if text else "-") + piece if sign < 0 else (" + " if text else "") + piece
    return text or "0"


def _rows_text(a: RowTerm, b: RowTerm, c: RowTerm, names: RowNames, *, indexed: bool) -> str:
    several = c.last > c.first or b.last > b.first or a.last > a.first
    doubles = a.doubles or b.doubles or c.doubles
    wrap: Callable[[str], str] = (lambda text: f"{'binary' if doubles else 'sum'}({text})") if several else str
    moving_first, moving_last = b.first != a.first, b.last != a.last
    if not (moving_first or moving_last):
        return wrap(names.span(a.first, a.last))
    if not indexed:
        return names.span(a.first, c.last)
    name, low = names.place(a.first)
    high = low + a.last - a.first
    if not several:
        return f"{name}[{_index(low)}]"
    start, stop = _index(low) if moving_first else str(low or ""), _index(high + 1) if moving_last else str(high + 1)
    return wrap(f"{name}[{start}:{stop}]")


def _index(offset: int) -> str:
    return "i" if offset == 0 else f"i+{offset}"


def _consecutive(numbers: Sequence[int], names: RowNames) -> list[tuple[int, int]]:
    """Rows as spans within a block."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1 and number not in names.starts:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def _number(value: float) -> str:
    """A positive number, as exact as it is."""
    mantissa, exponent = math.frexp(value)
    if mantissa == 0.5 and not 2.0**-10 < value < 2.0**20:
        return f"2^{exponent - 1}" if exponent > 1 else f"2^({exponent - 1})"
    return str(int(value)) if value.is_integer() and value < 1e15 else repr(value)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]} …"
