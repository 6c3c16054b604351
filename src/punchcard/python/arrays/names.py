"""What statements do to names, read off the tree: what they assign, change in place and leave."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from punchcard.python.arrays.values import Known, Value


def stored_names(node: ast.AST) -> set[str]:
    """The names that are assigned to in a node, wholly or in part."""
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)} | (
        _stored_in(node))


def _stored_in(node: ast.AST) -> set[str]:
    """The names of arrays that are assigned to in part."""
    return {inner.value.id for inner in ast.walk(node) if isinstance(inner, ast.Subscript)
            and isinstance(inner.ctx, ast.Store) and isinstance(inner.value, ast.Name)}


def assigned_names(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that statements may assign to, wholly or in part."""
    return set().union(*map(stored_names, statements))


def changed_in_place(statements: Sequence[ast.stmt]) -> set[str]:
    """The names of arrays that statements may change in place."""
    augmented = {node.target.id for statement in statements for node in ast.walk(statement)
                 if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)}
    return augmented.union(*map(_stored_in, statements))


def leaves(statement: ast.stmt) -> bool:
    """Whether a statement can end a round early."""
    return any(isinstance(node, ast.Break | ast.Continue | ast.Return) for node in ast.walk(statement))


def stays_integer(name: str, body: Sequence[ast.stmt], known: Mapping[str, Value]) -> bool:
    """Whether a loop assigns integers alone to a variable: sums and products of whole numbers and itself."""
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(node, ast.Assign) and name in stored_names(node):
            if not all(isinstance(target, ast.Name) for target in node.targets) or not _is_integer(node.value, name, known):
                return False
        elif isinstance(node, ast.AugAssign) and name in stored_names(node):
            if not isinstance(node.op, ast.Add | ast.Sub | ast.Mult) or not _is_integer(node.value, name, known):
                return False
        elif isinstance(node, ast.AnnAssign | ast.For) and name in stored_names(node.target):
            return False
    return True


def _is_integer(node: ast.expr, name: str, known: Mapping[str, Value]) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and not isinstance(node.value, bool)
    if isinstance(node, ast.Name):
        value = known.get(node.id)
        return node.id == name or (isinstance(value, Known) and isinstance(value.value, int))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        return _is_integer(node.left, name, known) and _is_integer(node.right, name, known)
    return False
