"""Texts that print puts together, as the form of an expression shows."""

from __future__ import annotations

import ast


def is_text(node: ast.expr) -> bool:
    """Whether an expression puts a text together."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Mult) and (is_text(node.left) or is_text(node.right))
    return isinstance(node, ast.JoinedStr) or is_call(node, "str")


def pieces_of(node: ast.expr) -> list[ast.expr]:
    """The values of which a text is put together."""
    if isinstance(node, ast.Starred):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return [piece for each in node.values for piece in pieces_of(each)]
    if isinstance(node, ast.FormattedValue):
        return pieces_of(node.value)
    if isinstance(node, ast.Call) and is_call(node, "str"):
        return pieces_of(node.args[0])
    if is_text(node) and isinstance(node, ast.BinOp):
        return [*pieces_of(node.left), *pieces_of(node.right)]
    return [node]


def is_call(node: ast.expr, *names: str) -> bool:
    """Whether an expression is a call of one of these names."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
