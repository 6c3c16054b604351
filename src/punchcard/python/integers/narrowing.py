"""What a condition says of the names in it: `if i < n` bounds i from above, and n from below."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from punchcard.python.integers.values import AbstractValue, Names, Unreached, join_names, number

if TYPE_CHECKING:
    from punchcard.python.integers.expression_types import ExpressionTypes
    from punchcard.python.integers.findings import Findings

OPPOSITE: dict[type, type] = {ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq,
                              ast.NotEq: ast.Eq}
MIRRORED: dict[type, type] = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE, ast.Eq: ast.Eq,
                              ast.NotEq: ast.NotEq}


def compared(op: ast.cmpop, left: AbstractValue, right: AbstractValue) -> int | None:
    """Whether a comparison holds, where the intervals decide it."""
    kind = type(op)
    if kind in (ast.Gt, ast.GtE):
        left, right, kind = right, left, MIRRORED[kind]
    if kind is ast.Lt:
        return 1 if left.high < right.low else 0 if left.low >= right.high else None
    if kind is ast.LtE:
        return 1 if left.high <= right.low else 0 if left.low > right.high else None
    equal = 0 if left.high < right.low or right.high < left.low else None
    if left.low == left.high == right.low == right.high:
        equal = 1
    return equal if kind is ast.Eq or equal is None else 1 - equal


class Narrowing:
    """What names hold where a condition holds, or does not."""

    def __init__(self, findings: Findings, expressions: ExpressionTypes) -> None:
        self._findings, self._expressions = findings, expressions

    def names_where(self, names: Names, test: ast.expr, holds: bool) -> Names | None:
        """The names there, or None if that cannot be."""
        with self._findings.trying():
            return self._narrow(names, test, holds)

    def _narrow(self, names: Names, test: ast.expr, holds: bool) -> Names | None:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._narrow(names, test.operand, not holds)
        if isinstance(test, ast.BoolOp):
            return self._several(names, test, holds)
        known = self._expressions.condition(test, names).constant
        if known is not None and bool(known) is not holds:
            return None
        if isinstance(test, ast.Compare) and (holds or len(test.ops) == 1):
            return self._compared(names, test, holds)
        if isinstance(test, ast.Name) and test.id in names and names[test.id].is_number:
            bounded = _bounded(names[test.id], ast.NotEq if holds else ast.Eq, number(0))
            return None if bounded is None else {**names, test.id: bounded}
        return names

    def _several(self, names: Names, test: ast.BoolOp, holds: bool) -> Names | None:
        all_of = isinstance(test.op, ast.And) is holds
        ahead: Names | None = dict(names)
        ways: Names | None = None
        for operand in test.values:
            if ahead is None:
                break
            try:
                if not all_of:
                    ways = join_names(ways, self._narrow(ahead, operand, holds))
                ahead = self._narrow(ahead, operand, holds if all_of else not holds)
            except Unreached:
                ahead = None
        return ahead if all_of else ways

    def _compared(self, names: Names, test: ast.Compare, holds: bool) -> Names | None:
        found = dict(names)
        left = test.left
        for op, right in zip(test.ops, test.comparators, strict=True):
            kind = type(op) if holds else OPPOSITE.get(type(op))
            if kind in MIRRORED:
                a, b = self._expressions.value(left, names), self._expressions.value(right, names)
                for side, mine, other, how in ((left, a, b, kind), (right, b, a, MIRRORED[kind])):
                    if isinstance(side, ast.Name) and side.id in found and mine.kind == found[side.id].kind:
                        bounded = _bounded(found[side.id], how, other)
                        if bounded is None:
                            return None
                        found[side.id] = bounded
            left = right
        return found


def _bounded(value: AbstractValue, how: type, other: AbstractValue) -> AbstractValue | None:
    """A number that compares so with another; None where there is none."""
    if value.kind not in ("int", "bool", "number", "char") or other.kind not in ("int", "bool", "number", "char"):
        return value
    low, high = value.low, value.high
    if how is ast.Lt:
        high = min(high, other.high - 1)
    elif how is ast.LtE:
        high = min(high, other.high)
    elif how is ast.Gt:
        low = max(low, other.low + 1)
    elif how is ast.GtE:
        low = max(low, other.low)
    elif how is ast.Eq:
        low, high = max(low, other.low), min(high, other.high)
    elif other.low == other.high:
        low += low == other.low
        high -= high == other.low
    return replace(value, low=low, high=high) if low <= high else None
