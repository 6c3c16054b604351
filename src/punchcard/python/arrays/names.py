"""What statements do to names, read off the tree: what they assign, change in place and leave."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from punchcard.python.arrays.values import Known, Value


def assigned(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that statements may assign to, wholly or in part."""
    found = set()
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
                found.add(node.value.id)
    return found


def changed_in_place(statements: Sequence[ast.stmt]) -> set[str]:
    """The names of arrays that statements may change in place."""
    found = set()
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
                found.add(node.value.id)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
    return found


def leaves(statement: ast.stmt) -> bool:
    """Whether a statement can end a round early."""
    return any(isinstance(node, ast.Break | ast.Continue | ast.Return) for node in ast.walk(statement))


def stays_whole(name: str, body: Sequence[ast.stmt], known: Mapping[str, Value]) -> bool:
    """Whether a loop assigns integers alone to a variable: sums and products of whole numbers and itself."""
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            continue
        values: list[ast.expr] = []
        if isinstance(node, ast.Assign) and name in assigned([node]):
            if not all(isinstance(target, ast.Name) for target in node.targets):
                return False
            values = [node.value]
        elif isinstance(node, ast.AugAssign) and name in assigned([node]):
            if not isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
                return False
            values = [node.value]
        elif isinstance(node, ast.AnnAssign | ast.For) and name in assigned([_target(node)]):
            return False
        if not all(_whole(value, name, known) for value in values):
            return False
    return True


def _whole(node: ast.expr, name: str, known: Mapping[str, Value]) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and not isinstance(node.value, bool)
    if isinstance(node, ast.Name):
        value = known.get(node.id)
        return node.id == name or (isinstance(value, Known) and isinstance(value.value, int))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        return _whole(node.left, name, known) and _whole(node.right, name, known)
    return False


def _target(node: ast.AnnAssign | ast.For) -> ast.stmt:
    """An assignment to the target alone."""
    return ast.Assign([node.target], ast.Constant(0))
